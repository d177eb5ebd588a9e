//! After the handlers: the undo, if one is owed, when it is due.

use boathook_api::{
    outcome::Ended,
    pod_notification::{Executor, PodNotificationStatus, State},
    words::{ABANDONED_BY, condition, reason},
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{
    Decision, Effect, Object, Observed, PATIENCE, Progress, Role, SeenPod, earliest, execute, held, rounds, tidy,
};
use crate::{
    About, Gravity, Leadership, Report,
    conditions::{self, Saying},
};

/// The object is in a terminal state.
pub(super) fn decide(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    match &observed.run {
        Progress::Idle => go_on(observed, object, now),
        Progress::Running => {
            let mut decision = go_on(observed, object, now);
            // Another has said that it ended: so be it. First, for a write may fail.
            decision.effects.insert(0, execute::end(observed, object));
            decision
        }
        Progress::Ended { results, .. } if execute::is_written(&object.status, results) => {
            own_word(observed, object, results, now)
        }
        Progress::Ended { .. } => tidy::late_return(observed, object),
    }
}

/// This process wrote how its handlers ended, and never heard that it had: what was to follow that write follows now.
fn own_word(observed: &Observed<'_>, object: &Object<'_>, run: &[(String, Ended)], now: Timestamp) -> Decision {
    let mut decision = Decision { effects: vec![Effect::ForgetRun], ..Decision::default() };
    match &observed.undo {
        // It may have begun before the handlers' end; if so, another follows it.
        Progress::Running => return Decision::default(),
        Progress::Ended { results, .. } if object.owes_undo() && rounds::is_outrun(results, run) => {
            rounds::start(object, &mut decision);
            return decision;
        }
        Progress::Idle | Progress::Ended { .. } => {}
    }
    let Decision { effects, reports, again } = go_on(observed, object, now);
    decision.effects.extend(effects);
    Decision { reports, again, ..decision }
}

fn go_on(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if !object.owes_undo() {
        return tidy::decide(observed, object, now);
    }
    if let Some(closed) = close_without_undo(observed, object, now) {
        return closed;
    }
    if !is_executor(observed, object) {
        decision.again = when_to_ask(observed, object, now);
        return decision;
    }
    match &observed.undo {
        Progress::Running => {}
        Progress::Idle if is_due(observed, object, now) => rounds::start(object, &mut decision),
        Progress::Idle => decision.again = object.expires(observed),
        Progress::Ended { results, round } => return rounds::ended(observed.me.role, object, results, *round, now),
    }
    decision
}

/// Whether the undo is to run now.
pub(super) fn is_due(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> bool {
    let expired = object.expires(observed).is_some_and(|expires| expires <= now);
    object.is_revoked() || expired || object.status.state == State::Failed || held::is_to_be_let_go(observed, object)
}

/// Whether it is for this process to undo it.
pub(super) fn is_executor(observed: &Observed<'_>, object: &Object<'_>) -> bool {
    let through_api = object.status.executor != Some(Executor::Agent);
    match observed.me.role {
        Role::Agent => !through_api,
        Role::Controller { leadership: Leadership::Leader, .. } => through_api,
        Role::Controller { leadership: Leadership::ThawOnly, .. } => through_api && object.is_mine(observed.me),
    }
}

/// The agent undoes it; that its pod is gone, and perhaps its node, nobody tells the controller.
fn when_to_ask(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Option<Timestamp> {
    match observed.me.role {
        Role::Agent | Role::Controller { leadership: Leadership::ThawOnly, .. } => None,
        Role::Controller { leadership: Leadership::Leader, .. } if is_due(observed, object, now) => {
            Some(now + PATIENCE)
        }
        // What an agent says that it holds is held no longer than its pod is there.
        Role::Controller { leadership: Leadership::Leader, .. } if object.object.spec.holds() => {
            earliest(object.expires(observed), Some(now + PATIENCE))
        }
        Role::Controller { leadership: Leadership::Leader, .. } => object.expires(observed),
    }
}

/// There is nothing left to undo it in, or a person gave it up. The controller says so.
fn close_without_undo(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Option<Decision> {
    let Role::Controller { leadership: Leadership::Leader, .. } = observed.me.role else { return None };
    let (status, why, message) = match &observed.pod {
        _ if object.is_abandoned() => ("False", reason::ABANDONED, abandoned_message(object)),
        SeenPod::Gone { node_ready: true } => ("True", reason::POD_GONE, "the pod is gone".to_owned()),
        SeenPod::There(pod) if pod.over => ("True", reason::POD_GONE, "the pod has ended".to_owned()),
        SeenPod::Gone { node_ready: false } => (
            "Unknown",
            reason::THAW_UNCONFIRMED,
            "the pod is gone, but its node is not Ready: the pod may still run there without the undo. Check the node"
                .to_owned(),
        ),
        SeenPod::Unknown | SeenPod::There(_) => return None,
    };
    let gravity = if status == "True" { Gravity::Normal } else { Gravity::Warning };
    Some(close(object, object.status.clone(), (status, why, &message), gravity, now))
}

fn abandoned_message(object: &Object<'_>) -> String {
    match object.object.annotations().get(ABANDONED_BY) {
        Some(user) => format!("user `{user}` gave up the undo: undo the handler by hand"),
        None => "the undo was given up by annotation: undo the handler by hand".to_owned(),
    }
}

pub(super) fn close(
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

pub(super) fn report(gravity: Gravity, reason: &'static str, note: String) -> Report {
    Report { about: About::ObjectAndSubject, gravity, reason: reason.to_owned(), action: "Undo", note }
}
