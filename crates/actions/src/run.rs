//! All of it: the handler, its probe, and further attempts within one time.

use std::time::Duration;

use boathook_api::pod_notification::{ErrorType, Retry};
use jiff::Timestamp;

use crate::{
    Cancel, Ended, Outcome, Place, Target, Work,
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
        let started = Timestamp::now();
        let until = Until::within(work.action.timeout, cancel);
        let (mut attempts, mut pause) = (1, FIRST_PAUSE);
        let last = loop {
            let attempt = self.handle_and_probe(target, work, &until).await;
            let again = work.retry == Retry::UntilTimeout && may_be_tried_again(&attempt);
            if !again || !until.has_time_after(pause) || until.pause(pause).await.is_err() {
                break attempt;
            }
            pause = LONGEST_PAUSE.min(pause * 2);
            attempts += 1;
        };
        let Attempt { outcome, exit_code, output, container_id, process_may_remain } = last;
        let completed = Timestamp::now();
        Ended { outcome, exit_code, output, container_id, attempts, started, completed, process_may_remain }
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
    fn what_may_be_running_or_cannot_change_is_not_tried_again() {
        let failed = Attempt::failed(ErrorType::HandlerFailed, "exit code 1");
        assert!(may_be_tried_again(&failed));
        assert!(!may_be_tried_again(&Attempt { process_may_remain: true, ..failed }));
        assert!(!may_be_tried_again(&Attempt::failed(ErrorType::PodNotFound, "gone")));
        assert!(!may_be_tried_again(&Attempt { process_may_remain: false, ..Attempt::unknown("lost") }));
        assert!(!may_be_tried_again(&Attempt::succeeded()));
    }
}
