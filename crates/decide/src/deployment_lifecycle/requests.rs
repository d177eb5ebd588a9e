//! What people ask of a stage that is stuck: to try it again, or to go on without it.

use boathook_api::{
    deployment_lifecycle::{Requested, RolloutPhase, RolloutRequest, Stage, StageRecord, StageState},
    words::{ROLLOUT_REQUEST, ROLLOUT_REQUESTED_BY, reason},
};
use kube::ResourceExt;

use super::{
    Deployment, Look, hook_pod,
    phases::{Standing, standing},
    saying::name,
};
use crate::moment::moment;

impl Look<'_> {
    /// A person wants a stage again, or to go on without it.
    pub(super) fn carry_out_request(&mut self, deployment: &Deployment) {
        let annotations = self.observed.object.annotations();
        let Some(text) = annotations.get(ROLLOUT_REQUEST) else { return };
        let by = annotations.get(ROLLOUT_REQUESTED_BY).cloned();
        let Some(rollout) = self.status.rollout.as_mut().filter(|rollout| rollout.request.as_ref() != Some(text))
        else {
            return;
        };
        // Once, whatever comes of it.
        rollout.request = Some(text.clone());
        let request: RolloutRequest = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => {
                let note = format!("annotation `{ROLLOUT_REQUEST}` is invalid: {error}");
                return self.warn(reason::REQUEST_REFUSED, "Request", note);
            }
        };
        let (stage, who) = (request.stage, by.clone().unwrap_or_else(|| "a user".to_owned()));
        let open = |record: &&StageRecord| matches!(record.state, StageState::Running | StageState::Failed);
        let Some(mut record) = rollout.stage(stage).filter(open).cloned() else {
            let note = format!(
                "{who} made a request for {stage} of `{}`, but only a stage that runs or has failed can be retried or \
                 skipped",
                deployment.name
            );
            return self.warn(reason::REQUEST_REFUSED, "Request", note);
        };
        rollout.complete_time = None;
        record.requested_by = by;
        match request.what {
            Requested::Skip => {
                record.state = StageState::Skipped;
                record.complete_time = Some(moment(self.now));
                self.report(reason::SKIPPED, "Skip", format!("{who} skipped {stage}"));
            }
            Requested::Retry => {
                record.state = StageState::Running;
                record.complete_time = None;
                record.start_time = moment(self.now);
                record.pods += 1;
                record.pod =
                    self.status.rollout.as_ref().map(|rollout| hook_pod::name(deployment, rollout, stage, record.pods));
                (record.pod_uid, record.pod_failures) = (None, 0);
                // They are about the pod before.
                (record.message, record.log_tail) = (None, None);
                self.report(reason::RETRIED, "Retry", format!("{who} retried {stage} of `{}`", name(self.observed)));
            }
        }
        self.put(record);
        self.go_back_to(deployment, stage);
    }

    /// It goes on with this stage; or with an earlier one, if it was aborted for a hook whose stage it had not reached.
    fn go_back_to(&mut self, deployment: &Deployment, stage: Stage) {
        // As recorded before the request changed the stage.
        let recorded = self.observed.object.status.as_ref().and_then(|status| status.rollout.as_ref());
        let is_held = standing(self.target(deployment), recorded) == Standing::Held;
        let earlier = Stage::ALL.into_iter().find(|stage| self.has_yet_to_pass(*stage));
        let stage = earlier.map_or(stage, |earlier| earlier.min(stage));
        let Some(rollout) = &mut self.status.rollout else { return };
        rollout.phase = match stage {
            Stage::Post if is_held => RolloutPhase::Pre,
            Stage::Pre => RolloutPhase::Pre,
            Stage::Mid => RolloutPhase::Mid,
            Stage::Post => RolloutPhase::Post,
        };
    }
}
