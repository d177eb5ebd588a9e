//! A lifecycle that is deleted lets its Deployment go, when its hooks have ended: the Deployment first, so that nothing
//! new is held, then its ReplicaSets. What was held goes on without hooks.
//!
//! The Deployment controller may be making a ReplicaSet just then, annotated as the Deployment was. So the lifecycle
//! stays until that controller has seen the Deployment as it is, and no ReplicaSet of it is held.

use boathook_api::words::reason;
use jiff::{SignedDuration, Timestamp};

use super::{Decision, Deployment, Effect, Look, Observed, has_finalizer, release::release};

/// When what a Deployment left behind is looked at again: by its owner it is not known any more.
const NOBODY_TELLS: SignedDuration = SignedDuration::from_secs(1);

pub(super) fn decide(observed: &Observed<'_>, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if !has_finalizer(observed.object) {
        return decision;
    }
    if let Some(deployment) = &observed.deployment {
        // Nobody sees it in the lifecycle, which is going.
        let mut look = Look::new(observed, now);
        if let Some(overdue) = look.overdue() {
            look.say(
                deployment,
                reason::LETTING_GO,
                &format!("Boathook releases the held version when its hook pod has ended; {overdue}"),
            );
        }
        decision = look.decision;
    }
    let effects = &mut decision.effects;
    for pod in observed.hook_pods.iter().filter(|pod| pod.live && pod.gone_by.is_none()) {
        effects.push(Effect::DeletePod { name: pod.name.clone(), uid: pod.uid.clone() });
    }
    // What is waited for here, and what is written, is looked at again when it has happened: its Deployment is told of it.
    if has_let_go(observed, effects) {
        effects.push(Effect::RemoveFinalizer);
    } else if observed.deployment.is_none() {
        decision.again = Some(now + NOBODY_TELLS);
    }
    decision
}

/// Whether nothing of it is held any more, and nothing will be.
fn has_let_go(observed: &Observed<'_>, effects: &mut Vec<Effect>) -> bool {
    let deployment = observed.deployment.as_ref();
    if deployment.is_some() && observed.hook_pods.iter().any(|pod| pod.live) {
        // Nothing of a hook may run beside what is let in then.
        return false;
    }
    let before = effects.len();
    effects.extend(release(deployment, &observed.replica_sets).map(Effect::Release));
    let seen = |deployment: &Deployment| deployment.deleted || deployment.observed_generation >= deployment.generation;
    effects.len() == before && deployment.is_none_or(seen)
}
