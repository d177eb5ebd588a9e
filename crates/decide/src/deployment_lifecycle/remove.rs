//! A lifecycle that is deleted lets its Deployment go, when its hooks have ended: the Deployment first, so that nothing
//! new is held, then its ReplicaSets. What was held goes on without hooks.
//!
//! The Deployment controller may be making a ReplicaSet just then, annotated as the Deployment was. So the lifecycle
//! stays until that controller has seen the Deployment as it is, and no ReplicaSet of it is held.

use boathook_api::words::{condition, reason};
use jiff::{SignedDuration, Timestamp};

use super::{Annotate, Decision, Deployment, Effect, Look, Observed, has_finalizer};

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
                &format!("what is held is let go when its hook has ended; {overdue}"),
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
    if let Some(deployment) = deployment.filter(|deployment| deployment.lifecycle.is_some()) {
        let resource_version = deployment.resource_version.clone();
        effects.push(Effect::AnnotateDeployment { managed: false, resource_version });
    }
    for set in observed.replica_sets.iter().filter(|set| set.managed || set.gate.is_some()) {
        let (name, uid) = (set.name.clone(), set.uid.clone());
        effects.push(Effect::MarkReplicaSet { name, uid, annotate: Annotate::Remove, mark: None });
    }
    if deployment.is_some_and(|deployment| deployment.ours.is_some()) {
        // Also wakes the Deployment controller, which may have given up.
        effects.push(Effect::RemoveCondition(condition::LIFECYCLE));
    }
    let seen = |deployment: &Deployment| deployment.deleted || deployment.observed_generation >= deployment.generation;
    effects.len() == before && deployment.is_none_or(seen)
}
