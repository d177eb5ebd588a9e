//! What is left of a command whose holder died: closing its streams ended nothing.

use std::io;

use snafu::ResultExt;
use tokio::time::{Duration, Instant, sleep};

use crate::{Identity, Process, Remaining, Tree, carries, inspect::is_in_cgroup, processes, tree::UnseenSnafu};

/// How long those are ended one after the other whom nothing but their mark or their cgroup holds together.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// By what the command is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBehind {
    pub first: Identity,
    /// `NAME=value` in the environment of whatever came of it.
    pub mark: String,
    /// The name of the cgroup that was made for it.
    pub cgroup: String,
}

impl LeftBehind {
    /// Ends all of it. Nothing is left when this is `Ok`.
    pub async fn end(&self) -> Result<(), Remaining> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Before the look: a process that is seen past the deadline was not ended in time.
            let is_late = Instant::now() >= deadline;
            let Some(one) = self.oldest().context(UnseenSnafu)? else { return Ok(()) };
            if is_late {
                return Err(Remaining::Stubborn { pid: one.pid });
            }
            // A process that is not found has ended since.
            if let Ok(tree) = Tree::left_of(one, self.mark.clone()) {
                tree.end().await?;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The first of those that live: whoever came later may be its descendant.
    fn oldest(&self) -> io::Result<Option<Identity>> {
        let alive = processes()?.into_iter().filter(|process| !process.ended);
        let of_it = alive.map(|Process { identity, .. }| identity).filter(|identity| self.is_of_it(*identity));
        Ok(of_it.min_by_key(|identity| identity.started))
    }

    fn is_of_it(&self, one: Identity) -> bool {
        one == self.first
            || one.started >= self.first.started
                && (carries(one.pid, &self.mark) || is_in_cgroup(one.pid, &self.cgroup))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Child, Command, Stdio},
    };

    use super::*;

    /// Someone who sleeps, with this mark; killed with the test, however that ends.
    struct Sleeper(Child);

    impl Sleeper {
        fn marked(value: &str) -> Self {
            let mut command = Command::new("sh");
            command.args(["-c", "echo ready; exec sleep 1000"]).env("BOATHOOK_TEST_LEFT", value);
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            // Its environment is there a moment after `spawn` has returned.
            let mut said = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
            Self(child)
        }

        fn identity(&self) -> Identity {
            Process::of(i32::try_from(self.0.id()).unwrap()).unwrap().identity
        }

        fn runs(&mut self) -> bool {
            self.0.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }

    #[tokio::test]
    async fn the_first_and_all_that_are_marked_end_and_nobody_else() {
        let value = |which: &str| format!("{which}-{}", std::process::id());
        // Nothing but the mark holds the first two together.
        let mut first = Sleeper::marked(&value("a"));
        let left = LeftBehind {
            first: first.identity(),
            mark: format!("BOATHOOK_TEST_LEFT={}", value("a")),
            cgroup: "boathook-none".to_owned(),
        };
        let (mut second, mut other) = (Sleeper::marked(&value("a")), Sleeper::marked(&value("ab")));
        left.end().await.unwrap();
        assert!(!first.runs() && !second.runs() && other.runs());
        // A number that came again is somebody else.
        let earlier = Identity { started: other.identity().started - 1, ..other.identity() };
        LeftBehind { first: earlier, ..left }.end().await.unwrap();
        assert!(other.runs());
    }
}
