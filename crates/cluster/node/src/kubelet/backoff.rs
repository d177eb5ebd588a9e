//! How long a failing container or image waits for its next try: nothing, then 10 s, doubled up to 5 minutes.

use jiff::{SignedDuration, Timestamp};

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_secs(300);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    /// The wait before the next try, and when it was last made longer.
    current: Option<(SignedDuration, Timestamp)>,
}

impl Backoff {
    /// The wait that follows a failure, if any.
    pub(super) fn wait(&self, failed: Timestamp) -> Option<SignedDuration> {
        let (wait, raised) = self.current?;
        // A container that ran long enough begins anew.
        (failed.duration_since(raised) <= LONGEST * 2).then_some(wait)
    }

    /// To be called with each try.
    pub(super) fn raise(&mut self, now: Timestamp) {
        let next = self.wait(now).map_or(FIRST, |wait| (wait * 2).min(LONGEST));
        self.current = Some((next, now));
    }
}

/// As Go prints it: `10s`, `1m20s`, `5m0s`.
pub(super) fn go_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_first_restart_is_at_once_and_the_wait_doubles_to_five_minutes() {
        let mut backoff = Backoff::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(backoff.wait(at(0)).map(go_duration));
            backoff.raise(at(0));
        }
        let waits: Vec<_> = waits.iter().map(|wait| wait.as_deref().unwrap_or("none")).collect();
        assert_eq!(waits, ["none", "10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
    }

    #[test]
    fn ten_quiet_minutes_forget_the_wait() {
        let mut backoff = Backoff::default();
        backoff.raise(at(0));
        backoff.raise(at(0));
        assert!(backoff.wait(at(600)).is_some());
        assert_eq!(backoff.wait(at(601)), None);
        backoff.raise(at(601));
        assert_eq!(backoff.wait(at(601)), Some(FIRST));
    }
}
