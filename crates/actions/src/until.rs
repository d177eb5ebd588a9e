//! Until when something may go on: a deadline, or a word to stop.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Cancel, cancel::Word};

#[derive(Clone, Debug)]
pub(crate) struct Until {
    /// How long was given in all, for messages.
    limit: Duration,
    deadline: Instant,
    cancel: Cancel,
    /// By which word it ends before its time.
    ends_by: Word,
}

/// Why something must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    TimeOver,
    Cancelled,
}

impl Until {
    pub(crate) fn within(limit: Duration, cancel: Cancel) -> Self {
        Self { limit, deadline: Instant::now() + limit, cancel, ends_by: Word::Stop }
    }

    /// The same, and not longer than `limit` from now.
    pub(crate) fn at_most(&self, limit: Duration) -> Self {
        let deadline = Instant::now() + limit;
        if deadline < self.deadline { Self { limit, deadline, ..self.clone() } } else { self.clone() }
    }

    /// The same, for what comes before something is begun: it is over as well when nothing more is to begin.
    pub(crate) fn before_more(&self) -> Self {
        Self { ends_by: Word::BeginNoMore, ..self.clone() }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Whether there is time for `duration` and then something more.
    pub(crate) fn has_time_after(&self, duration: Duration) -> bool {
        Instant::now() + duration < self.deadline
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits for the end.
    pub(crate) async fn over(&self) -> Stop {
        tokio::select! {
            biased;
            () = self.cancel.told(self.ends_by) => Stop::Cancelled,
            () = tokio::time::sleep_until(self.deadline) => Stop::TimeOver,
        }
    }

    /// Goes on with `work` until then. What must not go on is dropped; what is stopped already is never begun.
    pub(crate) async fn run<F: Future>(&self, work: F) -> Result<F::Output, Stop> {
        tokio::select! {
            biased;
            stop = self.over() => Err(stop),
            done = work => Ok(done),
        }
    }

    /// Waits this long, or until it is over.
    pub(crate) async fn pause(&self, duration: Duration) -> Result<(), Stop> {
        self.run(tokio::time::sleep(duration)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn what_takes_too_long_is_stopped_and_what_is_quick_is_not() {
        let until = Until::within(Duration::from_millis(5), Cancel::new());
        assert_eq!(until.run(std::future::pending::<()>()).await, Err(Stop::TimeOver));
        assert_eq!(Until::within(LONG, Cancel::new()).run(async { 7 }).await, Ok(7));
    }

    #[tokio::test]
    async fn what_is_cancelled_is_never_begun() {
        let cancel = Cancel::new();
        let until = Until::within(LONG, cancel.clone());
        cancel.cancel();
        let begun = until.run(async { unreachable!("it was cancelled") }).await;
        assert_eq!(begun, Err::<(), _>(Stop::Cancelled));
    }

    #[tokio::test]
    async fn when_nothing_more_is_to_begin_what_is_under_way_goes_on() {
        let cancel = Cancel::new();
        let until = Until::within(LONG, cancel.clone());
        cancel.begin_no_more();
        assert_eq!(until.run(async { 7 }).await, Ok(7));
        assert_eq!(until.before_more().run(async { 7 }).await, Err(Stop::Cancelled));
    }

    #[test]
    fn a_part_never_lasts_longer_than_the_whole() {
        let whole = Until::within(LONG, Cancel::new());
        assert_eq!(whole.at_most(LONG * 2).limit(), LONG);
        assert!(!whole.at_most(Duration::from_secs(1)).has_time_after(Duration::from_secs(1)));
    }
}
