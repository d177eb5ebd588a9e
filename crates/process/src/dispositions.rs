//! What a process does with signals.

use std::{fs, io};

use rustix::process::Signal;

/// Bit N-1 is for signal N, in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispositions {
    caught: u64,
    blocked: u64,
}

impl Dispositions {
    pub fn of(pid: i32) -> io::Result<Self> {
        parse(&fs::read_to_string(format!("/proc/{pid}/status"))?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// It has a handler for it, or keeps it to wait for it. Otherwise the signal would be lost, or end the process.
    pub fn handles(self, signal: Signal) -> bool {
        (self.caught | self.blocked) & (1 << (signal.as_raw() - 1)) != 0
    }
}

fn parse(status: &str) -> Option<Dispositions> {
    let mask = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?.strip_prefix(':')?;
        u64::from_str_radix(value.trim(), 16).ok()
    };
    Some(Dispositions { caught: mask("SigCgt")?, blocked: mask("SigBlk")? })
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
    }

    #[test]
    fn a_status_that_does_not_say_is_an_error() {
        assert_eq!(parse("Name:\ta\n"), None);
        assert!(Dispositions::of(i32::MAX).is_err());
        assert!(Dispositions::of(i32::try_from(std::process::id()).unwrap()).is_ok());
    }
}
