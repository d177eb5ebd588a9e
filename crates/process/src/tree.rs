//! Everything that came of one process, and its end.

use std::{io, time::Duration};

use rustix::process::Signal;
use snafu::{ResultExt, Snafu};
use tokio::time::{Instant, sleep};

use crate::{Cgroup, Handle, Identity, Process, carries, family::Family, outputs::Outputs, pid_namespace, processes};

/// How long whoever handles TERM is given.
const GRACE: Duration = Duration::from_millis(500);
/// How long killed processes are waited for: one in the middle of a write to a dead disk stays longer.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A process and what it started. Dropping it ends nothing.
#[derive(Debug)]
pub struct Tree {
    family: Family,
    first: Identity,
    /// Who started the first: it is not of the tree, though it may have all that its members are known by.
    parent: Option<i32>,
    namespace: String,
    outputs: Outputs,
    /// A variable that only they have in their environment.
    mark: Option<String>,
    cgroup: Option<Cgroup>,
}

/// Why something may still be running.
#[derive(Debug, Snafu)]
#[snafu(visibility(pub(crate)))]
pub enum Remaining {
    #[snafu(display("failed to list the processes: {source}"))]
    Unseen { source: io::Error },
    #[snafu(display("not allowed to end process {pid}: the agent needs CAP_KILL"))]
    NotAllowed { pid: i32, source: io::Error },
    #[snafu(display("process {pid} did not end after SIGKILL"))]
    Stubborn { pid: i32 },
}

impl Tree {
    /// Whatever comes of this process, in its pid namespace. `mark` is `NAME=value`.
    pub fn of(first: Identity, mark: Option<String>, cgroup: Option<Cgroup>) -> io::Result<Self> {
        let (family, namespace) = (Family::of(first), pid_namespace(first.pid)?);
        let (parent, outputs) = (Process::of(first.pid).map(|process| process.parent), Outputs::of(first.pid));
        Ok(Self { family, first, parent, namespace, outputs, mark, cgroup })
    }

    /// What is left of it, long after it began. Where it prints to is no sign any more: that may be what the container's
    /// own processes print to.
    pub(crate) fn left_of(first: Identity, mark: String) -> io::Result<Self> {
        Ok(Self { outputs: Outputs::default(), ..Self::of(first, Some(mark), None)? })
    }

    /// Looks who is there now. The more often, the fewer get away from a tree without a cgroup.
    pub fn observe(&mut self) -> io::Result<()> {
        self.look().map(drop)
    }

    fn look(&mut self) -> io::Result<Vec<Process>> {
        let all = processes()?;
        if let Some(cgroup) = &self.cgroup {
            self.family.add(cgroup.members()?);
        }
        self.family.observe(&all, |pid| is_in(pid, &self.namespace));
        Ok(all)
    }

    /// Those that left session and parent between two looks: found by what they took along.
    fn look_for_strays(&mut self, all: &[Process]) {
        let others = all.iter().map(|process| process.identity).filter(|identity| {
            identity.started >= self.first.started && Some(identity.pid) != self.parent && !self.family.knows(identity)
        });
        let marked = |pid| self.mark.as_ref().is_some_and(|mark| carries(pid, mark));
        let strays = others.filter(|Identity { pid, .. }| {
            is_in(*pid, &self.namespace) && (marked(*pid) || self.outputs.are_held_by(*pid))
        });
        let strays: Vec<Identity> = strays.collect();
        self.family.add(strays);
    }

    /// Lets them be, but for the cgroup they were in.
    pub fn release(self) {
        self.remove_cgroup();
    }

    fn remove_cgroup(&self) {
        if let Some(Err(error)) = self.cgroup.as_ref().map(Cgroup::remove) {
            // With its container it goes by itself; else it is an empty folder.
            tracing::debug!(%error, "failed to remove the cgroup of a command");
        }
    }

    /// Ends all of them: asks, then kills. Nothing is left when this is `Ok`.
    pub async fn end(mut self) -> Result<(), Remaining> {
        let ended = self.terminate_then_kill().await;
        self.remove_cgroup();
        ended
    }

    async fn terminate_then_kill(&mut self) -> Result<(), Remaining> {
        let alive = self.alive()?;
        send(&alive, Signal::TERM)?;
        let deadline = Instant::now() + GRACE;
        while !self.alive()?.is_empty() && Instant::now() < deadline {
            sleep(LOOK_AGAIN).await;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let alive = self.stop_all()?;
            let Some(one) = alive.first() else { return Ok(()) };
            send(&alive, Signal::KILL)?;
            if Instant::now() >= deadline {
                return StubbornSnafu { pid: one.pid }.fail();
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Stops everyone, so that nobody starts another while they are counted. Returns them.
    fn stop_all(&mut self) -> Result<Vec<Identity>, Remaining> {
        let mut stopped = Vec::new();
        loop {
            let alive = self.alive()?;
            let new: Vec<Identity> = alive.iter().filter(|one| !stopped.contains(*one)).copied().collect();
            if new.is_empty() {
                return Ok(alive);
            }
            send(&new, Signal::STOP)?;
            stopped.extend(new);
        }
    }

    fn alive(&mut self) -> Result<Vec<Identity>, Remaining> {
        let all = self.look().context(UnseenSnafu)?;
        self.look_for_strays(&all);
        // Their descendants.
        self.family.observe(&all, |pid| is_in(pid, &self.namespace));
        Ok(self.family.alive(&all))
    }
}

fn is_in(pid: i32, namespace: &str) -> bool {
    pid_namespace(pid).is_ok_and(|of_it| of_it == namespace)
}

fn send(to: &[Identity], signal: Signal) -> Result<(), Remaining> {
    for identity in to {
        let sent = Handle::open(*identity).and_then(|handle| handle.map_or(Ok(false), |handle| handle.send(signal)));
        sent.map_err(io::Error::from).context(NotAllowedSnafu { pid: identity.pid })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::{CommandExt, ExitStatusExt},
        process::{Child, Command, ExitStatus, Stdio},
    };

    use super::*;
    use crate::arguments;

    /// Seconds to sleep that nobody else sleeps: so the sleepers of one test are found.
    fn unique(test: u32) -> String {
        format!("9{}{test:03}", std::process::id())
    }

    fn sleepers(seconds: &str) -> Vec<i32> {
        let all = processes().unwrap().into_iter().filter(|process| !process.ended).map(|process| process.identity.pid);
        all.filter(|pid| arguments(*pid).is_some_and(|arguments| arguments == ["sleep", seconds])).collect()
    }

    /// Killed with its test, however that ends.
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }

    impl Killed {
        fn wait(&mut self) -> ExitStatus {
            self.0.wait().unwrap()
        }
    }

    async fn started(script: &str, mark: Option<&str>, seconds: &str, sleeping: usize) -> (Killed, Tree) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        if let Some((name, value)) = mark.and_then(|mark| mark.split_once('=')) {
            command.env(name, value);
        }
        let child = Killed(command.spawn().unwrap());
        let first = Process::of(i32::try_from(child.0.id()).unwrap()).unwrap().identity;
        let tree = Tree::of(first, mark.map(str::to_owned), None).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while sleepers(seconds).len() != sleeping {
            assert!(Instant::now() < deadline, "{} of {sleeping} came", sleepers(seconds).len());
            tokio::task::yield_now().await;
        }
        (child, tree)
    }

    #[tokio::test]
    async fn everyone_who_came_of_it_ends_and_nobody_else() {
        let (ours, other) = (unique(1), unique(2));
        let (_stranger, _) = started(&format!("exec sleep {other}"), None, &other, 1).await;
        let script = format!("(setsid sleep {ours} & sleep {ours} & wait) & sleep {ours}");
        let (mut child, mut tree) = started(&script, None, &ours, 3).await;
        tree.observe().unwrap();
        tree.end().await.unwrap();
        child.wait();
        assert_eq!(sleepers(&ours), []);
        assert_eq!(sleepers(&other).len(), 1);
    }

    #[tokio::test]
    async fn who_ignores_term_is_killed() {
        let seconds = unique(3);
        let script = format!("trap '' TERM; sleep {seconds} & wait; sleep {seconds}");
        let (mut child, tree) = started(&script, None, &seconds, 1).await;
        tree.end().await.unwrap();
        assert_eq!(child.wait().signal(), Some(9));
        assert_eq!(sleepers(&seconds), []);
    }

    #[tokio::test]
    async fn a_daemon_that_nobody_saw_go_is_found_by_its_mark() {
        let seconds = unique(4);
        let mark = format!("BOATHOOK_TEST_MARK={seconds}");
        // Its parents have ended when it is first looked for, and its session is its own.
        let script = format!("(setsid sh -c 'sleep {seconds} & exit' &) ; exit");
        let (mut child, tree) = started(&script, Some(&mark), &seconds, 1).await;
        child.wait();
        tree.end().await.unwrap();
        assert_eq!(sleepers(&seconds), []);
    }

    #[tokio::test]
    async fn a_daemon_without_its_environment_is_found_by_the_pipe_that_it_holds() {
        let seconds = unique(6);
        let script = format!("(setsid env -i sleep {seconds} &) ; exec sleep {seconds}");
        let mut command = Command::new("sh");
        let child = command.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut child = Killed(child);
        let first = Process::of(i32::try_from(child.0.id()).unwrap()).unwrap().identity;
        let tree = Tree::of(first, None, None).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while sleepers(&seconds).len() != 2 {
            assert!(Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
        tree.end().await.unwrap();
        child.wait();
        assert_eq!(sleepers(&seconds), []);
    }

    #[tokio::test]
    async fn what_is_released_goes_on() {
        let seconds = unique(5);
        let (mut child, tree) = started(&format!("exec sleep {seconds}"), None, &seconds, 1).await;
        tree.release();
        assert_eq!(child.0.try_wait().unwrap(), None);
    }
}
