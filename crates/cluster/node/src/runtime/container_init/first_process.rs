//! The first process of a container or of an exec: it builds or enters the container, and becomes the command.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use super::super::plan::{Answer, Isolation, Plan};
use super::{Answers, NOT_STARTED, command, filesystem, namespaces};

/// Returns only if the command could not be started. Every other descriptor of this process closes with the start of
/// the command.
pub(super) fn run(plan: &Plan, stdio: [OwnedFd; 3], mut answers: Answers) -> i32 {
    match become_it(plan, stdio) {
        Ok(never) => match never {},
        Err(error) => answers.say(&Answer::Error(error.to_string())),
    }
    NOT_STARTED
}

fn become_it(plan: &Plan, [stdin, stdout, stderr]: [OwnedFd; 3]) -> io::Result<Infallible> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    namespaces::reset_signals();
    rustix::stdio::dup2_stdin(stdin)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    rustix::process::setsid()?;
    if plan.process().terminal {
        rustix::process::ioctl_tiocsctty(io::stdin())?;
    }
    match plan {
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
    command::make_directory(plan);
    command::become_user(plan.process(), plan.isolation())?;
    // Changing the user took the first one back.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    command::become_command(plan)
}
