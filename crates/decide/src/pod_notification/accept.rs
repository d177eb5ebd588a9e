//! From a fresh object to a claim: the pod is pinned, and whoever executes says that it does.

use boathook_api::{
    outcome::Failure,
    pod_notification::{Claim, ContainerNotificationStatus, ErrorType, Executor, PodNotificationStatus},
    words::{condition, reason},
};
use jiff::Timestamp;

use super::{
    Decision, Effect, Object, Observed, Role, SOON, SeenPod, earliest, ending,
    refuse::{end, nothing_to_run, refusal, refuse, switched_off, unchecked_author},
    resolve,
    resolve::Part,
};
use crate::{
    Leadership,
    application_snapshot::with_other,
    conditions::{self, Saying},
    moment::moment,
};

/// Nobody has seen it yet: the controller that leads does.
pub(super) fn fresh(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let Role::Controller { leadership: Leadership::Leader, executor, enabled } = observed.me.role else {
        return Decision::default();
    };
    if let Some(refused) = refusal(object, now) {
        return end(object, refused, now);
    }
    if !enabled && !object.is_of_hook() {
        return switched_off(object, now);
    }
    if object.object.spec.is_inline() && !observed.author_checked {
        return unchecked_author(object, now);
    }
    if let Err(wrong) = object.object.spec.validate() {
        return refuse(object, reason::REFUSED, Failure::new(ErrorType::Unsupported, wrong), now);
    }
    let pod = match &observed.pod {
        SeenPod::Unknown => return ask_again(object, now),
        SeenPod::Gone { .. } => {
            let message = format!("pod `{}` not found in this namespace: fix podName", object.object.spec.pod_name);
            return refuse(object, reason::REFUSED, Failure::new(ErrorType::PodNotFound, message), now);
        }
        SeenPod::There(pod) => pod,
    };
    if let Some(wanted) = object.object.spec.pod_uid.as_ref().filter(|wanted| **wanted != pod.uid) {
        let message = format!("pod `{}` was replaced: its UID is not {wanted}", object.object.spec.pod_name);
        return refuse(object, reason::REFUSED, Failure::new(ErrorType::PodNotFound, message), now);
    }
    let Some(node) = pod.node.as_ref().filter(|_| !pod.over) else {
        let message = format!("pod `{}` is not Running", object.object.spec.pod_name);
        return refuse(object, reason::REFUSED, Failure::new(ErrorType::ContainerNotRunning, message), now);
    };
    if let Some(ending) = ending::refusal(pod, &object.object.spec.pod_name) {
        return refuse(object, reason::REFUSED, ending, now);
    }
    let parts = match resolve::parts(&object.object.spec, pod, None) {
        Ok(parts) => parts,
        Err(wrong) => return refuse(object, reason::REFUSED, wrong, now),
    };
    let mut status = object.status.clone();
    status.start_time = Some(moment(now));
    status.pod_uid = Some(pod.uid.clone());
    status.node_name = Some(node.clone());
    status.executor = Some(executor);
    status.containers = parts.iter().map(named).collect();
    let saying = Saying { kind: condition::ACCEPTED, status: "True", reason: reason::PINNED, message: "" };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    if parts.is_empty() {
        return nothing_to_run(object, status, now);
    }
    let mut decision = Decision::default();
    let containers = || parts.iter().map(|part| part.container.clone()).collect();
    let recorded = observed.undecided.iter().filter_map(|one| with_other(one, object.object, containers()));
    decision.effects.extend(recorded.map(|snapshot| Effect::RecordOn(Box::new(snapshot))));
    if object.object.spec.undo.is_some() && !object.has_finalizer() {
        decision.effects.push(Effect::AddFinalizer);
    }
    match executor {
        // Two writes in one: the version that is accepted is the version that is claimed.
        Executor::Api if observed.room => claim(observed, object, status, parts, now, &mut decision),
        Executor::Api | Executor::Agent => {
            decision.effects.push(Effect::WriteStatus(Box::new(status)));
            decision.again = object.start_deadline();
        }
    }
    decision
}

/// It is accepted, and its executor has not claimed it yet.
pub(super) fn accepted(observed: &Observed<'_>, object: &Object<'_>, executor: Executor, now: Timestamp) -> Decision {
    let refused = refusal(object, now);
    match (observed.me.role, refused) {
        (Role::Controller { leadership: Leadership::Leader, .. }, Some(refused)) => return end(object, refused, now),
        // Not the executor's to say: it just never claims this.
        (Role::Controller { leadership: Leadership::ThawOnly, .. } | Role::Agent, Some(_)) => {
            return Decision::default();
        }
        // It was accepted before the gate was closed.
        (Role::Controller { leadership: Leadership::Leader, enabled: false, .. }, None) if !object.is_of_hook() => {
            return switched_off(object, now);
        }
        (Role::Controller { .. } | Role::Agent, None) => {}
    }
    // An agent cannot see it, so the controller says it, whoever is to run this.
    if let (Role::Controller { leadership: Leadership::Leader, .. }, SeenPod::There(pod)) =
        (observed.me.role, &observed.pod)
        && let Some(ending) = ending::refusal(pod, &object.object.spec.pod_name)
    {
        return end(object, ending, now);
    }
    let waiting = Decision { again: object.start_deadline(), ..Decision::default() };
    match (observed.me.role, executor) {
        (Role::Controller { leadership: Leadership::Leader, .. }, Executor::Api) | (Role::Agent, Executor::Agent) => {}
        (Role::Controller { .. }, _) | (Role::Agent, Executor::Api) => return waiting,
    }
    match observed.pod {
        SeenPod::Unknown => ask_again(object, now),
        SeenPod::There(_) if !observed.room => waiting,
        SeenPod::Gone { .. } | SeenPod::There(_) => try_claim(observed, object, now),
    }
}

/// Nobody could say how the pod is.
fn ask_again(object: &Object<'_>, now: Timestamp) -> Decision {
    Decision { again: earliest(Some(now + SOON), object.start_deadline()), ..Decision::default() }
}

fn try_claim(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let pod = match &observed.pod {
        SeenPod::There(pod) if object.status.pod_uid.as_ref() == Some(&pod.uid) => pod,
        SeenPod::Unknown | SeenPod::Gone { .. } | SeenPod::There(_) => {
            let message = format!("pod `{}` is gone", object.object.spec.pod_name);
            return end(object, Failure::new(ErrorType::PodNotFound, message), now);
        }
    };
    if let Some(ending) = ending::refusal(pod, &object.object.spec.pod_name) {
        return end(object, ending, now);
    }
    let pinned: Vec<_> = object.status.containers.iter().map(|container| container.name.clone()).collect();
    match resolve::parts(&object.object.spec, pod, Some(&pinned)) {
        Ok(parts) if parts.is_empty() => nothing_to_run(object, object.status.clone(), now),
        Ok(parts) => {
            let mut decision = Decision::default();
            claim(observed, object, object.status.clone(), parts, now, &mut decision);
            decision
        }
        Err(wrong) => end(object, wrong, now),
    }
}

/// The same process claimed it, but never learnt that it had: it claims again, against the version that it sees.
pub(super) fn claim_again(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    match (refusal(object, now), observed.me.role) {
        (Some(refused), _) => end(object, refused, now),
        (None, Role::Controller { enabled: false, .. }) if !object.is_of_hook() => switched_off(object, now),
        (None, Role::Controller { .. } | Role::Agent) => try_claim(observed, object, now),
    }
}

fn claim(
    observed: &Observed<'_>,
    object: &Object<'_>,
    mut status: PodNotificationStatus,
    parts: Vec<Part>,
    now: Timestamp,
    decision: &mut Decision,
) {
    status.claim = Some(Claim { holder: observed.me.identity.to_owned(), time: moment(now) });
    status.containers = parts.iter().map(|part| claimed(part, now)).collect();
    if object.object.spec.undo.is_some() {
        let saying = Saying { kind: condition::UNDONE, status: "False", reason: reason::ARMED, message: "" };
        conditions::set(&mut status.conditions, saying, object.generation(), now);
    }
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision.effects.push(Effect::Start(parts.into_iter().map(|part| (part.container, part.handler)).collect()));
}

fn named(part: &Part) -> ContainerNotificationStatus {
    ContainerNotificationStatus { name: part.container.clone(), ..ContainerNotificationStatus::default() }
}

fn claimed(part: &Part, now: Timestamp) -> ContainerNotificationStatus {
    let undo = part.undo.clone();
    ContainerNotificationStatus { start_time: Some(moment(now)), undo, ..named(part) }
}
