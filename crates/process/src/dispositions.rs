//! What a process does with signals.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
};

use rustix::process::Signal;

/// The number of `rt_sigtimedwait`, by which a thread waits for signals.
#[cfg(target_arch = "x86_64")]
const WAIT_FOR_SIGNALS: &str = "128";
#[cfg(not(target_arch = "x86_64"))]
const WAIT_FOR_SIGNALS: &str = "137";

/// Bit N-1 is for signal N, in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dispositions {
    caught: u64,
    blocked: u64,
    /// While a thread waits for signals, the kernel does not count them as blocked by it.
    awaited: u64,
}

impl Dispositions {
    pub fn of(pid: i32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let told = parse(&status).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { awaited: awaited(pid), ..told })
    }

    /// It has a handler for it, keeps it for later, or waits for it. Otherwise the signal would be lost, or end the
    /// process.
    pub fn handles(self, signal: Signal) -> bool {
        (self.caught | self.blocked | self.awaited) & (1 << (signal.as_raw() - 1)) != 0
    }
}

fn parse(status: &str) -> Option<Dispositions> {
    let mask = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?.strip_prefix(':')?;
        u64::from_str_radix(value.trim(), 16).ok()
    };
    Some(Dispositions { caught: mask("SigCgt")?, blocked: mask("SigBlk")?, awaited: 0 })
}

/// What its threads wait for. Nothing, if that is not ours to look at.
fn awaited(pid: i32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let calls = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("syscall")).ok());
    calls
        .filter_map(|call| set_in_memory(&call))
        .filter_map(|place| read_set(pid, place).ok())
        .fold(0, |all, one| all | one)
}

/// Where the set is that a thread waits for, if that is what it does: the first argument of the call it is in.
fn set_in_memory(call: &str) -> Option<u64> {
    let mut words = call.split_ascii_whitespace();
    words.next().filter(|number| *number == WAIT_FOR_SIGNALS)?;
    u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()
}

fn read_set(pid: i32, place: u64) -> io::Result<u64> {
    let mut set = [0; 8];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut set, place)?;
    Ok(u64::from_ne_bytes(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_catches_or_blocks_a_signal_handles_it() {
        // HUP (1) is blocked, USR1 (10) caught, INT (2) ignored.
        let status = "Name:\tSigCgt\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000000002\nSigCgt:\t0000000000000200\n";
        let dispositions = parse(status).unwrap();
        assert!(dispositions.handles(Signal::HUP) && dispositions.handles(Signal::USR1));
        assert!(!dispositions.handles(Signal::INT) && !dispositions.handles(Signal::TERM));
        assert!(Dispositions { awaited: 2, ..dispositions }.handles(Signal::INT));
    }

    #[test]
    fn a_thread_that_waits_for_signals_says_where_they_are() {
        let waiting = format!("{WAIT_FOR_SIGNALS} 0x7ffd10 0x0 0x0 0x8 0x0 0x0 0x7ffc00 0x7f11\n");
        assert_eq!(set_in_memory(&waiting), Some(0x7f_fd10));
        assert_eq!(set_in_memory("0 0x3 0x7f 0x1 0x0 0x0 0x0 0x7ffc 0x7f1\n"), None);
        assert_eq!(set_in_memory("running\n"), None);
    }

    #[test]
    fn a_status_that_does_not_say_is_an_error() {
        assert_eq!(parse("Name:\ta\n"), None);
        assert!(Dispositions::of(i32::MAX).is_err());
        assert!(Dispositions::of(i32::try_from(std::process::id()).unwrap()).is_ok());
    }
}
