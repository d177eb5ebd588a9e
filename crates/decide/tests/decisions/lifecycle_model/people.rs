//! People: they change templates, their minds, and what they asked for.

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Requested, RolloutRequest, Stage},
    words::{ROLLOUT_REQUEST, ROLLOUT_REQUESTED_BY},
};
use boathook_decide::deployment_lifecycle::gate::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::{
    World,
    objects::{Set, digest},
    promises::id,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Person {
    /// Writes another template: one that was there before, too.
    Template(char),
    /// Goes back to the revision before: the Deployment's annotations are replaced by the ReplicaSet's.
    Undo,
    Scale(i32),
    Pause(bool),
    DeletesLifecycle,
    /// Deletes it, and removes its finalizer by hand. The record of its rollout is lost, so only stories do this.
    ForcesLifecycleAway,
    CreatesLifecycle,
    Asks(Stage, Requested),
    /// `kubectl scale rs`, of the newest or an older one.
    ScaleSet(usize, i32),
}

impl World {
    pub(crate) fn person(&mut self, person: Person) {
        self.disturbances += 1;
        match person {
            // Nobody answers: they are told so.
            Person::Template(template) => drop(self.update_deployment(|deployment| deployment.template = template)),
            Person::Undo => self.undo(),
            Person::Scale(replicas) => drop(self.update_deployment(|deployment| deployment.replicas = replicas)),
            Person::Pause(paused) => drop(self.update_deployment(|deployment| deployment.paused = paused)),
            Person::DeletesLifecycle => {
                let Some(mut object) = self.lifecycle.clone() else { return };
                if object.metadata.deletion_timestamp.is_none() {
                    object.metadata.deletion_timestamp = Some(Time(self.now));
                    self.store_lifecycle(object);
                }
            }
            Person::ForcesLifecycleAway => {
                // A Deployment that requires a lifecycle now waits for the next one.
                (self.lifecycle, self.looked_after) = (None, false);
                self.changed();
            }
            Person::CreatesLifecycle => self.create_lifecycle(),
            Person::Asks(stage, what) => self.ask(stage, what),
            Person::ScaleSet(place, replicas) => self.scale_set(place, replicas),
        }
    }

    pub(crate) fn create_lifecycle(&mut self) {
        if self.lifecycle.is_none() {
            let mut object = DeploymentLifecycle::new("web", self.spec());
            object.metadata.namespace = Some("default".to_owned());
            object.metadata.uid = Some(format!("lifecycle-{}", self.revision + 1));
            self.store_lifecycle(object);
        }
    }

    fn undo(&mut self) {
        if self.deployment.paused {
            return;
        }
        let newest = self.sets.iter().filter_map(|set| set.revision).max();
        let before = self.sets.iter().filter(|set| set.revision.is_some() && set.revision != newest);
        let Some(Set { template, lifecycle, .. }) = before.max_by_key(|set| set.revision).cloned() else { return };
        if template != self.deployment.template {
            let _ = self.update_deployment(|deployment| {
                (deployment.template, deployment.lifecycle) = (template, lifecycle);
            });
        }
    }

    fn ask(&mut self, stage: Stage, what: Requested) {
        let Some(mut object) = self.lifecycle.clone() else { return };
        let request = RolloutRequest { id: self.revision.to_string(), stage, what };
        let text = serde_json::to_string(&request).expect("a request is written");
        object.annotations_mut().insert(ROLLOUT_REQUEST.to_owned(), text);
        object.annotations_mut().insert(ROLLOUT_REQUESTED_BY.to_owned(), "ann".to_owned());
        let rollout = object.status.as_ref().and_then(|status| status.rollout.as_ref());
        if let Some(rollout) = rollout.filter(|_| what == Requested::Skip) {
            self.skips.push((id(rollout), stage));
        }
        self.store_lifecycle(object);
        self.runs.iter_mut().filter(|run| run.stage == stage).for_each(|run| run.excused = true);
    }

    /// Through the subresource, which nobody guards while the gate is away: then nobody does it here. Nor where there is no
    /// gate: Kubernetes itself may make nothing more of a Recreate then.
    fn scale_set(&mut self, place: usize, replicas: i32) {
        // Kubernetes never finishes scaling a Deployment whose ReplicaSet already has the wanted size by another hand, and
        // then rolls nothing out: so the Deployment controller scales first.
        self.native_syncs(false);
        let wanted = self.deployment.replicas;
        if self.sets.iter().any(|set| set.replicas > 0 && set.desired != Some(wanted)) {
            return;
        }
        let guarded = |set: &Set| self.webhook && set.lifecycle.is_some();
        let Some(set) = self.sets.get(place).cloned().filter(guarded) else { return };
        let request = Request::Scale {
            old: set.replicas,
            new: replicas,
            desired: set.desired.map(|desired| desired.to_string()),
            revision: set.revision.map(|revision| revision.to_string()),
            mark: set.gate.as_ref().and_then(|gate| gate.parse().ok()),
            is_target: digest(set.template) == digest(self.deployment.template),
        };
        let mut asked = Set { replicas, ..set.clone() };
        if self.admit(&request, &mut asked, set.replicas).is_err() {
            return;
        }
        if asked.replicas != set.replicas {
            let version = self.changed();
            let set = &mut self.sets[place];
            (set.replicas, set.version) = (asked.replicas, version);
        }
        // If the Deployment is scaled to the same number before that is seen, Kubernetes itself makes nothing more of it.
        self.native_syncs(false);
    }
}
