//! A look of ours: everything is read from the API server, one read after the other.

use boathook_api::DeploymentLifecycle;
use boathook_decide::{
    Leadership,
    deployment_lifecycle::{Effect, Observed, Starts, decide},
};

use super::{
    World,
    act::Doing,
    hooks::HookPod,
    objects::{Deployment, Set},
};
use crate::world::process::Who;

/// What the first reads of a look have found.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    object: DeploymentLifecycle,
    deployment: Deployment,
}

impl World {
    pub(crate) fn look(&mut self, who: Who) {
        self.begin_look(who);
        self.end_look(who);
    }

    /// Reads the lifecycle and the Deployment.
    pub(crate) fn begin_look(&mut self, who: Who) {
        let (object, leads) = (self.lifecycle.clone(), self.lease == Some(who));
        let deployment = self.deployment.clone();
        let controller = self.controller(who);
        controller.wake = None;
        controller.begun = object.filter(|_| leads).map(|object| Begun { object, deployment });
    }

    /// Reads the rest, and decides.
    pub(crate) fn end_look(&mut self, who: Who) {
        let Some(Begun { object, deployment }) = self.controller(who).begun.take() else { return };
        let observed = Observed {
            object: &object,
            leadership: Leadership::Leader,
            author_checked: true,
            gate_is_there: true,
            deployment: Some(deployment.seen()),
            replica_sets: self.sets.iter().map(Set::seen).collect(),
            live_pods: self.pods.iter().map(|pod| pod.set.clone()).collect(),
            hook_pods: self.hook_pods.iter().map(HookPod::seen).collect(),
            refused: None,
            starts: Starts::new(),
        };
        let decision = decide(&observed, self.now);
        self.deliver_late();
        let controller = self.controller(who);
        if let Some(again) = decision.again {
            controller.wake(again);
        }
        let writes = decision.effects.into_iter().filter(|effect| !matches!(effect, Effect::Tell(_)));
        controller.doing = Some(Doing { object, effects: writes.collect() });
    }
}
