//! Whether a stage of a rollout had passed by a certain change, as far as was seen before it. Who lets a version in writes
//! down only after that how its hooks went: what is recorded later proves nothing.

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{FailurePolicy, Requested, Rollout, RolloutRequest, Stage, StageRecord, StageState},
    words::{ROLLOUT_LABEL, ROLLOUT_REQUEST},
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::{
    history::{History, exit_code, hook_stage, is_live},
    invariants::id,
    story::{Moment, Now, Thing},
};
use crate::boathook::lifecycles::rollout;

/// A stage at one change of all.
pub(super) struct StageThen<'a> {
    /// As it was at last.
    pub(super) rollout: &'a Rollout,
    pub(super) stage: Stage,
    pub(super) history: &'a History,
    /// Which change it was.
    pub(super) place: usize,
    /// What there was just before it.
    pub(super) before: &'a Now,
}

impl StageThen<'_> {
    /// A pod of its hook had ended with 0; or nothing of it ran any more, and it was let on without.
    pub(super) fn has_passed(&self) -> bool {
        let Some(hook) = self.rollout.hooks.hook(self.stage) else { return true };
        let succeeded = || self.seen().iter().any(|moment| self.pod(moment).and_then(exit_code) == Some(0));
        let is_ignored = || hook.failure_policy == FailurePolicy::Ignore && self.has_failed();
        let runs = || self.before.pods.values().any(|pod| self.is_of(pod) && is_live(pod));
        succeeded() || (!runs() && (self.is_recorded_or_asked_for() || is_ignored()))
    }

    /// It was recorded that it is let on without, or a person had asked for that.
    fn is_recorded_or_asked_for(&self) -> bool {
        self.seen().iter().any(|moment| match &moment.thing {
            Thing::Lifecycle(lifecycle) => match self.record(lifecycle).map(|record| record.state) {
                Some(StageState::Ignored | StageState::Skipped) => true,
                Some(StageState::Running | StageState::Failed) => asks_to_skip(lifecycle, self.stage),
                Some(StageState::Succeeded | StageState::Superseded) | None => false,
            },
            Thing::Deployment(_) | Thing::ReplicaSet(_) | Thing::Pod(_) => false,
        })
    }

    /// A pod of its hook had ended; or none was ever made, and that was its failure.
    fn has_failed(&self) -> bool {
        let has_ended = |moment: &Moment| self.pod(moment).is_some_and(|pod| moment.gone || !is_live(pod));
        let made = || self.history.moments().iter().any(|moment| self.pod(moment).is_some());
        let at_last = self.rollout.stage(self.stage).map(|record| record.state);
        self.seen().iter().any(has_ended) || (!made() && at_last == Some(StageState::Ignored))
    }

    fn seen(&self) -> &[Moment] {
        &self.history.moments()[..self.place]
    }

    /// What this lifecycle says of it.
    fn record<'a>(&self, lifecycle: &'a DeploymentLifecycle) -> Option<&'a StageRecord> {
        let same = rollout(lifecycle).filter(|rollout| rollout.start_time == self.rollout.start_time);
        same.and_then(|rollout| rollout.stage(self.stage))
    }

    /// The pod of its hook that changed then.
    fn pod<'a>(&self, moment: &'a Moment) -> Option<&'a Pod> {
        match &moment.thing {
            Thing::Pod(pod) => Some(&**pod).filter(|pod| self.is_of(pod)),
            Thing::Deployment(_) | Thing::ReplicaSet(_) | Thing::Lifecycle(_) => None,
        }
    }

    fn is_of(&self, pod: &Pod) -> bool {
        runs_for(pod, self.rollout) && hook_stage(pod) == Some(self.stage.as_str())
    }
}

/// Whether this pod runs a hook of that rollout.
pub(super) fn runs_for(pod: &Pod, rollout: &Rollout) -> bool {
    pod.labels().get(ROLLOUT_LABEL) == Some(&id(&rollout.start_time))
}

/// Whether a person asks there, and it was not carried out yet, to go on without this stage.
fn asks_to_skip(lifecycle: &DeploymentLifecycle, stage: Stage) -> bool {
    let known = rollout(lifecycle).and_then(|rollout| rollout.request.as_ref());
    let asked = lifecycle.annotations().get(ROLLOUT_REQUEST).filter(|asked| Some(*asked) != known);
    let asked = asked.and_then(|asked| serde_json::from_str::<RolloutRequest>(asked).ok());
    asked.is_some_and(|request| request.stage == stage && request.what == Requested::Skip)
}
