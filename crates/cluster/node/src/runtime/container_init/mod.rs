//! The hidden subcommand that makes a container, in two stages of one thread each.
//!
//! `keep` enters the namespaces that only children can be in, starts `become`, and stays outside as the parent of
//! the container: when the node is gone (its end of a pipe closes) it ends the container. `become` is the first
//! process of the container: it builds the root and then becomes the command, so that the command is pid 1.

mod command;
mod filesystem;
pub(super) mod namespaces;

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags};
use rustix::io::FdFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use super::plan::{Answer, Isolation, Plan};

/// The first argument that asks for this.
pub(super) const SUBCOMMAND: &str = "container-init";

/// If this process was started as `container-init`: does it, and does not return. To be called first in `main`,
/// before any thread is started.
pub fn run_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, subcommand, stage, plan, answers, node] = arguments.as_slice() else { return };
    if subcommand != SUBCOMMAND {
        return;
    }
    let fd = |number: &String| number.parse::<RawFd>().ok().and_then(namespaces::inherited);
    let (Some(plan), Some(answers), Some(node)) = (fd(plan), fd(answers), fd(node)) else {
        eprintln!("container-init is started by the node, not by hand");
        std::process::exit(125);
    };
    let pipes = Pipes { plan: plan.into(), answers: answers.into(), node };
    let ended = match stage.as_str() {
        "keep" => keep(pipes),
        _ => first_process(pipes),
    };
    std::process::exit(ended);
}

/// What the node hands down, under the same numbers in both stages.
struct Pipes {
    plan: File,
    /// Closed by all when the command runs.
    answers: File,
    /// Ends when the node does, or when it wants the container to.
    node: OwnedFd,
}

impl Pipes {
    fn read_plan(&mut self) -> io::Result<Plan> {
        let mut text = String::new();
        self.plan.rewind()?;
        self.plan.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Says something to the node. A node that is gone needs no answer.
    fn answer(&mut self, answer: &Answer) {
        let mut line = serde_json::to_vec(answer).expect("an answer is plain data");
        line.push(b'\n');
        self.answers.write_all(&line).ok();
    }
}

/// What a real node reports as the exit code of a container that could not be started.
const NOT_STARTED: i32 = 128;

fn keep(mut pipes: Pipes) -> i32 {
    let started = pipes.read_plan().and_then(|plan| {
        let watched = enter(&plan)?;
        let child = Command::new("/proc/self/exe")
            .args([SUBCOMMAND, "become"])
            .args([pipes.plan.as_raw_fd(), pipes.answers.as_raw_fd(), pipes.node.as_raw_fd()].map(|fd| fd.to_string()))
            .spawn()?;
        Ok((plan, watched, child))
    });
    let (plan, watched, mut child) = match started {
        Ok(started) => started,
        Err(error) => {
            pipes.answer(&Answer::Error(error.to_string()));
            return NOT_STARTED;
        }
    };
    pipes.answer(&Answer::Pid(child.id()));
    drop(pipes.answers);
    wait(&mut child, &pipes.node, watched.as_ref(), plan.isolation()).unwrap_or(255)
}

/// Enters what only children can be in. Returns the process whose end must be the command's end too.
fn enter(plan: &Plan) -> io::Result<Option<OwnedFd>> {
    match plan {
        Plan::Start { isolation: Isolation::Root, .. } => namespaces::unshare(UnshareFlags::NEWPID)?,
        Plan::Start { isolation: Isolation::Rootless, .. } => {
            let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
            namespaces::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID)?;
            map_one_user((0, 0), (uid.as_raw(), gid.as_raw()))?;
        }
        Plan::Exec { isolation: Isolation::Root, target, .. } => {
            namespaces::enter(*target, "pid", LinkNameSpaceType::ProcessID)?;
        }
        Plan::Exec { isolation: Isolation::Rootless, target, keeper, .. } => {
            namespaces::enter(*keeper, "user", LinkNameSpaceType::User)?;
            namespaces::enter(*target, "pid", LinkNameSpaceType::ProcessID)?;
        }
        Plan::Start { isolation: Isolation::Plain, .. } => adopt_orphans()?,
        Plan::Exec { isolation: Isolation::Plain, target, .. } => {
            adopt_orphans()?;
            return pidfd(*target).map(Some);
        }
    }
    Ok(None)
}

/// Waits for the container's end, or brings it about when the node (or the container of an exec) is gone.
fn wait(child: &mut Child, node: &OwnedFd, watched: Option<&OwnedFd>, isolation: Isolation) -> io::Result<i32> {
    let ended = pidfd(child.id())?;
    let mut fds = vec![PollFd::new(&ended, PollFlags::IN), PollFd::new(node, PollFlags::IN)];
    fds.extend(watched.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
    loop {
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if fds[0].revents().is_empty() {
        child.kill()?;
    }
    let status = child.wait()?;
    if isolation == Isolation::Plain {
        kill_descendants();
    }
    // A shell's and a container runtime's way to tell an end by a signal.
    Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(255))
}

fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Without a pid namespace: ends what the command left behind, which came to this process as its reaper.
fn kill_descendants() {
    loop {
        let me = std::process::id();
        let parents: Vec<(u32, u32)> = processes();
        let mut family = vec![me];
        let mut next = 0;
        while next < family.len() {
            let parent = family[next];
            family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            next += 1;
        }
        if family.len() == 1 {
            return;
        }
        for pid in family.iter().skip(1).filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
        rustix::process::wait(rustix::process::WaitOptions::empty()).ok();
    }
}

/// Every process of this machine with its parent.
fn processes() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    })
    .collect()
}

/// Makes `inside` of the user namespace just entered stand for `outside` of the one around it.
fn map_one_user(inside: (u32, u32), outside: (u32, u32)) -> io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{} {} 1", inside.0, outside.0))?;
    std::fs::write("/proc/self/gid_map", format!("{} {} 1", inside.1, outside.1))
}

fn first_process(mut pipes: Pipes) -> i32 {
    match become_it(&mut pipes) {
        Ok(never) => match never {},
        Err(error) => pipes.answer(&Answer::Error(error.to_string())),
    }
    NOT_STARTED
}

fn become_it(pipes: &mut Pipes) -> io::Result<Infallible> {
    for fd in [pipes.plan.as_fd(), pipes.answers.as_fd(), pipes.node.as_fd()] {
        rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    let plan = pipes.read_plan()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::process::setsid()?;
    if plan.process().terminal {
        rustix::process::ioctl_tiocsctty(io::stdin())?;
    }
    match &plan {
        Plan::Start { isolation: Isolation::Plain, container, base } => filesystem::link_mounts(base, container)?,
        Plan::Start { isolation, container, base } => {
            namespaces::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC)?;
            rustix::system::sethostname(container.hostname.as_bytes())?;
            filesystem::build(base, container, *isolation)?;
        }
        Plan::Exec { isolation: Isolation::Plain, .. } => {}
        Plan::Exec { target, .. } => {
            // In this order: the others are found in the /proc that entering the mount namespace takes away.
            namespaces::enter(*target, "uts", LinkNameSpaceType::HostNameAndNISDomainName)?;
            namespaces::enter(*target, "ipc", LinkNameSpaceType::InterProcessCommunication)?;
            namespaces::enter(*target, "mnt", LinkNameSpaceType::Mount)?;
        }
    }
    command::make_directory(&plan);
    command::become_user(plan.process(), plan.isolation())?;
    // Changing the user took the first one back.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    command::become_command(&plan)
}
