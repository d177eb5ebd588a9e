//! A Deployment that nobody looked after: its ReplicaSets are marked, then it is annotated. No hooks run.
//!
//! The Deployment comes last, and only in the version that was looked at: until then its new ReplicaSets are nobody's,
//! and a rollout that is under way goes on, because what grows is marked done and what shrinks draining.

use boathook_api::{
    deployment_lifecycle::{RecordedHooks, RolloutPhase},
    words::{condition, reason},
};

use super::{
    Decision, Deployment, Effect, Look,
    gate::{DrainFor, Mark},
    phases::is_same,
};
use crate::{conditions, moment::moment};

impl Look<'_> {
    pub(super) fn adopt(mut self, deployment: &Deployment, refusal: Option<(&'static str, &str)>) -> Decision {
        self.set_accepted(refusal);
        let target = self.target(deployment).filter(|_| self.is_settled(deployment));
        let Some((target, revision)) = target.and_then(|target| Some((target, target.revision.clone()?))) else {
            // The Deployment controller has not seen its template yet.
            self.let_drain(deployment);
            self.write_status();
            return self.decision;
        };
        self.mark(target, Some(Mark::Done { revision: revision.clone() }));
        for other in self.others(Some(target)) {
            let pod_template_hash = target.pod_template_hash.clone();
            let drain = || DrainFor::ReplicaSet { revision: revision.clone(), pod_template_hash };
            self.mark(other, other.has_pods().then(|| Mark::Draining(drain())));
        }
        // One is recorded already if the Deployment changed before it could be annotated.
        if !self.status.rollout.as_ref().is_some_and(|rollout| is_same(rollout, deployment, Some(target))) {
            self.archive();
            let mut rollout = self.rollout(deployment, Some(target));
            (rollout.hooks, rollout.request) = (RecordedHooks::default(), None);
            rollout.phase = RolloutPhase::Complete;
            rollout.complete_time = Some(moment(self.now));
            self.status.rollout = Some(rollout);
        }
        let message = "the Deployment does not have Boathook's annotation yet: Boathook would not hold a new version";
        self.set_under_way(reason::ADOPTING, message);
        // Recorded first: from the annotation on, a mark counts only with its record.
        self.write_status();
        self.decision
            .effects
            .push(Effect::AnnotateDeployment { resource_version: deployment.resource_version.clone() });
        self.decision
    }

    /// Completes the adoption of a Deployment that carries the annotation now. `Complete` is true only from here on,
    /// because users wait for it before they roll out, and the gate holds nothing before the annotation.
    pub(super) fn finish_adoption(&mut self, refusal: Option<(&'static str, &str)>) {
        let complete = conditions::find(&self.status.conditions, condition::COMPLETE);
        if complete.is_some_and(|complete| complete.reason == reason::ADOPTING) {
            let message = match refusal {
                None => "Boathook manages the Deployment from now on: hooks run at the next rollout".to_owned(),
                Some((_, why)) => {
                    format!("Boathook manages the Deployment from now on, and holds the next version: {why}")
                }
            };
            self.set_complete(reason::ADOPTED, &message);
            self.report(reason::ADOPTED, "Adopt", message);
        }
    }

    /// Whoever began to adopt it was stopped by a new template: what was marked by then does not hold that one up.
    fn let_drain(&mut self, deployment: &Deployment) {
        let drain = Mark::Draining(DrainFor::Template { digest: deployment.template.clone() });
        let target = self.target(deployment);
        let mut marked = false;
        for other in self.others(target).filter(|other| other.managed && other.has_pods()) {
            self.mark(other, Some(drain.clone()));
            marked = true;
        }
        if marked && !deployment.paused {
            self.nudge(deployment);
        }
    }
}
