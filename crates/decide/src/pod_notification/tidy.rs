//! When nothing is owed any more: what this process still has in mind, what holds the object, and its time to go.

use boathook_api::{
    outcome::{Ended, Outcome},
    pod_notification::ErrorType,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Decision, Due, Effect, Object, Observed, Progress, Role, SeenPod, earliest, errors, execute, last_round, rounds,
};
use crate::Leadership;

/// Nothing is owed: nothing holds the object, and it goes when its time is over.
pub(super) fn decide(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let mut decision = leftovers(observed, object, now);
    let leads = matches!(observed.me.role, Role::Controller { leadership: Leadership::Leader, .. });
    let runs_last_round = last_round::is_for(observed, object);
    if leads && last_round::due(object).is_some() && has_ended(&observed.pod) {
        return last_round::close(object);
    }
    match last_round::due(object).filter(|_| last_round::has_a_pod(observed)) {
        Some(due) if due.here(&observed.moved) <= now && runs_last_round => {
            return last_round::decide(observed, object, due, now);
        }
        // The leader holds the object until then, whoever is to run it.
        Some(due) if leads || runs_last_round => {
            let again = last_round::again(object, due.here(&observed.moved), now);
            decision.again = earliest(decision.again, again);
            return decision;
        }
        Some(_) | None => {}
    }
    if !leads {
        return decision;
    }
    let kept = last_round::kept_until(object).map(|kept| kept.here(&observed.moved));
    if let Some(kept) = kept.filter(|kept| now < *kept && last_round::has_a_pod(observed)) {
        decision.again = earliest(decision.again, earliest(Some(kept), Some(now + last_round::PATIENCE)));
        return decision;
    }
    if last_round::due(object).is_some() {
        // The pod is gone and its node is not Ready: only a look at the node tells when nothing of it is left there.
        decision.again = earliest(decision.again, Some(now + super::PATIENCE));
    }
    if object.has_finalizer() {
        decision.effects.push(Effect::RemoveFinalizer);
    }
    let ttl = object.object.spec.ttl_seconds_after_finished;
    let (Some(ttl), false) = (ttl, object.is_deleted()) else { return decision };
    let complete = object.status.complete_time.as_ref().map(|time| time.0);
    let undos = object.status.containers.iter().filter_map(|record| record.undo.as_ref()?.complete_time.as_ref());
    let finished = undos.map(|time| time.0).chain(complete).max().unwrap_or(now);
    let ends = Due { from: finished, after: SignedDuration::from_secs(ttl.into()) }.here(&observed.moved);
    if ends <= now {
        decision.effects.push(Effect::Delete);
    } else {
        decision.again = earliest(decision.again, Some(ends));
    }
    decision
}

/// The object is gone, and what this process began for it is not.
pub(super) fn gone(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    match &observed.run {
        Progress::Idle => leftovers(observed, object, now),
        Progress::Running => Decision { effects: vec![execute::end(observed, object)], ..Decision::default() },
        Progress::Ended { .. } => late_return(observed, object),
    }
}

/// An undo of this process that nobody waits for: another said how it went, or it followed a late return, or sessions
/// are still held here. It has to succeed all the same, unless there is nothing left to undo it in.
fn leftovers(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    match &observed.undo {
        // Nobody asks for its sessions any more.
        Progress::Idle if !observed.sessions.of.is_empty() => {
            decision.effects.push(Effect::StartUndo(rounds::recorded(&object.status, |_| true)));
        }
        Progress::Idle | Progress::Running => {}
        Progress::Ended { results, .. } if is_over(observed, object, results) => {
            decision.effects.push(Effect::ForgetUndo);
        }
        Progress::Ended { results, round } => {
            rounds::try_again(object, rounds::failed(object, results), results, *round, now, &mut decision);
        }
    }
    decision
}

fn has_ended(pod: &SeenPod) -> bool {
    match pod {
        SeenPod::There(pod) => pod.over,
        // Nothing of it is left on a node that is Ready.
        SeenPod::Gone { node_ready } => *node_ready,
        SeenPod::Unknown => false,
    }
}

fn is_over(observed: &Observed<'_>, object: &Object<'_>, undo: &[(String, Ended)]) -> bool {
    let pod_is_gone = match &observed.pod {
        SeenPod::Gone { .. } => true,
        SeenPod::There(pod) => pod.over,
        SeenPod::Unknown => false,
    };
    let in_vain = |ended: &Ended| match &ended.outcome {
        Outcome::Succeeded => true,
        Outcome::Failed(failure) | Outcome::Unknown(failure) => failure.kind == ErrorType::PodNotFound,
    };
    // Nobody but this agent undoes anything here: it has succeeded, and what it tried beyond that nobody needs.
    let needless = observed.me.role == Role::Agent && errors::undo_succeeded(&object.status);
    pod_is_gone || object.is_given_up() || needless || undo.iter().all(|(_, ended)| in_vain(ended))
}

/// A handler of this process returned after another had said how it ended, and perhaps undone it.
pub(super) fn late_return(observed: &Observed<'_>, object: &Object<'_>) -> Decision {
    let mut decision = Decision::default();
    if observed.undo == Progress::Running {
        // The one that runs began before the handler's return: another follows it.
        return decision;
    }
    decision.effects.push(Effect::ForgetRun);
    let again = rounds::recorded(&object.status, |_| true);
    if !again.is_empty() {
        decision.effects.push(Effect::StartUndo(again));
    }
    decision
}
