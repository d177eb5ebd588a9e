//! A hold on one process: signals that are sent through it reach that one or nobody.

use std::os::fd::OwnedFd;

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use crate::{Identity, Process};

#[derive(Debug)]
pub struct Handle {
    pidfd: OwnedFd,
    pub identity: Identity,
}

impl Handle {
    /// `None`: it has ended.
    pub fn open(identity: Identity) -> Result<Option<Self>, Errno> {
        let Some(handle) = Self::of(identity.pid)? else { return Ok(None) };
        Ok(Some(handle).filter(|handle| handle.identity == identity))
    }

    /// A hold on whoever has this number now. `None`: nobody.
    pub fn of(pid: i32) -> Result<Option<Self>, Errno> {
        let Some(number) = Pid::from_raw(pid.max(0)) else { return Ok(None) };
        let pidfd = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // The second: the number is a thread's of another process.
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Looked at after it was opened, and then sent to: if it is another one by then, the descriptor is the dead
        // one's, and a signal through it fails.
        Ok(Process::of(pid).map(|process| Self { pidfd, identity: process.identity }))
    }

    /// Whether it was still there to get it.
    pub fn send(&self, signal: Signal) -> Result<bool, Errno> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::Command};

    use super::*;

    #[test]
    fn a_signal_reaches_the_process_that_is_meant_and_no_other() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let identity = Process::of(pid).unwrap().identity;
        let earlier = Identity { started: identity.started - 1, ..identity };
        assert!(Handle::open(earlier).unwrap().is_none());

        let handle = Handle::open(identity).unwrap().unwrap();
        assert_eq!(handle.send(Signal::TERM), Ok(true));
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert_eq!(handle.send(Signal::TERM), Ok(false));
        assert!(Handle::open(identity).unwrap().is_none());
    }

    #[test]
    fn numbers_that_are_no_process_have_no_handle() {
        for number in [0, -1, i32::MAX] {
            assert!(Handle::of(number).unwrap().is_none(), "{number}");
        }
    }
}
