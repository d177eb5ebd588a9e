//! When nothing is owed any more: what this process still has in mind, what holds the object, and its time to go.

use jiff::{SignedDuration, Timestamp};

use super::{Decision, Effect, Object, Observed, Progress, Role, earliest, resolve};
use crate::Leadership;

/// Nothing is owed: nothing holds the object, and it goes when its time is over.
pub(super) fn decide(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if matches!(observed.undo, Progress::Ended { .. }) {
        // Another said how it ended before this process could.
        decision.effects.push(Effect::ForgetUndo);
    }
    let Role::Controller { leadership, .. } = observed.me.role else { return decision };
    if object.has_finalizer() {
        decision.effects.push(Effect::RemoveFinalizer);
    }
    let ttl = object.object.spec.ttl_seconds_after_finished.filter(|_| leadership == Leadership::Leader);
    let (Some(ttl), false) = (ttl, object.is_deleted()) else { return decision };
    let complete = object.status.complete_time.as_ref().map(|time| time.0);
    let undos = object.status.containers.iter().filter_map(|record| record.undo.as_ref()?.complete_time.as_ref());
    let finished = undos.map(|time| time.0).chain(complete).max().unwrap_or(now);
    let ends = finished + SignedDuration::from_secs(ttl.into());
    if ends <= now {
        decision.effects.push(Effect::Delete);
    } else {
        decision.again = earliest(decision.again, Some(ends));
    }
    decision
}

/// A handler of this process returned after another had said how it ended, and perhaps undone it.
pub(super) fn late_return(observed: &Observed<'_>, object: &Object<'_>) -> Decision {
    let mut decision = Decision::default();
    if observed.undo == Progress::Running {
        // The one that runs began before the handler's return: another follows it.
        return decision;
    }
    decision.effects.push(Effect::ForgetRun);
    decision.effects.push(Effect::ForgetUndo);
    let recorded = object.status.containers.iter().filter_map(|record| Some((&record.name, record.undo.as_ref()?)));
    let again: Vec<_> =
        recorded.filter_map(|(name, undo)| Some((name.clone(), resolve::undo_work(&undo.action).ok()?))).collect();
    if !again.is_empty() {
        decision.effects.push(Effect::StartUndo(again));
    }
    decision
}
