//! A look of ours: everything is read from the API server, one read after the other.

use std::collections::VecDeque;

use boathook_api::DeploymentLifecycle;
use boathook_decide::{
    Leadership,
    deployment_lifecycle::{Effect, LiveHook, Observed, Orphan, Starts, Unclaimed, decide, decide_orphan},
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
pub(crate) enum Begun {
    Lifecycle {
        object: Box<DeploymentLifecycle>,
        deployment: Deployment,
    },
    /// The Deployment may carry marks without a lifecycle. Whether one exists is read last.
    Unclaimed {
        deployment: Deployment,
        sets: Vec<Set>,
        hooks: Vec<HookPod>,
    },
}

impl World {
    pub(crate) fn look(&mut self, who: Who) {
        self.begin_look(who);
        self.end_look(who);
    }

    /// Reads the lifecycle and the Deployment.
    pub(crate) fn begin_look(&mut self, who: Who) {
        let (leads, deployment) = (self.lease == Some(who), self.deployment.clone());
        let begun = match self.lifecycle.clone() {
            Some(object) => Begun::Lifecycle { object: Box::new(object), deployment },
            None => Begun::Unclaimed { deployment, sets: self.sets.clone(), hooks: self.hook_pods.clone() },
        };
        let controller = self.controller(who);
        controller.wake = None;
        controller.begun = leads.then_some(begun);
    }

    /// Reads the rest, and decides.
    pub(crate) fn end_look(&mut self, who: Who) {
        match self.controller(who).begun.take() {
            Some(Begun::Lifecycle { object, deployment }) => self.end_look_at_lifecycle(who, *object, &deployment),
            Some(Begun::Unclaimed { deployment, sets, hooks }) => {
                self.end_look_for_orphans(who, &deployment, &sets, &hooks);
            }
            None => {}
        }
    }

    fn end_look_for_orphans(&mut self, who: Who, deployment: &Deployment, sets: &[Set], hooks: &[HookPod]) {
        let replica_sets: Vec<_> = sets.iter().map(Set::seen).collect();
        let live = hooks.iter().map(HookPod::seen).filter(|pod| pod.live);
        let live_hooks: Vec<_> =
            live.map(|pod| LiveHook { name: pod.name, uid: pod.uid, deleted: pod.gone_by.is_some() }).collect();
        let orphan = decide_orphan(&Unclaimed {
            leadership: Leadership::Leader,
            deployment: &deployment.seen(),
            replica_sets: &replica_sets,
            live_hooks: &live_hooks,
            lifecycle_exists: self.lifecycle.is_some(),
        });
        self.deliver_late();
        let effects: VecDeque<_> = match orphan {
            Orphan::Keep => return,
            Orphan::EndHooks(pods) => {
                pods.into_iter().map(|LiveHook { name, uid, .. }| Effect::DeletePod { name, uid }).collect()
            }
            Orphan::Release(releases) => releases.into_iter().map(Effect::Release).collect(),
        };
        self.controller(who).doing = Some(Doing { object: None, effects });
    }

    fn end_look_at_lifecycle(&mut self, who: Who, object: DeploymentLifecycle, deployment: &Deployment) {
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
        controller.doing = Some(Doing { object: Some(object), effects: writes.collect() });
    }
}
