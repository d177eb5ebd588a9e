//! Namespaces, forks and signals: the only unsafe code of the crate.
//!
//! These calls are unsafe for what they do to a process with several threads. `container-init` has one thread: it
//! runs before anything else in `main`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use rustix::process::Pid;
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

/// Returns the child's pid to the parent, `None` to the child.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: no other thread of this process could hold a lock that the child needs.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Lets the kernel reap children: the parent does not wait for them.
pub(super) fn ignore_children() {
    // SAFETY: no handler runs.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Undoes `ignore_children`, which is inherited.
pub(super) fn wait_for_children() {
    // SAFETY: no handler runs.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Gives every signal its default effect. A process inherits ignored ones, such as SIGHUP under `nohup`.
pub(super) fn reset_signals() {
    // The kernel's `sigaction` and its set of signals: all zero is the default effect, without flags.
    let (default, size_of_set) = ([0_u64; 4], size_of::<u64>());
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: no handler runs, and the kernel reads no more than `default`. The call fails for KILL and STOP, which
        // cannot be ignored. It is made directly because the C library refuses two signals that it uses itself.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, std::ptr::null::<u64>(), size_of_set)
        };
    }
}
