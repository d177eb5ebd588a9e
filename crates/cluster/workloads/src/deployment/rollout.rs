//! One look at a Deployment: what is there now, and the steps to take. Pure.
//!
//! The order of things is the native controller's, down to which sizes a status counts (those from before the steps
//! of the same look): gates and people read these traces. A new ReplicaSet is always the last step of a plan; once it
//! is made, the next look goes on from there.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::numbers::{actual, available, is_rolling, size, surge, total, unavailable, wanted};
use super::{proportion, revision, status};
use crate::{ownership, pod};

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Status and annotations of the Deployment.
    WriteStatus(Box<Deployment>),
    Create(Box<ReplicaSet>),
    Replace(Box<ReplicaSet>),
    /// The same of an old ReplicaSet in a rolling update. The native controller takes no notice if it fails: the other
    /// old ones stay as they are, the status is written, and nothing brings the next look.
    Shrink(Box<ReplicaSet>),
    Delete(String),
    /// In an event: how a ReplicaSet was scaled.
    Tell(String),
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// When to look again, though nothing changes.
    pub(super) again: Option<Duration>,
}

/// `sets` are the Deployment's own, `pods` those of its namespace.
pub(super) fn plan(deployment: Deployment, mut sets: Vec<ReplicaSet>, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    sets.sort_by(by_creation);
    let new = revision::find(&deployment, &sets);
    let mut look = Look { deployment, sets, new, now, plan: Plan::default() };
    look.decide(pods);
    look.plan
}

fn by_creation(a: &ReplicaSet, b: &ReplicaSet) -> std::cmp::Ordering {
    let (a, b) = (&a.metadata, &b.metadata);
    a.creation_timestamp.cmp(&b.creation_timestamp).then_with(|| a.name.cmp(&b.name))
}

/// What of a plan is left to do.
pub(super) fn after_a_failed_shrink(left: impl Iterator<Item = Step>) -> Vec<Step> {
    left.filter(|step| match step {
        Step::WriteStatus(_) => true,
        Step::Create(_) | Step::Replace(_) | Step::Shrink(_) | Step::Delete(_) | Step::Tell(_) => false,
    })
    .collect()
}

/// What the Deployment says after its new ReplicaSet was made; whether that is news.
pub(super) fn note_creation(deployment: &mut Deployment, created: &ReplicaSet, is_new: bool, now: Timestamp) -> bool {
    let revision = revision::annotation(created, revision::REVISION).unwrap_or_default();
    let changed = revision::annotate(&mut deployment.metadata, revision::REVISION, revision);
    let message = format!("Created new replica set \"{}\"", created.name_any());
    (is_new && status::note_progress(deployment, "True", status::CREATED, &message, now)) || changed
}

struct Look {
    deployment: Deployment,
    /// From the oldest to the youngest.
    sets: Vec<ReplicaSet>,
    /// Which of them is the template's.
    new: Option<usize>,
    now: Timestamp,
    plan: Plan,
}

impl Look {
    fn decide(&mut self, pods: &[Arc<Pod>]) {
        if self.deployment.metadata.deletion_timestamp.is_some() {
            self.note_revision();
            return self.write_counts();
        }
        if status::note_pause(&mut self.deployment, self.now) {
            self.write_status();
        }
        let paused = status::is_paused(&self.deployment);
        if self.note_revision() && !paused {
            // The changed ReplicaSet brings the next look; the native controller goes no further either (it runs into
            // a conflict with itself).
            return;
        }
        if paused || self.was_scaled() {
            self.scale();
            if paused {
                self.delete_history();
            }
            self.write_counts();
        } else if is_rolling(&self.deployment) {
            self.roll();
        } else {
            self.recreate(pods);
        }
    }

    fn new_set(&self) -> Option<&ReplicaSet> {
        self.new.map(|new| &self.sets[new])
    }

    fn old_sets(&self) -> Vec<ReplicaSet> {
        let old = self.sets.iter().enumerate().filter(|(index, _)| Some(*index) != self.new);
        old.map(|(_, set)| set.clone()).collect()
    }

    fn step(&mut self, step: Step) {
        self.plan.steps.push(step);
    }

    fn write_status(&mut self) {
        self.step(Step::WriteStatus(Box::new(self.deployment.clone())));
    }

    /// Keeps annotations of the template's ReplicaSet, if there is one, and the Deployment's revision up to date; whether
    /// the ReplicaSet needed it.
    fn note_revision(&mut self) -> bool {
        let Some(new) = self.new else { return false };
        let number = revision::highest(&self.old_sets()) + 1;
        let set = &mut self.sets[new];
        let mut changed = revision::note_revision(set, &self.deployment, number);
        let seconds = self.deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
        let spec = set.spec.get_or_insert_default();
        if spec.min_ready_seconds.unwrap_or_default() != seconds {
            spec.min_ready_seconds = Some(seconds).filter(|seconds| *seconds != 0);
            changed = true;
        }
        let set = set.clone();
        if changed {
            self.step(Step::Replace(Box::new(set)));
            return true;
        }
        let revision = revision::annotation(&set, revision::REVISION).unwrap_or_default();
        let mut changed = revision::annotate(&mut self.deployment.metadata, revision::REVISION, revision);
        if status::progress(&self.deployment).is_none() {
            let message = format!("Found new replica set \"{}\"", set.name_any());
            changed |= status::note_progress(&mut self.deployment, "True", status::FOUND, &message, self.now);
        }
        if changed {
            self.write_status();
        }
        false
    }

    /// Whether the Deployment's size was changed since its ReplicaSets were last scaled.
    fn was_scaled(&self) -> bool {
        let mut active = self.sets.iter().filter(|set| size(set) > 0);
        active.any(|set| revision::desired(set).is_some_and(|desired| desired != wanted(&self.deployment)))
    }

    /// Follows a changed size without going on with a rollout.
    fn scale(&mut self) {
        let old = self.old_sets();
        let active: Vec<&ReplicaSet> = self.sets.iter().filter(|set| size(set) > 0).collect();
        let only = match active.as_slice() {
            [] => self.new_set().or(old.last()).cloned(),
            [one] => Some((*one).clone()),
            [_, _, ..] => None,
        };
        if let Some(only) = only {
            self.resize(&only, wanted(&self.deployment));
        } else if self.new_set().is_some_and(|new| self.is_saturated(new)) {
            for set in old {
                self.resize(&set, 0);
            }
        } else if is_rolling(&self.deployment) {
            let active = active.into_iter().cloned().collect();
            for (set, to) in proportion::sizes(&self.deployment, active) {
                self.resize_or_note(&set, to, Step::Replace);
            }
        }
    }

    fn is_saturated(&self, set: &ReplicaSet) -> bool {
        let all = wanted(&self.deployment);
        size(set) == all && revision::desired(set) == Some(all) && available(set) == all
    }

    /// Gives the ReplicaSet another size; whether it had another one.
    fn resize(&mut self, set: &ReplicaSet, to: i32) -> bool {
        let differs = size(set) != to;
        if differs {
            self.resize_or_note(set, to, Step::Replace);
        }
        differs
    }

    /// The same, and brings the noted sizes up to date where its own is right already.
    fn resize_or_note(&mut self, set: &ReplicaSet, to: i32, step: fn(Box<ReplicaSet>) -> Step) {
        let from = size(set);
        let mut set = resized(set, to);
        let noted = revision::note_sizes(&mut set, &self.deployment);
        if from == to && !noted {
            return;
        }
        let name = set.name_any();
        self.step(step(Box::new(set)));
        if from != to {
            let direction = if from < to { "up" } else { "down" };
            self.step(Step::Tell(format!("Scaled {direction} replica set {name} from {from} to {to}")));
        }
    }

    /// Plans the template's ReplicaSet; nothing more can be done in this look.
    fn create(&mut self) {
        let set = revision::replica_set(&self.deployment, revision::highest(&self.old_sets()) + 1);
        let room = if is_rolling(&self.deployment) { self.size_with_room(0) } else { wanted(&self.deployment) };
        self.step(Step::Create(Box::new(resized(&set, room))));
    }

    /// How large a new ReplicaSet of this size may become now.
    fn size_with_room(&self, from: i32) -> i32 {
        let all = wanted(&self.deployment);
        let room = all + surge(&self.deployment) - total(&self.sets, size);
        if room <= 0 { from } else { from + room.min(all - from) }
    }

    fn roll(&mut self) {
        let Some(new) = self.new_set().cloned() else { return self.create() };
        let all = wanted(&self.deployment);
        let target = if size(&new) > all { all } else { self.size_with_room(size(&new)) };
        let scaled = (size(&new) != all && self.resize(&new, target)) || self.shrink_old(&new);
        if !scaled && self.is_complete() {
            self.delete_history();
        }
        self.write_rollout();
    }

    /// Takes old pods away: unhealthy ones first, then as many as there are healthy ones to spare.
    fn shrink_old(&mut self, new: &ReplicaSet) -> bool {
        let mut old: Vec<ReplicaSet> = self.old_sets().into_iter().filter(|set| size(set) > 0).collect();
        let needed = wanted(&self.deployment) - unavailable(&self.deployment);
        let mut spare = total(&self.sets, size) - needed - (size(new) - available(new));
        if old.is_empty() || spare <= 0 {
            return false;
        }
        let mut shrunk = false;
        for set in &mut old {
            if spare > 0 && available(set) > size(set) {
                // Its status lags behind its size: what it calls available is about to go, so nobody can say what is
                // to spare.
                return false;
            }
            let fewer = spare.min(size(set) - available(set));
            if fewer > 0 {
                self.resize_or_note(set, size(set) - fewer, Step::Shrink);
                *set = resized(set, size(set) - fewer);
                revision::note_sizes(set, &self.deployment);
                spare -= fewer;
                shrunk = true;
            }
        }
        let mut spare = total(&old, available) + available(new) - needed;
        for set in &old {
            let fewer = spare.min(size(set));
            if fewer > 0 {
                self.resize_or_note(set, size(set) - fewer, Step::Shrink);
                spare -= fewer;
                shrunk = true;
            }
        }
        shrunk
    }

    fn recreate(&mut self, pods: &[Arc<Pod>]) {
        let mut scaled = false;
        for set in self.old_sets() {
            scaled |= self.resize(&set, 0);
        }
        if scaled || self.old_pods_run(pods) {
            return self.write_rollout();
        }
        let Some(new) = self.new_set().cloned() else { return self.create() };
        self.resize(&new, wanted(&self.deployment));
        if self.is_complete() {
            self.delete_history();
        }
        self.write_rollout();
    }

    fn old_pods_run(&self, pods: &[Arc<Pod>]) -> bool {
        let old = self.old_sets();
        let owned_by_old = |pod: &Pod| old.iter().any(|set| ownership::is_controlled_by(pod, set));
        total(&old, actual) > 0 || pods.iter().any(|pod| !pod::is_finished(pod) && owned_by_old(pod))
    }

    fn is_complete(&self) -> bool {
        self.deployment.status.as_ref().is_some_and(|status| status::is_complete(&self.deployment, status))
    }

    /// Old, empty ReplicaSets beyond the history limit go, lowest revisions first.
    fn delete_history(&mut self) {
        let limit = self.deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else { return };
        let mut old = self.old_sets();
        old.retain(|set| set.metadata.deletion_timestamp.is_none());
        let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        old.sort_by_key(revision::revision);
        for set in old.into_iter().take(excess) {
            let observed = set.status.as_ref().and_then(|status| status.observed_generation).unwrap_or_default();
            if actual(&set) == 0 && size(&set) == 0 && set.metadata.generation.unwrap_or_default() <= observed {
                self.step(Step::Delete(set.name_any()));
            }
        }
    }

    fn write_counts(&mut self) {
        let status = status::counted(&self.deployment, &self.sets, self.new_set(), self.now);
        self.write_if_new(status);
    }

    fn write_rollout(&mut self) {
        let status = status::of_rollout(&self.deployment, &self.sets, self.new_set(), self.now);
        self.plan.again = status::next_check(&self.deployment, &status, self.now);
        self.write_if_new(status);
    }

    fn write_if_new(&mut self, status: DeploymentStatus) {
        if self.deployment.status.as_ref() != Some(&status) {
            self.deployment.status = Some(status);
            self.write_status();
        }
    }
}

fn resized(set: &ReplicaSet, to: i32) -> ReplicaSet {
    let mut set = set.clone();
    set.spec.get_or_insert_default().replicas = Some(to);
    set
}
