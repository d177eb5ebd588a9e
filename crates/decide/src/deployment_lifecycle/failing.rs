//! A hook that has failed for good: the rollout goes on without it, or is aborted.

use boathook_api::{
    deployment_lifecycle::{FailurePolicy, LifecycleHook, Rollout, RolloutPhase, Stage, StageRecord, StageState},
    words::reason,
};

use super::{Deployment, HookPod, Look, Strategy, hook_pod, refused_pod::is_refusal, stage::Step};
use crate::{last_lines::with_last_lines, moment::moment};

/// How a hook failed.
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) log_tail: Option<String>,
}

impl Look<'_> {
    pub(super) fn fail(
        &mut self,
        deployment: &Deployment,
        hook: &LifecycleHook,
        mut record: StageRecord,
        failure: Failure,
    ) -> Step {
        let Failure { message, log_tail } = failure;
        let stage = record.stage;
        let ignored = is_ignored(hook, stage, deployment);
        record.state = if ignored { StageState::Ignored } else { StageState::Failed };
        record.complete_time = Some(moment(self.now));
        record.message = Some(message);
        // What the last try wrote may be gone with its container; what one before it wrote is kept.
        record.log_tail = log_tail.or(record.log_tail);
        let message = failure_text(&record);
        self.put(record);
        let consequence = if ignored { "the rollout continues" } else { "the rollout is aborted" };
        self.warn(reason::HOOK_RUN_FAILED, "RunHook", format!("{stage} failed, {consequence}: {message}"));
        if ignored {
            // Told before anything follows from it: whoever is stopped then does not know it any more.
            self.write_status();
        }
        match ignored {
            // Its pod may have to end first.
            true => match self.end_hooks(None) {
                true => Step::Passed,
                false => Step::Waits,
            },
            false => {
                self.abort(stage, &message);
                Step::Aborted
            }
        }
    }

    /// A hook that cannot run is known before anything is touched: that of a later stage too, when it would be too late
    /// to keep the old version. Whether the rollout is aborted for one; what is ignored is so at its stage.
    pub(super) fn fail_what_cannot_run(&mut self, deployment: &Deployment) -> bool {
        let Some(rollout) = self.status.rollout.clone() else { return false };
        let mistake = Stage::ALL.into_iter().filter(|stage| self.has_yet_to_pass(*stage)).find_map(|stage| {
            let hook = rollout.hooks.hook(stage).filter(|hook| !is_ignored(hook, stage, deployment))?;
            Some((stage, hook, hook_pod::mistake(deployment, stage, hook)?))
        });
        let Some((stage, hook, message)) = mistake else { return false };
        let record = rollout.stage(stage).cloned().unwrap_or_else(|| self.begun(stage));
        self.fail(deployment, hook, record, Failure { message, log_tail: None });
        true
    }

    fn abort(&mut self, stage: Stage, message: &str) {
        let Some(rollout) = &mut self.status.rollout else { return };
        rollout.phase = RolloutPhase::Aborted;
        rollout.complete_time = Some(moment(self.now));
        let message = format!("{stage} failed: {message}");
        self.set_failed(&message);
        self.warn(reason::ABORTED, "Abort", message);
    }

    /// Mid cannot be run: the strategy was changed while a rollout was under way.
    pub(super) fn abort_mid(&mut self, deployment: &Deployment, message: &str) {
        let known = self.status.rollout.as_ref().and_then(|rollout| rollout.stage(Stage::Mid)).cloned();
        let mut record = known.unwrap_or_else(|| self.begun(Stage::Mid));
        record.state = StageState::Failed;
        record.complete_time = Some(moment(self.now));
        record.message = Some(message.to_owned());
        self.put(record);
        self.abort(Stage::Mid, message);
        self.aborted(deployment);
    }
}

/// Whether the rollout goes on without it.
pub(super) fn is_ignored(hook: &LifecycleHook, stage: Stage, deployment: &Deployment) -> bool {
    // After a RollingUpdate there is nothing left to abort.
    let can_abort = stage != Stage::Post || deployment.strategy == Strategy::Recreate;
    match hook.failure_policy {
        FailurePolicy::Ignore => true,
        FailurePolicy::Abort | FailurePolicy::Retry => !can_abort,
    }
}

/// How a stage failed, with the last lines of what its hook wrote.
pub(super) fn failure_text(record: &StageRecord) -> String {
    with_last_lines(record.message.as_deref().unwrap_or_default(), record.log_tail.as_deref().unwrap_or_default())
}

/// The stage that ended the rollout.
pub(super) fn failed_stage(rollout: &Rollout) -> Option<&StageRecord> {
    rollout.stages.iter().find(|record| record.state == StageState::Failed)
}

/// Its time is over.
pub(super) fn exhausted(deployment: &Deployment, pod: Option<&HookPod>, record: &StageRecord) -> Failure {
    let seconds = deployment.progress_deadline_seconds;
    let mut message = format!("the hook did not succeed within {seconds} s, the Deployment's progressDeadlineSeconds");
    match pod {
        Some(HookPod { failures: 1.., .. }) => message += &format!("; it failed {} times", record.failures),
        Some(HookPod { waiting: Some(why), .. }) => message += &format!("; last seen: {why}"),
        // How it ended tells no more what it had waited for.
        Some(HookPod { runs: false, .. }) if record.failures == 0 => {
            message += &record.message.as_ref().map(|why| format!("; last seen: {why}")).unwrap_or_default();
        }
        Some(_) => {}
        None => {
            let why = record.message.as_deref().filter(|message| is_refusal(message));
            message += &why.map(|why| format!("; {why}")).unwrap_or_default();
        }
    }
    Failure { message, log_tail: pod.and_then(|pod| pod.log_tail.clone()) }
}
