//! Kubernetes' Deployment controller: one sync, from what it has seen, as its source has it.
//!
//! It writes only what it thinks has changed, of the version that it has seen. What admission turns into nothing changes
//! nothing, so nobody wakes it. After [`PATIENCE`] failures in a row it forgets the Deployment until something happens.

use boathook_decide::deployment_lifecycle::{DeploymentCondition, Strategy};
use jiff::{SignedDuration, Timestamp};

use super::{
    World,
    api_server::Refused,
    objects::{DEADLINE, Deployment, DeploymentStatus, Set},
};
use boathook_api::words::condition;

/// How often it tries again.
const PATIENCE: u32 = 15;

#[derive(Debug, Default)]
pub(crate) struct Native {
    pub(crate) queued: bool,
    failures: u32,
    /// When it tries again, or looks whether there was any progress.
    pub(crate) again: Option<Timestamp>,
    /// What it saw last.
    seen: Option<Sync>,
}

/// What one sync works on: its own copies.
#[derive(Clone, Debug)]
pub(crate) struct Sync {
    pub(crate) deployment: Deployment,
    pub(crate) sets: Vec<Set>,
    /// For each ReplicaSet, whether it has pods that have not ended.
    pub(crate) running: Vec<String>,
}

impl Sync {
    pub(crate) fn new_set(&self) -> Option<usize> {
        self.sets.iter().position(|set| set.template == self.deployment.template)
    }

    pub(crate) fn old_sets(&self) -> Vec<usize> {
        let new = self.new_set();
        (0..self.sets.len()).filter(|place| Some(*place) != new).collect()
    }
}

impl World {
    /// `stale`: it has not heard of anything since it last looked.
    pub(crate) fn native_syncs(&mut self, stale: bool) {
        self.native.queued = false;
        if self.native.again.is_some_and(|again| again <= self.now) {
            self.native.again = None;
        }
        if !stale || self.native.seen.is_none() {
            let running = self.pods.iter().map(|pod| pod.set.clone()).collect();
            let (deployment, sets) = (self.deployment.clone(), self.sets.clone());
            self.native.seen = Some(Sync { deployment, sets, running });
        }
        let Some(sync) = self.native.seen.clone() else { return };
        match self.sync(sync) {
            Ok(()) => self.native.failures = 0,
            Err(Refused) => {
                self.native.failures += 1;
                if self.native.failures > PATIENCE {
                    self.native.failures = 0;
                } else {
                    let pause = SignedDuration::from_millis(5 << self.native.failures.min(12));
                    self.native_looks_again(self.now + pause);
                }
            }
        }
    }

    fn native_looks_again(&mut self, then: Timestamp) {
        self.native.again = Some(self.native.again.map_or(then, |again| again.min(then)));
    }

    fn sync(&mut self, mut sync: Sync) -> Result<(), Refused> {
        self.sync_revision(&mut sync)?;
        let replicas = sync.deployment.replicas;
        let scaled = |set: &Set| set.replicas > 0 && set.desired.is_some_and(|desired| desired != replicas);
        if sync.deployment.paused || sync.sets.iter().any(scaled) {
            self.scale(&mut sync)?;
            if sync.deployment.paused {
                self.clean_up(&sync);
            }
            let status = counted(&sync);
            self.update_deployment_status(sync.deployment.version, status)?;
            return Ok(());
        }
        match sync.deployment.strategy {
            Strategy::RollingUpdate => self.roll(&mut sync)?,
            Strategy::Recreate => self.recreate(&mut sync)?,
        }
        self.sync_rollout_status(&sync)
    }

    /// The annotations of the new ReplicaSet, if there is one.
    fn sync_revision(&mut self, sync: &mut Sync) -> Result<(), Refused> {
        let Some(place) = sync.new_set() else { return Ok(()) };
        let mut set = sync.sets[place].clone();
        if let Some(lifecycle) = &sync.deployment.lifecycle {
            set.lifecycle = Some(lifecycle.clone());
        }
        let revision = next_revision(sync);
        if set.revision.unwrap_or(0) < revision {
            set.revision = Some(revision);
        }
        if set != sync.sets[place] {
            sync.sets[place] = self.update_set(set)?;
        }
        Ok(())
    }

    /// Makes the new ReplicaSet, if there is none.
    pub(crate) fn make_new_set(&mut self, sync: &mut Sync) -> Result<usize, Refused> {
        if let Some(place) = sync.new_set() {
            return Ok(place);
        }
        let deployment = &sync.deployment;
        let mut set = Set {
            version: 0,
            uid: String::new(),
            created: self.now,
            template: deployment.template,
            lifecycle: deployment.lifecycle.clone(),
            revision: Some(next_revision(sync)),
            desired: Some(deployment.replicas),
            most: Some(deployment.replicas + deployment.surge()),
            gate: None,
            replicas: 0,
            has: 0,
            available: 0,
        };
        set.replicas = super::strategies::wanted(sync, &set);
        let made = self.create_set(set)?;
        sync.sets.push(made);
        Ok(sync.sets.len() - 1)
    }

    /// Old ReplicaSets beyond the limit go, the oldest revisions first.
    pub(crate) fn clean_up(&mut self, sync: &Sync) {
        let mut old: Vec<&Set> = sync.old_sets().into_iter().map(|place| &sync.sets[place]).collect();
        let over = old.len().saturating_sub(sync.deployment.history_limit);
        old.sort_by_key(|set| set.revision);
        for set in old.into_iter().take(over).filter(|set| set.replicas == 0 && set.has == 0) {
            let here = self.sets.len();
            self.sets.retain(|live| live.uid != set.uid);
            if self.sets.len() < here {
                self.changed();
            }
        }
    }

    /// The status, with what it says of progress.
    fn sync_rollout_status(&mut self, sync: &Sync) -> Result<(), Refused> {
        let (deployment, before) = (&sync.deployment, &sync.deployment.status);
        let mut status = counted(sync);
        let now = super::time::whole_seconds(self.now);
        let reason = before.progressing.as_ref().map(|said| said.reason.as_str());
        if !(status.replicas == status.updated && reason == Some("NewReplicaSetAvailable")) {
            let progress = status.updated > before.updated
                || status.replicas - status.updated < before.replicas - before.updated
                || status.available > before.available;
            let over = before.progressing.as_ref().is_some_and(|said| {
                said.reason != "NewReplicaSetAvailable"
                    && (said.reason == "ProgressDeadlineExceeded"
                        || said.last_update + SignedDuration::from_secs(DEADLINE) < now)
            });
            if deployment.is_complete(&status) {
                say(&mut status, "True", "NewReplicaSetAvailable", now);
            } else if progress || before.progressing.is_none() {
                status.progressing = None;
                say(&mut status, "True", "ReplicaSetUpdated", now);
            } else if over {
                say(&mut status, "False", "ProgressDeadlineExceeded", now);
            }
        }
        let waits = !deployment.is_complete(&status) && reason != Some("ProgressDeadlineExceeded");
        if let Some(said) = status.progressing.as_ref().filter(|_| waits && status == *before) {
            self.native_looks_again(
                (said.last_update + SignedDuration::from_secs(DEADLINE + 1))
                    .max(self.now + SignedDuration::from_secs(1)),
            );
        }
        self.update_deployment_status(deployment.version, status)?;
        Ok(())
    }
}

fn next_revision(sync: &Sync) -> i64 {
    sync.old_sets().into_iter().filter_map(|place| sync.sets[place].revision).max().unwrap_or(0) + 1
}

fn counted(sync: &Sync) -> DeploymentStatus {
    DeploymentStatus {
        observed_generation: sync.deployment.generation,
        replicas: sync.sets.iter().map(|set| set.has).sum(),
        updated: sync.new_set().map_or(0, |place| sync.sets[place].has),
        available: sync.sets.iter().map(|set| set.available).sum(),
        ..sync.deployment.status.clone()
    }
}

/// One that says the same already stays.
fn say(status: &mut DeploymentStatus, says: &'static str, reason: &str, now: Timestamp) {
    let before = status.progressing.as_ref();
    if before.is_some_and(|before| before.status == says && before.reason == reason) {
        return;
    }
    let since = before.filter(|before| before.status == says).map_or(now, |before| before.last_transition);
    status.progressing = Some(DeploymentCondition {
        kind: condition::PROGRESSING,
        status: says,
        reason: reason.to_owned(),
        message: "by the Deployment controller".to_owned(),
        last_update: now,
        last_transition: since,
    });
}
