//! All of it: the handler, its probe, and further attempts within one time.

use std::time::Duration;

use boathook_api::pod_notification::{ErrorType, Retry};
use jiff::Timestamp;

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
    until: Until,
    started: Timestamp,
    attempts: i32,
    pause: Duration,
    /// Why the last attempt failed that another one followed.
    before: Option<String>,
}

impl Tries {
    fn new(work: &Work, cancel: Cancel) -> Self {
        let until = Until::within(work.action.timeout, cancel);
        Self { retry: work.retry, until, started: Timestamp::now(), attempts: 1, pause: FIRST_PAUSE, before: None }
    }

    /// Whether another attempt is to follow this one, after a pause that is over then.
    async fn goes_on_after(&mut self, attempt: &Attempt) -> bool {
        let again = self.retry == Retry::UntilTimeout && may_be_tried_again(attempt);
        if !again || !self.until.has_time_after(self.pause) || self.until.pause(self.pause).await.is_err() {
            return false;
        }
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        self.attempts += 1;
        self.before = attempt.outcome.failure().map(|failure| failure.message.clone());
        true
    }

    fn end_with(self, last: Attempt) -> Ended {
        let Self { started, attempts, before, .. } = self;
        let last = with_the_one_before(last, before);
        let Attempt { outcome, exit_code, output, container_id, process_may_remain } = last;
        let completed = Timestamp::now();
        Ended { outcome, exit_code, output, container_id, attempts, started, completed, process_may_remain }
    }
}

/// An attempt that was cut short by the time says nothing of why the ones before it failed: that is told as well.
fn with_the_one_before(attempt: Attempt, before: Option<String>) -> Attempt {
    let Attempt { outcome, .. } = &attempt;
    match (outcome, before) {
        (Outcome::Failed(failure), Some(before)) if failure.kind == ErrorType::HandlerTimeout => {
            let message = format!("{}; the attempt before it: {before}", failure.message);
            Attempt { outcome: Outcome::Failed(Failure::new(failure.kind, message)), ..attempt }
        }
        (Outcome::Succeeded | Outcome::Failed(_) | Outcome::Unknown(_), _) => attempt,
    }
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
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_was_cut_short_tells_why_the_one_before_it_failed() {
        let told = |attempt, before: Option<&str>| {
            let attempt = with_the_one_before(attempt, before.map(str::to_owned));
            attempt.outcome.failure().map(|failure| failure.message.clone())
        };
        let late = || Attempt::failed(ErrorType::HandlerTimeout, "too late");
        assert_eq!(told(late(), Some("exit code 7")).as_deref(), Some("too late; the attempt before it: exit code 7"));
        assert_eq!(told(late(), None).as_deref(), Some("too late"));
        let failed = Attempt::failed(ErrorType::HandlerFailed, "exit code 8");
        assert_eq!(told(failed, Some("exit code 7")).as_deref(), Some("exit code 8"));
        assert_eq!(told(Attempt::succeeded(), Some("exit code 7")), None);
    }

    #[test]
    fn what_may_be_running_or_cannot_change_is_not_tried_again() {
        let failed = Attempt::failed(ErrorType::HandlerFailed, "exit code 1");
        assert!(may_be_tried_again(&failed));
        assert!(!may_be_tried_again(&Attempt { process_may_remain: true, ..failed }));
        assert!(!may_be_tried_again(&Attempt::failed(ErrorType::PodNotFound, "gone")));
        assert!(!may_be_tried_again(&Attempt { process_may_remain: false, ..Attempt::unknown("lost") }));
        assert!(!may_be_tried_again(&Attempt::succeeded()));
    }
}
