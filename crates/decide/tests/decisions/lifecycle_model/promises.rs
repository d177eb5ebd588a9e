//! What must always hold, against what really happened.

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{DeploymentLifecycleStatus, FailurePolicy, Rollout, RolloutPhase, Stage, StageState},
};
use boathook_decide::deployment_lifecycle::{Effect, Strategy};
use jiff::SignedDuration;

use super::{
    World,
    hooks::HookPod,
    objects::{DEADLINE, Set, digest},
    runs::Outcome,
};

/// I13: so many writes of ours has a rollout in which nothing happens; each thing that does is worth some more.
const WRITES: usize = 40;
const WRITES_EACH: usize = 12;

impl World {
    /// The rollout that is recorded, if it is that of the Deployment's template now.
    pub(crate) fn rollout(&self) -> Option<&Rollout> {
        let rollout = self.lifecycle.as_ref()?.status.as_ref()?.rollout.as_ref()?;
        let set = self.set_of(self.deployment.template);
        let revision = set.and_then(|set| set.revision).map(|revision| revision.to_string());
        let same = rollout.revision.is_none() || revision.is_none() || rollout.revision == revision;
        Some(rollout).filter(|rollout| same && rollout.target == digest(self.deployment.template))
    }

    /// Whether this stage of the rollout has really passed.
    fn has_passed(&self, stage: Stage) -> bool {
        let Some(rollout) = self.rollout() else { return false };
        let Some(hook) = rollout.hooks.hook(stage) else { return true };
        let record = rollout.stage(stage);
        let id = id(rollout);
        let ran = |outcome| self.of_rollout(&id, stage).any(|run| run.outcome == outcome);
        let over = record.is_some_and(|record| self.now >= record.start_time.0 + SignedDuration::from_secs(DEADLINE));
        let ignored = hook.failure_policy == FailurePolicy::Ignore && (ran(Outcome::Failed) || over);
        ran(Outcome::Succeeded)
            || ignored
            || record.is_some_and(|record| record.state.has_passed())
            || self.skips.contains(&(id, stage))
    }

    /// The Deployment's template was held from the start, and nothing of it may be begun yet.
    pub(crate) fn is_held(&self) -> bool {
        self.held && !self.has_passed(Stage::Pre)
    }

    /// A ReplicaSet's size is about to be changed.
    pub(crate) fn check_move(&self, old: &Set, next: &Set) {
        let scaling = old.replicas > 0 && old.desired.is_some() && old.desired != next.desired;
        if old.replicas == next.replicas || scaling || !self.held || old.lifecycle.is_none() {
            return;
        }
        let is_target = next.template == self.deployment.template;
        if next.replicas < old.replicas {
            let correction = next.desired == Some(next.replicas);
            assert!(correction || !self.is_held(), "an old pod is shrunk away before pre has passed: {old:?} {next:?}");
            return;
        }
        if !is_target {
            // While it is paused, the version that runs is scaled.
            return;
        }
        // A cancel: the template is the one again that runs everywhere.
        let runs_everywhere = old.replicas > 0
            && self.sets.iter().filter(|set| set.uid != old.uid).all(|set| set.replicas == 0 && set.has == 0);
        let recreates = self.deployment.strategy == Strategy::Recreate;
        let may = !self.is_held() && (!recreates || self.has_passed(Stage::Mid));
        assert!(
            may || runs_everywhere,
            "the target grows before its hooks have passed: {next:?} {:#?}",
            self.lifecycle
        );
    }

    pub(crate) fn check_new_pod(&self, set: &str) {
        let mid = self.hook_pods.iter().find(|pod| pod.stage == Stage::Mid && pod.runs());
        assert!(mid.is_none(), "I6: {set} makes a pod while mid runs: {mid:?}");
    }

    pub(crate) fn check_new_hook(&self, new: &HookPod, template: char) {
        let other = self.hook_pods.iter().find(|pod| pod.runs());
        assert!(other.is_none(), "I5: {new:?} is made beside {other:?}");
        if new.stage == Stage::Mid {
            assert!(self.pods.is_empty(), "I6: mid begins beside {:?}", self.pods);
        }
        for run in self.of_rollout(&new.rollout, new.stage) {
            assert!(run.excused, "a hook runs again without a reason: {run:?}");
        }
        let mut same = self.runs.iter().filter(|run| run.template == self.templates && run.stage == new.stage);
        let again = same.find(|run| run.outcome == Outcome::Succeeded && !run.excused);
        assert!(again.is_none(), "a hook that has succeeded runs again: {again:?}");
        if self.arrives_late {
            return;
        }
        let rollout = self.lifecycle.as_ref().and_then(|object| object.status.as_ref()?.rollout.as_ref());
        let rollout = rollout.expect("a hook is recorded before its pod is made");
        assert_eq!(id(rollout), new.rollout, "I5: a hook of another rollout than the recorded one");
        assert_eq!(rollout.target, digest(template), "a hook runs the image of its rollout");
        let record = rollout.stage(new.stage).expect("a stage is recorded before its pod is made");
        assert_eq!(record.state, StageState::Running);
        assert_eq!(record.pod.as_ref(), Some(&new.name));
    }

    /// A status is about to be written, of the version that was looked at.
    pub(crate) fn check_status(&self, object: Option<&DeploymentLifecycle>, next: &DeploymentLifecycleStatus) {
        let (Some(live), Some(object)) = (&self.lifecycle, object) else { return };
        if live.metadata.resource_version != object.metadata.resource_version {
            return;
        }
        let before = live.status.clone().unwrap_or_default();
        let kept = before.history.len().min(next.history.len());
        let new = next.history.len() - kept;
        let shifted = next.history.len() == 10 && next.history.first() != before.history.first();
        let from = if shifted { 1 } else { new };
        assert!(from <= 1, "one rollout at a time is over");
        for (then, now) in before.history.iter().zip(&next.history[from..]) {
            assert_eq!(then, now, "I8: what is over changed");
        }
        let (Some(old), Some(new)) = (&before.rollout, &next.rollout) else { return };
        if id(old) == id(new) {
            let stays = old.phase != RolloutPhase::Complete || new.phase == RolloutPhase::Complete;
            assert!(stays, "I8: a rollout that was complete is {:?}", new.phase);
        } else {
            assert_eq!(next.history.first().map(|past| id(&past.rollout)), Some(id(old)), "a rollout is forgotten");
            if new.phase == RolloutPhase::Pre {
                let other = self.hook_pods.iter().find(|pod| pod.runs());
                assert!(other.is_none(), "I5: pre is recorded while a hook of another rollout runs: {other:?}");
            }
        }
        if new.phase == RolloutPhase::Complete {
            let open = new.stages.iter().find(|record| !record.state.has_passed());
            assert!(open.is_none(), "it is complete, and a stage is not: {open:?}");
        }
        for record in new.stages.iter().filter(|record| record.state == StageState::Succeeded) {
            let ran = self.of_rollout(&id(new), record.stage).any(|run| run.outcome == Outcome::Succeeded);
            assert!(ran, "it is said to have succeeded: {record:?}");
        }
    }

    /// The API of a decision cannot touch the Deployment's spec; of its writes only these change the generation.
    pub(crate) fn note_effect(&mut self, effect: &Effect) {
        if let Effect::SetCondition(condition) = effect {
            let ours = self.deployment.status.ours.as_ref();
            let same = ours.is_some_and(|ours| ours.reason == condition.reason && ours.message == condition.message);
            self.nudges += usize::from(same);
        }
    }

    /// I13.
    pub(crate) fn count_write(&mut self) {
        let rollout = self.lifecycle.as_ref().and_then(|object| object.status.as_ref()?.rollout.as_ref());
        let writes = self.writes.entry(rollout.map(id).unwrap_or_default()).or_default();
        *writes += 1;
        let most = WRITES + WRITES_EACH * self.disturbances + self.nudges;
        assert!(*writes <= most, "I13: {writes} writes, with {} disturbances", self.disturbances);
    }
}

pub(crate) fn id(rollout: &Rollout) -> String {
    rollout.start_time.0.as_microsecond().to_string()
}
