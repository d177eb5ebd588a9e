//! Entering namespaces and handing file descriptors to a child: the only unsafe code of the crate.
//!
//! Both are unsafe for what they do to a process with several threads. `container-init` has one thread: it runs
//! before anything else in `main`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::FdFlags;
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

/// Moves this process (for pids: its later children) into new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: no other thread of this process could be left behind with other files or another root.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Enters a namespace of the process `pid`.
pub(super) fn enter(pid: u32, name: &str, kind: LinkNameSpaceType) -> io::Result<()> {
    let namespace = std::fs::File::open(format!("/proc/{pid}/ns/{name}"))?;
    rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(kind)).map_err(io::Error::from)
}

/// Lets a command's process inherit these descriptors, under their numbers. They stay open as long as the command
/// value lives.
pub(crate) fn inherit(command: &mut Command, fds: Vec<OwnedFd>) {
    let share = move || {
        for fd in &fds {
            rustix::io::fcntl_setfd(fd.as_fd(), FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls only; it neither allocates nor locks.
    unsafe { command.pre_exec(share) };
}

/// A descriptor that was inherited under a number. It is never closed by this value's owner twice: each number is
/// taken once.
pub(super) fn inherited(number: RawFd) -> Option<OwnedFd> {
    if number <= 2 {
        return None;
    }
    // SAFETY: the borrow only asks whether the number is open.
    let open = rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).is_ok();
    // SAFETY: the parent opened it for this process, which takes it once, at its start.
    open.then(|| unsafe { OwnedFd::from_raw_fd(number) })
}
