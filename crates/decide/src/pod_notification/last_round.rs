//! The undo once more, when the time is over, of what may have outlived the first one.
//!
//! Through the API server nothing can be ended, and of a stream that was lost nobody knows what became of its command:
//! what still runs when it is undone does its work after that. An agent ends what it started, but not always: a process
//! may not be found or not be killed, and what was asked by HTTP cannot be called back. So nothing of it holds longer than
//! the undo was to wait.

use boathook_api::{
    outcome::{Ended, Outcome},
    pod_notification::{ContainerNotificationStatus, ErrorType, PodNotificationStatus},
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};

use super::{Decision, Due, Effect, Object, Observed, Progress, Role, SeenPod, earliest, errors, rounds, undo};
use crate::{Gravity, last_lines::with_last_lines, moment::moment};

/// How long after the handlers' end, where the undo waits for ever, or no longer than they took.
const WITHOUT_EXPIRY: SignedDuration = SignedDuration::from_secs(30);

/// How long an object that nobody wants any more is kept after its last round: whoever asks at a cut what was taken back
/// in a pod asks the objects that are there.
const KEPT: SignedDuration = SignedDuration::from_mins(10);

/// How the message of a failed round begins.
pub(super) const FAILED_ONCE_MORE: &str = "the undo ran once more, because the handler may have continued, and failed";

/// How often it is looked whether there is still something to undo it in, once nobody wants the object any more.
pub(super) const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// When it is due, if it is owed.
pub(super) fn due(object: &Object<'_>) -> Option<Due> {
    let due = when(object).filter(|_| errors::undo_succeeded(&object.status) && !object.is_abandoned())?;
    object.status.containers.iter().any(|record| is_owed(record, due.recorded())).then_some(due)
}

/// Whether it is for this process to run it.
pub(super) fn is_for(observed: &Observed<'_>, object: &Object<'_>) -> bool {
    undo::is_executor(observed, object) && !observed.me.role.is_thaw_only()
}

/// When to look again, before it is due or while another is to run it.
pub(super) fn again(object: &Object<'_>, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
    // Nobody tells when the pod goes, and its namespace may wait for that.
    let look_for_pod = object.is_deleted().then(|| now + PATIENCE);
    let then = if now < due { due } else { now + super::PATIENCE };
    earliest(Some(then), look_for_pod)
}

/// Whether the object is held for it, as long as its pod is there.
pub(super) fn holds(object: &Object<'_>) -> bool {
    due(object).is_some() || object.has_finalizer() && kept_until(object).is_some()
}

/// Whether the pod is not known to be gone, or to have ended.
pub(super) fn has_a_pod(observed: &Observed<'_>) -> bool {
    match &observed.pod {
        SeenPod::Unknown => true,
        SeenPod::There(pod) => !pod.over,
        SeenPod::Gone { .. } => false,
    }
}

/// Nothing outlives its pod. An agent that is to run this round reads that here, because it does not know whether a pod that
/// has ended will run again; and so does the hook, which is thawed for certain then.
pub(super) fn close(object: &Object<'_>) -> Decision {
    let mut status = object.status.clone();
    status.containers.iter_mut().for_each(|record| record.process_may_remain = None);
    Decision { effects: vec![Effect::WriteStatus(Box::new(status))], ..Decision::default() }
}

/// It is due.
pub(super) fn decide(observed: &Observed<'_>, object: &Object<'_>, due: Due, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    // A round that began in the future began before the wall clock was stepped back: nothing tells whether it was due.
    let was_due = |ended: &Ended| due.here(&observed.moved) <= ended.started && ended.started <= now;
    match &observed.undo {
        Progress::Running => {}
        Progress::Ended { results, round } if results.iter().any(|(_, ended)| was_due(ended)) => {
            return self::ended(observed.me.role, object, results, *round, due, now);
        }
        // What ended by now had begun too early.
        Progress::Idle | Progress::Ended { .. } => {
            let work = rounds::recorded(&object.status, |record| is_owed(record, due.recorded()));
            match work.is_empty() {
                // A hand that changed what was recorded has made it nobody's to run.
                true if object.has_finalizer() => decision.effects.push(Effect::RemoveFinalizer),
                true => {}
                false => decision.effects.push(Effect::StartUndo(work)),
            }
        }
    }
    decision
}

/// Until when an object is kept that was deleted, and undone once more.
pub(super) fn kept_until(object: &Object<'_>) -> Option<Due> {
    let records = object.status.containers.iter().filter(|record| record.process_may_remain == Some(true));
    let ends = records.filter_map(|record| record.undo.as_ref()?.complete_time.as_ref());
    let due = when(object).filter(|_| object.is_deleted())?.recorded();
    ends.map(|end| end.0).filter(|end| due <= *end).max().map(|end| Due { from: end, after: KEPT })
}

fn ended(
    role: Role,
    object: &Object<'_>,
    results: &[(String, Ended)],
    round: u32,
    due: Due,
    now: Timestamp,
) -> Decision {
    let mut decision = Decision::default();
    // Nothing outlives its pod, and an agent sees for itself that there is none. The controller asks for it.
    let outlived = |ended: &Ended| role == Role::Agent && is_without_pod(ended);
    let failed = |ended: &Ended| Some(with_last_lines(&ended.outcome.failure()?.message, &ended.output));
    let failure = results.iter().filter(|(_, ended)| !outlived(ended)).find_map(|(_, ended)| failed(ended));
    if let Some(failure) = failure {
        let work = rounds::failed(object, results);
        rounds::try_again(object, work, results, round, now, &mut decision);
        if round == 1 && decision.effects.is_empty() {
            let message = format!("{FAILED_ONCE_MORE}: {failure}");
            let mut status = object.status.clone();
            say(&mut status, &message);
            if status.conditions != object.status.conditions {
                decision.effects.push(Effect::WriteStatus(Box::new(status)));
                decision.reports.push(undo::report(Gravity::Warning, reason::UNDO_FAILED, message));
            }
        }
        return decision;
    }
    let mut status = object.status.clone();
    for (container, ended) in results {
        write_down(&mut status, container, ended, due.recorded());
    }
    say(&mut status, "undone in every container, and once more at the end");
    decision.effects.extend([Effect::WriteStatus(Box::new(status)), Effect::ForgetUndo]);
    decision
}

/// Adds to the condition of an undo, which has succeeded before, how this round went.
fn say(status: &mut PodNotificationStatus, message: &str) {
    for undone in status.conditions.iter_mut().filter(|one| one.type_ == condition::UNDONE) {
        message.clone_into(&mut undone.message);
    }
}

/// The records order this round after the handlers' end and the wait, also if the clock of this process is behind the one
/// that recorded these: without that the round would be owed again.
fn write_down(status: &mut PodNotificationStatus, container: &str, ended: &Ended, due: Timestamp) {
    let Some(record) = status.containers.iter_mut().find(|record| record.name == container) else { return };
    match (&ended.outcome, record.undo.as_mut()) {
        (Outcome::Succeeded, Some(undo)) => {
            rounds::write_down(undo, ended);
            undo.start_time = Some(moment(ended.started.max(due)));
            undo.complete_time = Some(moment(ended.completed.max(due)));
        }
        (Outcome::Failed(_) | Outcome::Unknown(_), _) => record.process_may_remain = None,
        (Outcome::Succeeded, None) => {}
    }
}

fn is_without_pod(ended: &Ended) -> bool {
    ended.outcome.failure().is_some_and(|failure| failure.kind == ErrorType::PodNotFound)
}

fn when(object: &Object<'_>) -> Option<Due> {
    let claimed = object.status.claim.as_ref()?.time.0;
    let completed = object.status.complete_time.as_ref()?.0;
    let after = object.object.spec.undo.as_ref()?.after_seconds;
    let expires = after.map(|after| Due { from: claimed, after: SignedDuration::from_secs(after.into()) });
    // What has outlived that as well has no time of its own any more.
    let soon = Due { from: completed, after: WITHOUT_EXPIRY };
    Some(expires.filter(|expires| completed < expires.recorded()).unwrap_or(soon))
}

fn is_owed(record: &ContainerNotificationStatus, due: Timestamp) -> bool {
    let begun = |time: Option<Timestamp>| time.is_some_and(|begun| due <= begun);
    let undo = record.undo.as_ref();
    record.process_may_remain == Some(true)
        && undo.is_some_and(|undo| !begun(undo.start_time.as_ref().map(|time| time.0)))
}
