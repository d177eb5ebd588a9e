//! Our controller acts: one effect after the other, while it leads. Each may be lost, its answer may be, or it is late.

use std::collections::VecDeque;

use boathook_api::{
    DeploymentLifecycle,
    words::{LIFECYCLE_FINALIZER, LIFECYCLE_MANAGED},
};
use boathook_decide::deployment_lifecycle::{Annotate, DeploymentCondition, Effect, Release};
use jiff::Timestamp;

use super::{World, api_server::Refused, look::Begun, time::whole_seconds};
use crate::world::{
    BACK_OFF,
    process::{Luck, Who},
    request::Fate,
};

#[derive(Debug, Default)]
pub(crate) struct Controller {
    pub(crate) down: bool,
    pub(crate) wake: Option<Timestamp>,
    pub(crate) begun: Option<Begun>,
    pub(crate) doing: Option<Doing>,
    pub(crate) luck: Option<Luck>,
}

/// What a look has decided on and is not done yet.
#[derive(Clone, Debug)]
pub(crate) struct Doing {
    /// Absent if marks without a lifecycle are removed.
    pub(crate) object: Option<DeploymentLifecycle>,
    pub(crate) effects: VecDeque<Effect>,
}

/// A request that is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    object: Option<DeploymentLifecycle>,
    effect: Effect,
}

impl Controller {
    pub(crate) fn wake(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

impl World {
    pub(crate) fn controller(&mut self, who: Who) -> &mut Controller {
        match who {
            Who::First => &mut self.controllers[0],
            Who::Second | Who::Agent => &mut self.controllers[1],
        }
    }

    pub(crate) fn crash(&mut self, who: Who) {
        *self.controller(who) = Controller { down: true, ..Controller::default() };
    }

    pub(crate) fn restart(&mut self, who: Who) {
        let now = self.now;
        let controller = self.controller(who);
        controller.down = false;
        controller.wake(now);
    }

    /// The next effect of what it has decided on.
    pub(crate) fn act(&mut self, who: Who, fate: Fate) {
        let now = self.now;
        let leads = self.lease == Some(who);
        let controller = self.controller(who);
        let Some(doing) = &mut controller.doing else { return };
        let Some(effect) = doing.effects.pop_front() else {
            controller.doing = None;
            return;
        };
        let mut object = doing.object.clone();
        let answer = match fate {
            _ if !leads => Err(Refused),
            Fate::Answered => self.carry_out(&mut object, effect),
            Fate::AnswerLost => self.carry_out(&mut object, effect).and(Err(Refused)),
            Fate::NeverArrives => Err(Refused),
            Fate::Late => {
                self.late.push_back(Late { object: object.clone(), effect });
                Err(Refused)
            }
        };
        let controller = self.controller(who);
        match (answer, &mut controller.doing) {
            (Ok(()), Some(doing)) => doing.object = object,
            (Ok(()), None) => {}
            (Err(Refused), _) => {
                controller.doing = None;
                controller.wake(now + BACK_OFF);
            }
        }
    }

    /// What was on its way arrives.
    pub(crate) fn deliver_late(&mut self) {
        while let Some(Late { mut object, effect }) = self.late.pop_front() {
            self.arrives_late = true;
            // Nobody hears of the answer.
            let _ = self.carry_out(&mut object, effect);
            self.arrives_late = false;
        }
    }

    fn carry_out(&mut self, object: &mut Option<DeploymentLifecycle>, effect: Effect) -> Result<(), Refused> {
        let before = self.revision;
        self.note_effect(&effect);
        match effect {
            Effect::AddFinalizer => self.write_lifecycle(object, |live| {
                live.metadata.finalizers = Some(vec![LIFECYCLE_FINALIZER.to_owned()]);
            })?,
            Effect::RemoveFinalizer => self.write_lifecycle(object, |live| live.metadata.finalizers = None)?,
            Effect::WriteStatus(status) => {
                self.check_status(object.as_ref(), &status);
                self.write_lifecycle(object, |live| live.status = Some(*status))?;
            }
            Effect::MarkReplicaSet { name: _, uid, annotate, mark } => {
                let Some(set) = self.sets.iter().position(|set| set.uid == uid) else { return Ok(()) };
                let was = self.sets[set].clone();
                self.sets[set].gate = mark.map(|mark| mark.to_string());
                match annotate {
                    Annotate::Keep => {}
                    Annotate::Write(value) => self.sets[set].lifecycle = Some(value),
                }
                if self.sets[set] != was {
                    self.sets[set].version = self.changed();
                }
            }
            Effect::AnnotateDeployment { resource_version } => {
                self.annotate_deployment(&resource_version, Some(LIFECYCLE_MANAGED.to_owned()))?;
            }
            Effect::Release(Release::Deployment { resource_version }) => {
                self.annotate_deployment(&resource_version, None)?;
                self.held = false;
            }
            Effect::Release(Release::ReplicaSet { name: _, uid, resource_version }) => {
                let Some(set) = self.sets.iter().position(|set| set.uid == uid) else { return Ok(()) };
                if self.sets[set].version.to_string() != resource_version {
                    return Err(Refused);
                }
                (self.sets[set].lifecycle, self.sets[set].gate) = (None, None);
                self.sets[set].version = self.changed();
            }
            Effect::Release(Release::Condition) => {
                if self.deployment.status.ours.take().is_some() {
                    self.deployment.version = self.changed();
                }
            }
            Effect::SetCondition(condition) => {
                let (last_update, last_transition) =
                    (whole_seconds(condition.last_update), whole_seconds(condition.last_transition));
                let written = DeploymentCondition { last_update, last_transition, ..condition };
                let place = self.deployment.status.condition(written.kind);
                if place.as_ref() != Some(&written) {
                    *place = Some(written);
                    self.deployment.version = self.changed();
                }
            }
            Effect::Tell(_) => {}
            Effect::CreatePod(pod) => self.create_hook_pod(&pod),
            Effect::DeletePod { name, uid } => {
                if self.hook_pods.iter().any(|pod| pod.name == name && pod.uid == uid) {
                    self.delete_hook_pod(&name, false);
                }
            }
            Effect::OwnPod { name, uid, replica_set: (_, owner) } => {
                if let Some(pod) = self.hook_pods.iter_mut().find(|pod| pod.name == name && pod.uid == uid) {
                    pod.owner = owner;
                    self.changed();
                }
            }
        }
        if self.revision > before {
            self.count_write();
        }
        Ok(())
    }

    /// Of the version that was read, or it fails.
    fn annotate_deployment(&mut self, resource_version: &str, value: Option<String>) -> Result<(), Refused> {
        if self.deployment.version.to_string() != resource_version {
            return Err(Refused);
        }
        self.deployment.lifecycle = value;
        self.deployment.generation += 1;
        self.generations += 1;
        self.deployment.version = self.changed();
        Ok(())
    }

    /// Of the version that was looked at, or it fails.
    fn write_lifecycle(
        &mut self,
        object: &mut Option<DeploymentLifecycle>,
        change: impl FnOnce(&mut DeploymentLifecycle),
    ) -> Result<(), Refused> {
        let (Some(live), Some(object)) = (&self.lifecycle, object) else { return Err(Refused) };
        if live.metadata.resource_version != object.metadata.resource_version {
            return Err(Refused);
        }
        let mut next = live.clone();
        change(&mut next);
        self.store_lifecycle(next);
        if let Some(live) = &self.lifecycle {
            object.clone_from(live);
        }
        Ok(())
    }

    /// One that is deleted and held by nobody is gone.
    pub(crate) fn store_lifecycle(&mut self, mut next: DeploymentLifecycle) {
        next.metadata.resource_version = Some(self.changed().to_string());
        let gone = next.metadata.deletion_timestamp.is_some() && next.metadata.finalizers.is_none();
        self.looked_after |= next.metadata.finalizers.is_some();
        self.lifecycle = (!gone).then_some(next);
    }
}
