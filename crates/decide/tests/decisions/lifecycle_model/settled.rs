//! What must have come about when faults have stopped.

use boathook_api::deployment_lifecycle::RolloutPhase;

use super::{World, objects::digest};

impl World {
    pub(crate) fn check_settled(&self) {
        assert_eq!(self.deployment.generation, self.generations, "somebody else wrote the Deployment");
        let running = self.hook_pods.iter().find(|pod| pod.runs());
        assert!(running.is_none(), "a hook runs for ever: {running:?}");
        let Some(object) = self.lifecycle.as_ref() else { return self.check_let_go() };
        if self.deployment.paused {
            return;
        }
        let rollout = object.status.as_ref().and_then(|status| status.rollout.as_ref());
        let rollout = rollout.unwrap_or_else(|| panic!("I12: nothing was begun: {object:#?}"));
        assert_eq!(rollout.target, digest(self.deployment.template), "I12: what is recorded is not about the template");
        match rollout.phase {
            RolloutPhase::Complete => {
                self.check_rolled_out();
                let target = self.set_of(self.deployment.template).expect("the target");
                let revision = target.revision.expect("it has one");
                assert_eq!(target.gate, Some(format!("done.{revision}")));
                assert_eq!(rollout.revision, Some(revision.to_string()));
                for set in &self.sets {
                    assert!(set.lifecycle.is_some(), "a rollout back to it would not be held: {set:?}");
                    assert!(set.uid == target.uid || set.gate.is_none(), "a mark stayed: {set:?}");
                }
            }
            RolloutPhase::Aborted => {}
            phase => panic!("I12: it stays at {phase:?}: {object:#?} {:#?} {:#?}", self.deployment, self.sets),
        }
    }

    /// When it was deleted: as if it had never been.
    pub(crate) fn check_let_go(&self) {
        assert!(self.lifecycle.is_none(), "it is still there: {:#?}", self.lifecycle);
        if self.plan.required && !self.looked_after {
            // It went before anybody saw it: the next one is waited for.
            return;
        }
        assert_eq!(self.deployment.lifecycle, None);
        assert_eq!(self.deployment.status.ours, None);
        let held = self.sets.iter().find(|set| set.lifecycle.is_some() || set.gate.is_some());
        assert!(held.is_none(), "it is still held: {held:?}");
        if !self.deployment.paused {
            self.check_rolled_out();
        }
    }

    /// Every pod is one of the template.
    fn check_rolled_out(&self) {
        let target = self.set_of(self.deployment.template).expect("its ReplicaSet");
        let of_others = self.pods.iter().find(|pod| pod.set != target.uid);
        assert!(of_others.is_none(), "I12: {of_others:?} of {:#?}", self.sets);
        let wanted = usize::try_from(self.deployment.replicas).expect("none less than none");
        assert_eq!(self.pods.len(), wanted, "I12: {:#?} {:#?}", self.deployment, self.sets);
    }
}
