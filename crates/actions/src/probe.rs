//! The probe after a handler: asked until it passes, or the notifier's time is over.

use std::time::Duration;

use boathook_api::{Probe, action::Deed, pod_notification::ErrorType};

use crate::{
    Outcome, Place, Target,
    outcome::Attempt,
    until::{Stop, Until},
};

/// What a probe came to.
pub(crate) enum Verdict {
    Passed,
    /// What to say instead of the handler's success.
    Failed(Attempt),
}

pub(crate) async fn ask(place: &Place, target: &Target, probe: &Probe, until: &Until) -> Verdict {
    let action = match probe.action() {
        Ok(action) => action,
        Err(wrong) => return Verdict::Failed(Attempt::failed(ErrorType::ProbeFailed, format!("probe: {wrong}"))),
    };
    let mut last = None;
    let mut passed_in_a_row = 0;
    let mut pause = probe.initial_delay();
    loop {
        if let Err(stop) = until.before_more().pause(pause).await {
            return Verdict::Failed(given_up(stop, last, until));
        }
        let attempt = place.attempt(target, &action.deed, &until.at_most(action.timeout)).await;
        match attempt.outcome {
            Outcome::Succeeded => passed_in_a_row += 1,
            Outcome::Failed(failure) | Outcome::Unknown(failure) => {
                passed_in_a_row = 0;
                // A try that the end cut short says less than the one before.
                if until.has_time_after(Duration::ZERO) || last.is_none() {
                    last = Some(failure.message);
                }
            }
        }
        if passed_in_a_row >= probe.success_threshold {
            return Verdict::Passed;
        }
        // A question that nobody answered is asked again, as a kubelet does.
        if attempt.process_may_remain && matches!(action.deed, Deed::Exec(_)) {
            // Asking again would leave one more behind.
            let message = format!("Boathook does not repeat the probe: {}", last.unwrap_or_default());
            let failed = Attempt::failed(ErrorType::ProbeFailed, message);
            return Verdict::Failed(Attempt { process_may_remain: true, ..failed });
        }
        pause = probe.period();
    }
}

fn given_up(stop: Stop, last: Option<String>, until: &Until) -> Attempt {
    let last = last.unwrap_or_else(|| "it did not run".to_owned());
    match stop {
        Stop::TimeOver => {
            let message = format!("the probe did not pass within {:?}; last result: {last}", until.limit());
            Attempt::failed(ErrorType::ProbeFailed, message)
        }
        Stop::Cancelled => {
            let message = format!("cancelled after the handler, before its probe passed; last result: {last}");
            Attempt { process_may_remain: false, ..Attempt::unknown(message) }
        }
    }
}
