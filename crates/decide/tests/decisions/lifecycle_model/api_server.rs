//! The API server: versions, conflicts, admission by the gate; and whoever watches is told of what changed.

use boathook_decide::deployment_lifecycle::{
    gate::{DrainFor, Request, Update, Verdict, drain_is_valid, judge},
    record::lets_drain,
};

use super::{
    World,
    objects::{Deployment, DeploymentStatus, Set, digest},
};
use boathook_api::words::ABORT_PREFIX;

/// A write that did not happen: another version is there, or nobody answered for the gate.
#[derive(Debug)]
pub(crate) struct Refused;

impl World {
    /// Something has changed: everybody who watches looks again.
    pub(crate) fn changed(&mut self) -> u64 {
        self.revision += 1;
        self.native.queued = true;
        self.sets_changed = true;
        let now = self.now;
        self.controllers.iter_mut().for_each(|controller| controller.wake(now));
        self.revision
    }

    pub(crate) fn set(&mut self, uid: &str) -> Option<&mut Set> {
        self.sets.iter_mut().find(|set| set.uid == uid)
    }

    /// Those of this template: the oldest.
    pub(crate) fn set_of(&self, template: char) -> Option<&Set> {
        self.sets.iter().find(|set| set.template == template)
    }

    /// Of the version that `next` was made from. What is stored then.
    pub(crate) fn update_set(&mut self, mut next: Set) -> Result<Set, Refused> {
        let Some(old) = self.set(&next.uid).cloned() else { return Err(Refused) };
        if old.version != next.version {
            return Err(Refused);
        }
        let text = |count: Option<i32>| count.map(|count| count.to_string());
        let request = Request::Update(Update {
            old: old.replicas,
            new: next.replicas,
            old_desired: text(old.desired),
            new_desired: text(next.desired),
            revision: next.revision.map(|revision| revision.to_string()),
            mark: old.gate.as_ref().and_then(|gate| gate.parse().ok()),
        });
        self.admit(&request, &mut next, old.replicas)?;
        if next == old {
            return Ok(old);
        }
        self.check_move(&old, &next);
        next.version = self.changed();
        *self.set(&next.uid).expect("it was there") = next.clone();
        Ok(next)
    }

    pub(crate) fn create_set(&mut self, mut new: Set) -> Result<Set, Refused> {
        if self.set_of(new.template).is_some() {
            return Err(Refused);
        }
        self.admit(&Request::Create { replicas: new.replicas }, &mut new, 0)?;
        assert!(new.replicas == 0 || !self.is_held(), "a ReplicaSet is made with pods before its rollout has begun");
        new.version = self.changed();
        new.uid = format!("set-{}", new.version);
        self.sets.push(new.clone());
        Ok(new)
    }

    /// Makes a ReplicaSet what the gate lets through of it.
    pub(crate) fn admit(&self, request: &Request, next: &mut Set, old: i32) -> Result<(), Refused> {
        let verdict = judge(request);
        if next.lifecycle.is_none() || verdict == Verdict::Pass {
            // Decided in the API server itself.
            return Ok(());
        }
        if !self.webhook {
            return Err(Refused);
        }
        let held_at = match verdict {
            Verdict::Pass => return Ok(()),
            Verdict::Replicas(replicas) => replicas,
            Verdict::PassIf(target) if self.may_drain(&target) => return Ok(()),
            Verdict::PassIf(_) => old,
        };
        if self.deployment.lifecycle.is_none() {
            // It is left of a Deployment that was released.
            next.lifecycle = None;
        } else {
            next.replicas = held_at;
        }
        Ok(())
    }

    fn may_drain(&self, target: &DrainFor) -> bool {
        let text = |set: &Set| set.revision.map_or(String::new(), |revision| revision.to_string());
        let facts: Vec<_> = self.sets.iter().map(|set| (set.hash(), text(set), digest(set.template))).collect();
        let facts = facts.iter().map(|(hash, revision, digest)| (&**hash, &**revision, &**digest));
        let status = self.lifecycle.as_ref().and_then(|lifecycle| lifecycle.status.as_ref());
        let rollout = status.and_then(|status| status.rollout.as_ref());
        rollout.is_some_and(|rollout| lets_drain(rollout, &digest(self.deployment.template)))
            && drain_is_valid(target, &digest(self.deployment.template), facts)
    }

    /// By a person. The gate puts back the annotation that the write drops, while a lifecycle exists.
    pub(crate) fn update_deployment(&mut self, change: impl FnOnce(&mut Deployment)) -> Result<(), Refused> {
        let mut next = self.deployment.clone();
        change(&mut next);
        if next.lifecycle.is_none() && self.deployment.lifecycle.is_some() {
            if !self.webhook {
                return Err(Refused);
            }
            if self.lifecycle.is_some() {
                next.lifecycle.clone_from(&self.deployment.lifecycle);
            }
        }
        if next.template != self.deployment.template {
            self.templates += 1;
            self.held = next.lifecycle.is_some();
            self.excuse_unrecorded();
        }
        next.generation += 1;
        self.generations += 1;
        next.version = self.changed();
        self.deployment = next;
        Ok(())
    }

    /// By Kubernetes' own controller, of the version that it has.
    pub(crate) fn update_deployment_status(&mut self, seen: u64, mut next: DeploymentStatus) -> Result<u64, Refused> {
        if self.deployment.version != seen {
            return Err(Refused);
        }
        let grows = next.observed_generation > self.deployment.status.observed_generation;
        let aborted = next.progressing.as_mut().filter(|said| said.message.starts_with(ABORT_PREFIX));
        if let Some(said) = aborted.filter(|said| grows && self.webhook && said.status == "False") {
            said.status = "True";
            said.reason = "ReplicaSetUpdated".to_owned();
            said.message = "held".to_owned();
        }
        if next != self.deployment.status {
            self.deployment.status = next;
            self.deployment.version = self.changed();
        }
        Ok(self.deployment.version)
    }
}
