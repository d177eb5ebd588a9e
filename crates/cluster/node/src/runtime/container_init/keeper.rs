//! The parent of a container's or an exec's first process: ends it when the node says so, and reports its end.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use super::super::handover::Handover;
use super::super::plan::{Answer, Isolation, Plan};
use super::{Answers, NOT_STARTED, first_process, namespaces};

/// Returns the exit code, in the keeper and in a first process that failed.
pub(super) fn keep(handover: Handover) -> i32 {
    let Handover { plan, answers, life, stdio } = handover;
    let mut answers = Answers::from(answers);
    answers.say(&Answer::Keeper(std::process::id()));
    let started = read(plan).and_then(|plan| {
        let watched = enter(&plan)?;
        Ok((namespaces::fork()?, plan, watched))
    });
    let (child, plan, watched) = match started {
        Ok((Some(child), plan, watched)) => (child, plan, watched),
        Ok((None, plan, _)) => {
            drop(life);
            return first_process::run(&plan, stdio, answers);
        }
        Err(error) => {
            answers.say(&Answer::Error(error.to_string()));
            return NOT_STARTED;
        }
    };
    // The streams end when the command and its children close them.
    drop(stdio);
    answers.say(&Answer::Pid(child.as_raw_nonzero().get().cast_unsigned()));
    drop(answers);
    let code = wait(child, &life, watched.as_ref(), plan.isolation()).unwrap_or(255);
    // A node that is gone needs no exit code.
    File::from(life).write_all(&code.to_be_bytes()).ok();
    code
}

/// The node wrote it through the same descriptor: it is read from its beginning.
fn read(plan: OwnedFd) -> io::Result<Plan> {
    let mut file = File::from(plan);
    io::Seek::rewind(&mut file)?;
    Ok(serde_json::from_str(&io::read_to_string(file)?)?)
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
            let target = Pid::from_raw(target.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
            return pidfd(target).map(Some);
        }
    }
    Ok(None)
}

/// Waits for the container's end, or brings it about when the node (or the container of an exec) is gone.
fn wait(child: Pid, life: &OwnedFd, watched: Option<&OwnedFd>, isolation: Isolation) -> io::Result<i32> {
    let ended = pidfd(child)?;
    let mut fds = vec![PollFd::new(&ended, PollFlags::IN), PollFd::new(life, PollFlags::IN)];
    fds.extend(watched.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut fds, None))?;
    if fds[0].revents().is_empty() {
        rustix::process::kill_process(child, Signal::KILL)?;
    }
    let status = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child), WaitOptions::empty()))?;
    if isolation == Isolation::Plain {
        kill_descendants();
    }
    let (_, status) = status.ok_or(io::ErrorKind::NotFound)?;
    // A shell's and a container runtime's way to tell an end by a signal.
    Ok(status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(255))
}

fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Without a pid namespace: ends what the command left behind, which came to this process as its reaper.
fn kill_descendants() {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            // Orphans become children of the reaper: without children there are no descendants.
            Err(Errno::CHILD) => return,
            Ok(Some(_)) | Err(_) => continue,
            Ok(None) => {}
        }
        let parents: Vec<(u32, u32)> = processes();
        let mut family = vec![std::process::id()];
        let mut next = 0;
        while next < family.len() {
            let parent = family[next];
            family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            next += 1;
        }
        for pid in family.iter().skip(1).filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
        rustix::process::wait(WaitOptions::empty()).ok();
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
pub(super) fn map_one_user(inside: (u32, u32), outside: (u32, u32)) -> io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{} {} 1", inside.0, outside.0))?;
    std::fs::write("/proc/self/gid_map", format!("{} {} 1", inside.1, outside.1))
}
