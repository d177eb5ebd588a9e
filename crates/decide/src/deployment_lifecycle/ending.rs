//! How a rollout ends: complete, or aborted. What is left then is tidied up.

use boathook_api::{
    deployment_lifecycle::{RolloutPhase, Stage, StageRecord, StageState},
    words::{ABORT_PREFIX, condition, reason},
};

use super::{
    Deployment, DeploymentCondition, Effect, End, Look, ReplicaSet,
    failing::{failed_stage, failure_text},
    gate::Mark,
    hook_pod,
    phases::{Standing, is_complete, standing},
};
use crate::moment::moment;

/// `progressDeadlineSeconds` of a Deployment that has none, as Kubernetes has it.
const NO_DEADLINE: i32 = i32::MAX;

impl Look<'_> {
    pub(super) fn complete(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        let Some((target, revision)) = target.and_then(|target| Some((target, target.revision.clone()?))) else {
            return;
        };
        self.finish(deployment, target, &revision);
        // Recorded first: a mark counts only with its record.
        self.write_status();
        self.mark(target, Some(Mark::Done { revision }));
        self.clear(target);
        self.tidy();
    }

    fn finish(&mut self, deployment: &Deployment, target: &ReplicaSet, revision: &str) {
        let now = moment(self.now);
        if let Some(rollout) = &mut self.status.rollout {
            rollout.phase = RolloutPhase::Complete;
            rollout.complete_time = Some(now);
            rollout.revision = Some(revision.to_owned());
            rollout.replica_set = Some(target.name.clone());
        }
        let hooks = self.status.rollout.as_ref().map(|rollout| how_hooks_went(&rollout.stages)).unwrap_or_default();
        let message = format!("revision {revision} is rolled out{hooks}");
        self.set_complete(reason::COMPLETE, &message);
        self.report(reason::COMPLETE, "Complete", message.clone());
        self.say(deployment, reason::COMPLETE, &message);
    }

    /// The target is done: nothing is to be done but to remember it.
    pub(super) fn idle(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        let Some((target, revision)) = target.and_then(|target| Some((target, target.revision.clone()?))) else {
            return;
        };
        if deployment.ours.as_ref().is_none_or(|ours| ours.reason != reason::COMPLETE) {
            self.say(deployment, reason::COMPLETE, &format!("revision {revision} is rolled out"));
        }
        // The controller may have stopped between the record and the mark.
        self.mark(target, Some(Mark::Done { revision }));
        self.end_hooks(None);
        self.drain(deployment, Some(target));
        self.clear(target);
        self.tidy();
        // A rollout that was under way when it was adopted goes on.
        self.nudge_if_idle(deployment, Some(target));
    }

    pub(super) fn aborted(&mut self, deployment: &Deployment) {
        let failed = self.status.rollout.as_ref().and_then(failed_stage);
        let Some(record) = failed.cloned() else { return };
        self.end_hooks(None);
        self.tidy();
        let (stage, why) = (record.stage, failure_text(&record));
        let message = format!("{ABORT_PREFIX}{stage} failed, Boathook aborted the rollout: {why}");
        self.say(deployment, reason::ABORTED, &message);
        // After post the Deployment controller is content, and so it is with no replicas; and without a deadline it takes
        // back whatever is said of one.
        let never = deployment.progress_deadline_seconds == NO_DEADLINE;
        let served =
            stage == Stage::Post && standing(self.target(deployment), self.status.rollout.as_ref()) != Standing::Held;
        if served || deployment.replicas == 0 || never || is_complete(deployment) {
            return;
        }
        let asserted = deployment
            .progressing
            .as_ref()
            .is_some_and(|progressing| progressing.status == "False" && progressing.message.starts_with(ABORT_PREFIX));
        if deployment.observed_generation < deployment.generation {
            // Written now, it would be taken for that of the template before.
            self.nudge(deployment);
        } else if !asserted {
            self.decision.effects.push(Effect::SetCondition(DeploymentCondition {
                kind: condition::PROGRESSING,
                status: "False",
                reason: reason::PROGRESS_DEADLINE_EXCEEDED.to_owned(),
                message,
                last_update: self.now,
                last_transition: self.now,
            }));
        }
    }

    /// Pods that have succeeded go; of those that failed, the last ones stay.
    fn tidy(&mut self) {
        let past = self.status.history.first().map(|past| &past.rollout);
        let kept: Vec<_> = self.status.rollout.iter().chain(past).map(hook_pod::rollout_id).collect();
        for pod in self.observed.hook_pods.iter().filter(|pod| !pod.live && pod.gone_by.is_none()) {
            if pod.end == Some(End::Succeeded) || !kept.contains(&pod.rollout) {
                self.delete(pod);
            }
        }
    }
}

/// How the message of a complete rollout ends: with the stages that did not succeed, if there are any.
fn how_hooks_went(stages: &[StageRecord]) -> String {
    let exceptions: Vec<_> = stages
        .iter()
        .filter_map(|record| match record.state {
            StageState::Ignored | StageState::Failed => Some(format!("{} failed and was ignored", record.stage)),
            StageState::Skipped => Some(format!("{} was skipped", record.stage)),
            StageState::Running | StageState::Succeeded | StageState::Superseded => None,
        })
        .collect();
    match (stages.is_empty(), exceptions.is_empty()) {
        (true, _) => String::new(),
        (false, true) => ", with its hooks".to_owned(),
        (false, false) => format!(", but {}", exceptions.join(" and ")),
    }
}
