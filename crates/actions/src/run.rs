//! All of it: the handler, its probe, and further attempts within one time.

use std::time::Duration;

use boathook_api::{
    action::Output,
    pod_notification::{ErrorType, Retry},
};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::{
    Cancel, Ended, Failure, Outcome, Place, Session, Target, Work,
    outcome::Attempt,
    probe::{self, Verdict},
    until::Until,
};

/// The pause before a second attempt; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Place {
    /// Runs it to its end: a success, a failure that is not tried again, or the end of its time. Nothing is done any
    /// more when this returns; if something could not be ended, `process_may_remain` says so.
    pub async fn run(&self, target: &Target, work: &Work, cancel: Cancel) -> Ended {
        let mut tries = Tries::new(work, cancel);
        loop {
            let attempt = self.handle_and_probe(target, work, &tries.until).await;
            if !tries.goes_on_after(&attempt).await {
                return tries.end_with(attempt);
            }
        }
    }

    /// Runs a command until it is ready, and keeps its session from then on; there is one only if that has succeeded.
    pub async fn hold(&self, target: &Target, work: &Work, cancel: Cancel) -> (Ended, Option<Session>) {
        let mut tries = Tries::new(work, cancel);
        loop {
            let (attempt, session) = self.begin(target, &work.action.deed, &tries.until).await;
            if !tries.goes_on_after(&attempt).await {
                let session = session.map(|session| session.showing(work.action.output));
                return (tries.end_with(attempt), session);
            }
        }
    }

    async fn handle_and_probe(&self, target: &Target, work: &Work, until: &Until) -> Attempt {
        let handled = self.attempt(target, &work.action.deed, until).await;
        let (Outcome::Succeeded, Some(probe)) = (&handled.outcome, &work.probe) else { return handled };
        match probe::ask(self, target, probe, until).await {
            Verdict::Passed => handled,
            Verdict::Failed(Attempt { outcome, process_may_remain, .. }) => {
                Attempt { outcome, process_may_remain, ..handled }
            }
        }
    }
}

/// One attempt after the other, as long as it may be tried again and there is time.
struct Tries {
    retry: Retry,
    output: Output,
    until: Until,
    started: Timestamp,
    attempts: i32,
    /// When the attempt that runs was begun.
    begun: Instant,
    pause: Duration,
    /// The last attempt that another one followed.
    before: Option<Attempt>,
}

impl Tries {
    fn new(work: &Work, cancel: Cancel) -> Self {
        let until = Until::within(work.action.timeout, cancel);
        let (started, begun) = (Timestamp::now(), Instant::now());
        Self {
            retry: work.retry,
            output: work.action.output,
            until,
            started,
            attempts: 1,
            begun,
            pause: FIRST_PAUSE,
            before: None,
        }
    }

    /// Whether another attempt is to follow this one, after a pause that is over then.
    async fn goes_on_after(&mut self, attempt: &Attempt) -> bool {
        let again = self.retry == Retry::UntilTimeout && may_be_tried_again(attempt);
        let pause = pause_within(self.until.left(), self.pause, self.begun.elapsed());
        let Some(pause) = pause.filter(|_| again) else { return false };
        if self.until.before_more().pause(pause).await.is_err() {
            return false;
        }
        self.begun = Instant::now();
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        self.attempts += 1;
        self.before = Some(attempt.clone().in_instance_of(self.before.as_ref()));
        true
    }

    fn end_with(self, last: Attempt) -> Ended {
        let Self { started, attempts, before, output: shown, .. } = self;
        let (last, attempts) = match before {
            // Nothing of the last one was run, but the handler was.
            Some(before) if was_revoked(&last) => (before, attempts - 1),
            before => {
                let last = last.in_instance_of(before.as_ref());
                let why = before.as_ref().and_then(|before| before.outcome.failure());
                (with_the_one_before(last, why.map(|failure| failure.message.clone())), attempts)
            }
        };
        let Attempt { outcome, exit_code, output, container_id, process_may_remain } = last;
        // Nothing beyond the executor ever has what is not to be shown.
        let (output, completed) = (shown.shown(output), Timestamp::now());
        Ended { outcome, exit_code, output, container_id, attempts, started, completed, process_may_remain }
    }
}

/// The pause before the next attempt: cut to the time that is left, so that a last attempt fits that takes as long as the
/// one before. None if there is no time for another attempt.
fn pause_within(left: Duration, pause: Duration, took: Duration) -> Option<Duration> {
    let longest = left.saturating_sub(took + FIRST_PAUSE);
    (left > 2 * FIRST_PAUSE).then(|| pause.min(longest).max(FIRST_PAUSE))
}

/// An attempt that was cut short by the time says nothing of why the ones before it failed: that is told as well.
fn with_the_one_before(attempt: Attempt, before: Option<String>) -> Attempt {
    let Attempt { outcome, .. } = &attempt;
    match (outcome, before) {
        (Outcome::Failed(failure), Some(before)) if failure.kind == ErrorType::HandlerTimeout => {
            let message = format!("{}; the previous attempt: {before}", failure.message);
            Attempt { outcome: Outcome::Failed(Failure::new(failure.kind, message)), ..attempt }
        }
        (Outcome::Succeeded | Outcome::Failed(_) | Outcome::Unknown(_), _) => attempt,
    }
}

fn was_revoked(attempt: &Attempt) -> bool {
    attempt.outcome.failure().is_some_and(|failure| failure.kind == ErrorType::Revoked)
}

/// Not what may be running still, what nobody knows about, and what will never be otherwise.
fn may_be_tried_again(attempt: &Attempt) -> bool {
    let Outcome::Failed(failure) = &attempt.outcome else { return false };
    let for_ever = match failure.kind {
        ErrorType::PodNotFound
        | ErrorType::Unsupported
        | ErrorType::Revoked
        | ErrorType::StartDeadlineExceeded
        | ErrorType::OutcomeUnknown
        | ErrorType::InvalidDeclaration
        | ErrorType::NotifierNotDeclared
        | ErrorType::UndoNotDeclared => true,
        ErrorType::HandlerTimeout
        | ErrorType::HandlerFailed
        | ErrorType::ContainerNotRunning
        | ErrorType::Forbidden
        | ErrorType::ProbeFailed
        | ErrorType::SignalNotHandled => false,
    };
    !for_ever && !attempt.process_may_remain
}

#[cfg(test)]
mod tests;
