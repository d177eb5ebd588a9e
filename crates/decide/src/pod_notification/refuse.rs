//! What ends before anything was run: refused, revoked, too late, or nothing to be done.

use boathook_api::{
    outcome::Failure,
    pod_notification::{ErrorType, PodNotificationStatus, State},
    words::{condition, reason},
};
use jiff::Timestamp;

use super::{Decision, Effect, Object, errors};
use crate::{
    About, Gravity, Report,
    conditions::{self, Saying},
    moment::moment,
};

/// Why it must not run any more.
pub(super) fn refusal(object: &Object<'_>, now: Timestamp) -> Option<Failure> {
    if object.is_revoked() {
        return Some(Failure::new(ErrorType::Revoked, "the undo was requested before the handler ran"));
    }
    if object.start_deadline().is_some_and(|deadline| deadline <= now) {
        let message = format!(
            "no executor claimed the PodNotification within {} s, so the handler was not run: check that the \
             controller and the agent of the pod's node run",
            object.object.spec.start_deadline_seconds
        );
        return Some(Failure::new(ErrorType::StartDeadlineExceeded, message));
    }
    None
}

/// No container declares it: done, and well.
pub(super) fn nothing_to_run(object: &Object<'_>, mut status: PodNotificationStatus, now: Timestamp) -> Decision {
    let notifier = object.object.spec.notifier.as_deref().unwrap_or_default();
    let message = format!("no container of the pod declares notifier `{notifier}`");
    status.state = State::Succeeded;
    status.complete_time = Some(moment(now));
    let saying =
        Saying { kind: condition::COMPLETE, status: "True", reason: reason::NO_MATCHING_NOTIFIER, message: &message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    let mut decision = Decision::default();
    say_nothing_to_undo(object, &mut status, now);
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision.reports.push(Report {
        about: About::Object,
        gravity: Gravity::Normal,
        reason: reason::NO_MATCHING_NOTIFIER.to_owned(),
        action: "Accept",
        note: message,
    });
    decision
}

/// The feature gate is off: nothing is run, and that is said.
pub(super) fn switched_off(object: &Object<'_>, now: Timestamp) -> Decision {
    let message = "the feature gate ContainerNotifier is off: start the controller with \
                   --feature-gates ContainerNotifier=true";
    refuse(object, reason::FEATURE_DISABLED, Failure::new(ErrorType::Unsupported, message), now)
}

/// It was written while no webhook asked whether its author may write it.
pub(super) fn unchecked_author(object: &Object<'_>, now: Timestamp) -> Decision {
    let message = "the PodNotification was created before Boathook's webhooks answered, so Boathook did not check \
                   whether its author may `create pods/exec`: create it again";
    refuse(object, reason::REFUSED, Failure::new(ErrorType::Forbidden, message), now)
}

/// It fails before it was accepted.
pub(super) fn refuse(object: &Object<'_>, why: &'static str, failure: Failure, now: Timestamp) -> Decision {
    let mut status = object.status.clone();
    let saying = Saying { kind: condition::ACCEPTED, status: "False", reason: why, message: &failure.message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    fail(object, status, failure, now)
}

/// It fails before anything was run.
pub(super) fn end(object: &Object<'_>, failure: Failure, now: Timestamp) -> Decision {
    fail(object, object.status.clone(), failure, now)
}

fn fail(object: &Object<'_>, mut status: PodNotificationStatus, failure: Failure, now: Timestamp) -> Decision {
    status.state = State::Failed;
    status.start_time.get_or_insert(moment(now));
    status.complete_time = Some(moment(now));
    // A claim that started nothing is none.
    status.claim = None;
    status.error = Some(errors::error(failure.kind, &failure.message, now));
    let saying =
        Saying { kind: condition::COMPLETE, status: "True", reason: reason::FAILED, message: &failure.message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    say_nothing_to_undo(object, &mut status, now);
    Decision {
        effects: vec![Effect::WriteStatus(Box::new(status))],
        reports: vec![Report {
            about: About::Object,
            gravity: Gravity::Warning,
            reason: errors::name(failure.kind),
            action: "Accept",
            note: failure.message,
        }],
        again: None,
    }
}

pub(super) fn say_nothing_to_undo(object: &Object<'_>, status: &mut PodNotificationStatus, now: Timestamp) {
    if object.object.spec.undo.is_some() {
        let saying = Saying {
            kind: condition::UNDONE,
            status: "True",
            reason: reason::NOTHING_TO_UNDO,
            message: "the handler was not run",
        };
        conditions::set(&mut status.conditions, saying, object.generation(), now);
    }
}
