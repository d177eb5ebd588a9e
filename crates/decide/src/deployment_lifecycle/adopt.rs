//! A Deployment that nobody looked after: its ReplicaSets are marked, then it is annotated. No hooks run.
//!
//! The Deployment comes last, and only in the version that was looked at: until then its new ReplicaSets are nobody's,
//! and a rollout that is under way goes on, because what grows is marked done and what shrinks draining.

use boathook_api::{
    deployment_lifecycle::{RecordedHooks, Rollout, RolloutPhase},
    words::reason,
};

use super::{
    Decision, Deployment, Effect, Look,
    gate::{DrainFor, Mark},
};
use crate::moment::moment;

impl Look<'_> {
    pub(super) fn adopt(mut self, deployment: &Deployment) -> Decision {
        self.set_accepted(None);
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
        self.decision
            .effects
            .push(Effect::AnnotateDeployment { managed: true, resource_version: deployment.resource_version.clone() });
        self.status.rollout = Some(Rollout {
            target: deployment.template.clone(),
            revision: Some(revision),
            replica_set: Some(target.name.clone()),
            phase: RolloutPhase::Complete,
            start_time: moment(self.now),
            complete_time: Some(moment(self.now)),
            hooks: RecordedHooks::default(),
            stages: vec![],
            resumed: false,
            request: None,
        });
        let message = "looked after from now on: hooks run at the next rollout";
        self.set_complete(reason::ADOPTED, message);
        self.report(reason::ADOPTED, "Adopt", message.to_owned());
        self.write_status();
        self.decision
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
