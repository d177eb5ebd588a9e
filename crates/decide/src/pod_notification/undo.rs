//! After the handlers: the undo, if one is owed; then nothing holds the object any more.

use boathook_api::{
    outcome::{Ended, Outcome, Work},
    pod_notification::{Executor, PodNotificationStatus, State, UndoStatus},
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::{Decision, Effect, Object, Observed, Progress, Role, SeenPod, earliest, errors, resolve};
use crate::{
    About, Gravity, Leadership, Report,
    conditions::{self, Saying},
};

/// Between two rounds of an undo that fails: from one second, doubling, up to this.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// The object is in a terminal state.
pub(super) fn decide(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if matches!(observed.run, Progress::Ended { .. }) {
        // A handler of this process returned after another had said how it ended, and perhaps undone it.
        late_return(observed, object, &mut decision);
        return decision;
    }
    if !object.owes_undo() {
        return tidy(observed, object, now);
    }
    if let Some(closed) = close_without_undo(observed, object, now) {
        return closed;
    }
    if !is_executor(observed, object) {
        return decision;
    }
    match &observed.undo {
        Progress::Running => {}
        Progress::Idle if is_due(observed, object, now) => start(object, &mut decision),
        Progress::Idle => decision.again = object.expires(observed),
        Progress::Ended { results, round } => return ended(object, results, *round, now),
    }
    decision
}

/// Whether the undo is to run now.
pub(super) fn is_due(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> bool {
    let expired = object.expires(observed).is_some_and(|expires| expires <= now);
    object.is_revoked() || expired || object.status.state == State::Failed
}

/// Starts the undos that are not known to have succeeded.
pub(super) fn start(object: &Object<'_>, decision: &mut Decision) {
    let work = owed(&object.status);
    if !work.is_empty() {
        decision.effects.push(Effect::StartUndo(work));
    }
}

fn owed(status: &PodNotificationStatus) -> Vec<(String, Work)> {
    let recorded = status.containers.iter().filter_map(|record| Some((&record.name, record.undo.as_ref()?)));
    let open = recorded.filter(|(_, undo)| undo.succeeded != Some(true));
    // What was recorded was valid then; a hand that changed it since makes it nobody's to run.
    open.filter_map(|(name, undo)| Some((name.clone(), resolve::undo_work(&undo.action).ok()?))).collect()
}

fn late_return(observed: &Observed<'_>, object: &Object<'_>, decision: &mut Decision) {
    if observed.undo == Progress::Running {
        // The one that runs began before the handler's return: another follows it.
        return;
    }
    decision.effects.push(Effect::ForgetRun);
    decision.effects.push(Effect::ForgetUndo);
    let recorded = object.status.containers.iter().filter_map(|record| Some((&record.name, record.undo.as_ref()?)));
    let again: Vec<_> =
        recorded.filter_map(|(name, undo)| Some((name.clone(), resolve::undo_work(&undo.action).ok()?))).collect();
    if !again.is_empty() {
        decision.effects.push(Effect::StartUndo(again));
    }
}

fn is_executor(observed: &Observed<'_>, object: &Object<'_>) -> bool {
    let through_api = object.status.executor != Some(Executor::Agent);
    match observed.me.role {
        Role::Agent => !through_api,
        Role::Controller { leadership: Leadership::Leader, .. } => through_api,
        Role::Controller { leadership: Leadership::ThawOnly, .. } => through_api && object.is_mine(observed.me),
    }
}

/// There is nothing left to undo it in, or a person gave it up. The controller says so.
fn close_without_undo(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Option<Decision> {
    let Role::Controller { leadership: Leadership::Leader, .. } = observed.me.role else { return None };
    let (status, why, message) = match &observed.pod {
        _ if object.is_abandoned() => (
            "False",
            reason::ABANDONED,
            "the undo was given up by annotation: somebody must make sure that it was done",
        ),
        SeenPod::Gone { node_ready: true } => ("True", reason::POD_GONE, "the pod is gone"),
        SeenPod::There(pod) if pod.over => ("True", reason::POD_GONE, "the pod has ended"),
        SeenPod::Gone { node_ready: false } => (
            "Unknown",
            reason::THAW_UNCONFIRMED,
            "the pod is gone, but its node is not Ready: it may still run there, with nothing undone",
        ),
        SeenPod::Unknown | SeenPod::There(_) => return None,
    };
    let gravity = if status == "True" { Gravity::Normal } else { Gravity::Warning };
    Some(close(object, object.status.clone(), (status, why, message), gravity, now))
}

fn close(
    object: &Object<'_>,
    mut status: PodNotificationStatus,
    (truth, why, message): (&'static str, &'static str, &str),
    gravity: Gravity,
    now: Timestamp,
) -> Decision {
    let saying = Saying { kind: condition::UNDONE, status: truth, reason: why, message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    Decision {
        effects: vec![Effect::WriteStatus(Box::new(status)), Effect::ForgetUndo],
        reports: vec![report(gravity, why, message.to_owned())],
        again: None,
    }
}

/// A round of the undo has ended.
fn ended(object: &Object<'_>, results: &[(String, Ended)], round: u32, now: Timestamp) -> Decision {
    let mut status = object.status.clone();
    let mut news = false;
    let mut last = None;
    for (container, ended) in results {
        let record = status.containers.iter_mut().find(|record| &record.name == container);
        if let Some(undo) = record.and_then(|record| record.undo.as_mut()) {
            let before = undo.succeeded;
            write_down(undo, ended);
            news |= undo.succeeded != before;
            last = last.max(Some(ended.completed));
        }
    }
    let failed = status.containers.iter().find_map(|record| {
        let undo = record.undo.as_ref().filter(|undo| undo.succeeded != Some(true))?;
        let why = undo.error.as_ref().map_or("not tried yet", |error| error.message.as_str());
        Some(format!("container `{}`: {why}", record.name))
    });
    let Some(why) = failed else {
        return close(
            object,
            status,
            ("True", reason::UNDO_SUCCEEDED, "undone in every container"),
            Gravity::Normal,
            now,
        );
    };
    let mut decision = Decision::default();
    if news {
        let message =
            format!("{why}; it is tried again until it succeeds. Look at the pod: what was done there still holds");
        let saying =
            Saying { kind: condition::UNDONE, status: "False", reason: reason::UNDO_FAILED, message: &message };
        conditions::set(&mut status.conditions, saying, object.generation(), now);
        decision.effects.push(Effect::WriteStatus(Box::new(status.clone())));
        decision.reports.push(report(Gravity::Warning, reason::UNDO_FAILED, message));
    }
    let next = last.unwrap_or(now) + pause(round);
    if next <= now {
        start(&Object { object: object.object, status }, &mut decision);
    } else {
        decision.again = Some(next);
    }
    decision
}

fn pause(round: u32) -> SignedDuration {
    let doubled = SignedDuration::from_secs(1 << round.saturating_sub(1).min(6));
    doubled.min(LONGEST_PAUSE)
}

fn write_down(undo: &mut UndoStatus, ended: &Ended) {
    let Ended { outcome, exit_code, output, container_id, attempts, started, completed, process_may_remain: _ } = ended;
    undo.container_id.clone_from(container_id);
    undo.start_time = Some(MicroTime(*started));
    undo.complete_time = Some(MicroTime(*completed));
    undo.attempts = Some(undo.attempts.unwrap_or_default().saturating_add(*attempts));
    undo.exit_code = *exit_code;
    undo.output = Some(output.clone()).filter(|output| !output.is_empty());
    undo.succeeded = Some(matches!(outcome, Outcome::Succeeded));
    undo.error = outcome.failure().map(|failure| errors::error(failure.kind, &failure.message, *completed));
}

/// Nothing is owed: nothing holds the object, and it goes when its time is over.
fn tidy(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
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

fn report(gravity: Gravity, reason: &'static str, note: String) -> Report {
    Report { about: About::ObjectAndPod, gravity, reason: reason.to_owned(), action: "Undo", note }
}
