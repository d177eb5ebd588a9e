//! How a rollout stands: a pure look at the Deployment and its lifecycle. What is recorded of another template, or of an
//! earlier rollout of the same one, is not about this rollout.

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Rollout, RolloutPhase, StageState},
    words::{ROLLOUT_REQUEST, condition, reason},
};
use boathook_controllers::deployment_lifecycle::REVISION;
use boathook_decide::deployment_lifecycle::{Deployment, strategy_mistake};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{deployment::RawDeployment, view::is_stuck};
use crate::output::plain::one_line;

/// What was seen of both at one moment.
pub(super) struct Seen<'a> {
    pub(super) deployment: Deployment,
    /// As the Deployment controller counts them.
    pub(super) revision: Option<String>,
    pub(super) lifecycle: &'a DeploymentLifecycle,
}

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is recorded of this template yet; and what is waited for.
    NotBegun(String),
    UnderWay,
    Complete,
    /// It comes to no end by itself; and why.
    Failed(String),
}

impl<'a> Seen<'a> {
    pub(super) fn new(deployment: &RawDeployment, lifecycle: &'a DeploymentLifecycle) -> anyhow::Result<Self> {
        let revision = deployment.annotations().get(REVISION).cloned();
        Ok(Self { deployment: deployment.seen()?, revision, lifecycle })
    }

    /// The rollout of the template that the Deployment has now, if it is recorded.
    pub(super) fn rollout(&self) -> Option<&'a Rollout> {
        let rollout = self.lifecycle.status.as_ref()?.rollout.as_ref()?;
        let observed = self.deployment.observed_generation >= self.deployment.generation;
        (observed && rollout.target == self.deployment.template && self.is_of_this_revision(rollout)).then_some(rollout)
    }

    /// The same template may have been rolled out before. While it goes on its revision may not be known yet.
    fn is_of_this_revision(&self, rollout: &Rollout) -> bool {
        match rollout.phase {
            RolloutPhase::Complete => {
                let Deployment { status_replicas, updated_replicas, replicas, .. } = self.deployment;
                let everywhere = status_replicas == updated_replicas && (updated_replicas > 0 || replicas == 0);
                rollout.revision == self.revision && everywhere
            }
            RolloutPhase::Aborted => rollout.revision.is_none() || rollout.revision == self.revision,
            RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Rolling | RolloutPhase::Post => true,
        }
    }

    pub(super) fn verdict(&self) -> Verdict {
        let Some(rollout) = self.rollout() else {
            return match self.refusal() {
                Some(why) => Verdict::Failed(why),
                None => Verdict::NotBegun(self.what_is_missing()),
            };
        };
        match rollout.phase {
            RolloutPhase::Complete if self.is_being_adopted() => Verdict::UnderWay,
            RolloutPhase::Complete => Verdict::Complete,
            RolloutPhase::Aborted if self.has_open_request(rollout) => Verdict::UnderWay,
            RolloutPhase::Aborted => Verdict::Failed(self.said(condition::FAILED)),
            RolloutPhase::Rolling => match self.stalled() {
                Some(why) => Verdict::Failed(why),
                None => Verdict::UnderWay,
            },
            RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Post => Verdict::UnderWay,
        }
    }

    /// The record is written before the annotation: a new version would not be held yet.
    fn is_being_adopted(&self) -> bool {
        self.condition(condition::COMPLETE).is_some_and(|complete| complete.reason == reason::ADOPTING)
    }

    /// Somebody asked for a retry or a skip, and no controller has seen that yet.
    fn has_open_request(&self, rollout: &Rollout) -> bool {
        let request = self.lifecycle.annotations().get(ROLLOUT_REQUEST);
        request.is_some() && request != rollout.request.as_ref()
    }

    /// Why nothing will be begun, if that is so of both objects as they are now.
    fn refusal(&self) -> Option<String> {
        let accepted = self.condition(condition::ACCEPTED).filter(|accepted| accepted.status == "False")?;
        let is_news = accepted.observed_generation == self.lifecycle.metadata.generation;
        let message = match accepted.reason.as_str() {
            reason::STRATEGY => strategy_mistake(&self.lifecycle.spec, self.deployment.strategy)?,
            reason::INVALID => self.lifecycle.spec.validate().err()?,
            reason::REFUSED if is_news => accepted.message.clone(),
            _ => return None,
        };
        Some(format!("its hooks are not accepted: {}", one_line(&message)))
    }

    fn what_is_missing(&self) -> String {
        let deployment = &self.deployment;
        if deployment.observed_generation < deployment.generation {
            "waiting for the Deployment controller to see the change".to_owned()
        } else if deployment.paused {
            "the Deployment is paused: nothing starts before `kubectl rollout resume`".to_owned()
        } else {
            self.what_ends_first().unwrap_or_else(|| "waiting for the controller to see the new template".to_owned())
        }
    }

    /// A hook of the version before that runs: nothing is begun while its pod is there.
    pub(super) fn what_ends_first(&self) -> Option<String> {
        let before = self.lifecycle.status.as_ref()?.rollout.as_ref().filter(|_| self.rollout().is_none())?;
        let running = before.stages.iter().find(|record| record.state == StageState::Running)?;
        let pod = running.pod.as_deref().unwrap_or("not created yet");
        Some(format!("waiting for {} of the version before to end (pod {pod})", running.stage))
    }

    /// The new version was let in, and does not become available: the Deployment controller has given up on it since.
    fn stalled(&self) -> Option<String> {
        let progressing = self.deployment.progressing.as_ref()?;
        let ours = self.deployment.ours.as_ref().filter(|ours| ours.reason == reason::ROLLING)?;
        let over = progressing.status == "False" && progressing.reason == reason::PROGRESS_DEADLINE_EXCEEDED;
        (over && progressing.last_transition > ours.last_transition).then(|| {
            let Deployment { progress_deadline_seconds: seconds, available_replicas, replicas, .. } = &self.deployment;
            format!(
                "the new version was let in, and made no progress for {seconds} s (progressDeadlineSeconds): \
                 {available_replicas} of {replicas} pods are available"
            )
        })
    }

    /// Whether the rollout waits for pods that are not available, or a hook that runs has a problem.
    pub(super) fn waits_for_pods(&self, rollout: &Rollout) -> bool {
        let Deployment { available_replicas, replicas, .. } = self.deployment;
        match rollout.phase {
            RolloutPhase::Rolling => available_replicas < replicas,
            RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Post => is_stuck(rollout),
            RolloutPhase::Complete | RolloutPhase::Aborted => false,
        }
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&'a Condition> {
        let conditions = &self.lifecycle.status.as_ref()?.conditions;
        conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// What a condition has to say.
    pub(super) fn said(&self, kind: &str) -> String {
        self.condition(kind).map(|condition| one_line(&condition.message)).unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use boathook_decide::deployment_lifecycle::template::digest;
    use serde_json::{Value, json};

    use super::*;

    pub(in crate::rollout) fn template(image: &str) -> Value {
        json!({"spec": {"containers": [{"name": "web", "image": image}]}})
    }

    /// Three replicas of `v2`, revision 2, all seen and available.
    pub(in crate::rollout) fn deployment(more: Value) -> RawDeployment {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "sea", "generation": 4, "uid": "1",
                "annotations": {REVISION: "2", "boathook.dev/lifecycle": "managed"}},
            "spec": {"replicas": 3, "template": template("v2"), "strategy": {"type": "Recreate"}},
            "status": {"observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3},
        });
        merge(&mut object, &more);
        serde_json::from_value(object).unwrap()
    }

    /// As a merge patch has it.
    fn merge(object: &mut Value, change: &Value) {
        let Some(fields) = change.as_object() else { return *object = change.clone() };
        for (key, value) in fields {
            merge(&mut object[key.as_str()], value);
        }
    }

    /// The rollout of `v2`, so far.
    pub(in crate::rollout) fn lifecycle(phase: &str, more: Value) -> DeploymentLifecycle {
        let hook = |policy: &str, word: &str| {
            json!({"failurePolicy": policy,
            "execNewPod": {"containerName": "web", "command": [word, "now"]}})
        };
        let hooks =
            json!({"pre": hook("Abort", "test"), "mid": hook("Retry", "migrate"), "post": hook("Ignore", "tell")});
        let mut object = json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "DeploymentLifecycle",
            "metadata": {"name": "web", "namespace": "sea", "generation": 1, "annotations": {}},
            "spec": hooks,
            "status": {
                "rollout": {"target": digest(&template("v2")), "revision": "2", "replicaSet": "web-2", "phase": phase,
                    "startTime": "2026-01-01T00:00:00.000000Z", "hooks": hooks, "stages": []},
                "conditions": [],
            },
        });
        merge(&mut object, &more);
        serde_json::from_value(object).unwrap()
    }

    pub(in crate::rollout) fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn verdict(deployment_has: Value, phase: &str, lifecycle_has: Value) -> Verdict {
        let lifecycle = lifecycle(phase, lifecycle_has);
        Seen::new(&deployment(deployment_has), &lifecycle).unwrap().verdict()
    }

    #[test]
    fn an_earlier_rollout_is_not_taken_for_this_one() {
        assert_eq!(verdict(json!({}), "Complete", json!({})), Verdict::Complete);
        for earlier in [
            // The Deployment controller has not seen the change.
            json!({"metadata": {"generation": 5}}),
            // Another template.
            json!({"spec": {"template": template("v3")}}),
            // The same one again.
            json!({"metadata": {"annotations": {REVISION: "4"}}}),
            json!({"status": {"updatedReplicas": 0}}),
            json!({"status": {"updatedReplicas": 1}}),
        ] {
            let found = verdict(earlier.clone(), "Complete", json!({}));
            assert!(matches!(found, Verdict::NotBegun(_)), "{earlier}: {found:?}");
        }
        let aborted = verdict(json!({"spec": {"template": template("v3")}}), "Aborted", json!({}));
        assert!(matches!(aborted, Verdict::NotBegun(_)), "{aborted:?}");
        let again = verdict(json!({"metadata": {"annotations": {REVISION: "4"}}}), "Aborted", json!({}));
        assert!(matches!(again, Verdict::NotBegun(_)), "{again:?}");
        let scaled_to_none = json!({"spec": {"replicas": 0}, "status": {"replicas": 0, "updatedReplicas": 0}});
        assert_eq!(verdict(scaled_to_none, "Complete", json!({})), Verdict::Complete);
    }

    #[test]
    fn unfinished_adoption_is_not_complete() {
        let adopting =
            json!({"status": {"conditions": [condition("Complete", "False", "Adopting", "not annotated yet")]}});
        assert_eq!(verdict(json!({}), "Complete", adopting), Verdict::UnderWay);
        let adopted = json!({"status": {"conditions": [condition("Complete", "True", "Adopted", "looked after")]}});
        assert_eq!(verdict(json!({}), "Complete", adopted), Verdict::Complete);
    }

    #[test]
    fn a_hook_of_the_version_before_ends_first() {
        let record = |state: &str| {
            let pre =
                json!({"stage": "Pre", "state": state, "pod": "web-pre-x", "startTime": "2026-01-01T00:00:00.000000Z"});
            json!({"status": {"rollout": {"stages": [pre]}}})
        };
        let newer = json!({"spec": {"template": template("v3")}});
        let said = |state| match verdict(newer.clone(), "Pre", record(state)) {
            Verdict::NotBegun(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(said("Running"), "waiting for pre of the version before to end (pod web-pre-x)");
        assert_eq!(said("Succeeded"), "waiting for the controller to see the new template");
    }

    #[test]
    fn an_abort_is_the_end_until_somebody_asks_for_more() {
        let failed = json!({"status": {"conditions": [condition("Failed", "True", "Aborted", "pre has failed: no")]}});
        assert_eq!(verdict(json!({}), "Aborted", failed), Verdict::Failed("pre has failed: no".to_owned()));
        let asked = json!({"metadata": {"annotations": {ROLLOUT_REQUEST: "{}"}}});
        assert_eq!(verdict(json!({}), "Aborted", asked), Verdict::UnderWay);
        let done =
            json!({"metadata": {"annotations": {ROLLOUT_REQUEST: "{}"}}, "status": {"rollout": {"request": "{}"}}});
        assert!(matches!(verdict(json!({}), "Aborted", done), Verdict::Failed(_)));
    }

    #[test]
    fn what_is_refused_for_good_fails_and_what_was_mended_does_not() {
        let refused = json!({"status": {"conditions": [condition("Accepted", "False", "Strategy", "it said")]}});
        let rolling = json!({"spec": {"template": template("v3"), "strategy": {"type": "RollingUpdate"}}});
        let found = verdict(rolling, "Complete", refused.clone());
        assert!(matches!(&found, Verdict::Failed(why) if why.contains("mid needs the strategy")), "{found:?}");
        let mended = verdict(json!({"spec": {"template": template("v3")}}), "Complete", refused);
        assert!(matches!(mended, Verdict::NotBegun(_)), "{mended:?}");

        let refused = json!({"status": {"conditions": [condition("Accepted", "False", "Invalid", "it said")]}});
        let nul = json!({"spec": {"pre": {"execNewPod": {"command": ["test", "\0"]}}}, "status": refused["status"]});
        let next = || json!({"spec": {"template": template("v3")}});
        let found = verdict(next(), "Complete", nul);
        assert!(matches!(&found, Verdict::Failed(why) if why.contains("pre.execNewPod.command")), "{found:?}");
        assert!(matches!(verdict(next(), "Complete", refused), Verdict::NotBegun(_)), "it was mended");
    }

    #[test]
    fn a_version_that_does_not_become_available_fails() {
        let conditions = |since: &str| {
            let ours = json!({"type": "BoathookLifecycle", "status": "False", "reason": "Rolling",
                "lastTransitionTime": "2026-01-01T00:00:10Z"});
            let progressing = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
                "lastTransitionTime": since});
            json!({"status": {"availableReplicas": 1, "conditions": [ours, progressing]}})
        };
        let found = verdict(conditions("2026-01-01T00:10:10Z"), "Rolling", json!({}));
        assert!(matches!(&found, Verdict::Failed(why) if why.contains("1 of 3 pods are available")), "{found:?}");
        // It gave up while the version was still held.
        assert_eq!(verdict(conditions("2026-01-01T00:00:05Z"), "Rolling", json!({})), Verdict::UnderWay);
    }
}
