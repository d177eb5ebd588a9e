//! A template that is not rolled out yet: marks of the one before are revoked, its hook ends, then pre is recorded.

use boathook_api::{
    deployment_lifecycle::{PastRollout, RecordedHooks, Rollout, RolloutOutcome, RolloutPhase, Stage, StageState},
    words::{ROLLOUT_REQUEST, reason},
};
use jiff::SignedDuration;
use kube::ResourceExt;

use super::{Decision, Deployment, Effect, HookPod, Look, ReplicaSet, Strategy, gate::Mark};
use crate::moment::moment;

/// How many past rollouts are kept.
const HISTORY: usize = 10;

/// How much of what each of their failed hooks wrote: all of them must fit into one object, with those of the last one.
const PAST_TAIL: usize = 2 << 10;

impl Look<'_> {
    /// Whether the Deployment controller has seen the template, so that the target's revision is final.
    pub(super) fn is_settled(&self, deployment: &Deployment) -> bool {
        let newest = self.observed.replica_sets.iter().map(ReplicaSet::revision_number).max().unwrap_or(0);
        let seen = deployment.observed_generation >= deployment.generation;
        seen && match self.target(deployment) {
            Some(target) => target.revision.is_some() && target.revision_number() >= newest,
            // It is made after the drain.
            None => deployment.strategy == Strategy::Recreate,
        }
    }

    pub(super) fn start(mut self, deployment: &Deployment, refusal: Option<(&'static str, &str)>) -> Decision {
        let target = self.target(deployment);
        // What was allowed for another template is not for this one. That these are written also makes a shrink fail
        // that the Deployment controller has under way.
        for set in &self.observed.replica_sets {
            self.mark(set, None);
        }
        let runs = target.filter(|target| self.has_all_pods(target));
        let was_complete = self.was_complete(deployment);
        if !self.end_hooks(None) {
            let message = "Boathook holds the new version until the hook pod of the previous rollout has ended";
            self.wait_for_a_hook(deployment, reason::PRE, message);
        } else if let Some((reason, message)) = refusal.filter(|_| runs.is_none() || !was_complete) {
            self.wait(deployment, reason, &not_begun(reason, message));
        } else if deployment.paused && runs.is_some() && was_complete {
            let message = "the Deployment has the pod template that already runs everywhere again";
            self.set_complete(reason::COMPLETE, message);
            self.say(deployment, reason::PAUSED, message);
        } else if deployment.paused {
            self.wait(
                deployment,
                reason::PAUSED,
                "the Deployment is paused: Boathook starts the rollout when you resume it",
            );
        } else if !self.is_settled(deployment) {
            self.nudge(deployment);
        } else if self.observed.replica_sets.iter().any(|set| set.gate.is_some()) {
            // Every revocation is seen before anything is begun: the next look begins.
            self.again(self.now);
        } else {
            match runs {
                Some(target) if was_complete => self.cancel(deployment, target),
                Some(target) => self.resume(deployment, target),
                None => self.record(deployment, target),
            }
        }
        self.write_status();
        self.decision
    }

    /// Ends the hook pods that run, but this one. Whether none of them is left.
    pub(super) fn end_hooks(&mut self, but: Option<&str>) -> bool {
        let mut none = true;
        for pod in self.observed.hook_pods.iter().filter(|pod| pod.live && Some(pod.name.as_str()) != but) {
            none = false;
            if pod.gone_by.is_none() {
                self.delete(pod);
            }
        }
        none
    }

    /// Recorded first why: what became of a hook is not known any more when its pod is gone, and it would run again.
    pub(super) fn delete(&mut self, pod: &HookPod) {
        self.write_status();
        self.decision.effects.push(Effect::DeletePod { name: pod.name.clone(), uid: pod.uid.clone() });
    }

    /// Undone before anything of it was let in.
    fn has_all_pods(&self, target: &ReplicaSet) -> bool {
        target.replicas > 0 && self.others(Some(target)).all(|other| !other.has_pods())
    }

    fn cancel(&mut self, deployment: &Deployment, target: &ReplicaSet) {
        let Some(revision) = target.revision.clone() else { return };
        self.archive();
        let mut rollout = self.rollout(deployment, Some(target));
        rollout.hooks = RecordedHooks::default();
        rollout.phase = RolloutPhase::Complete;
        rollout.complete_time = Some(moment(self.now));
        self.status.rollout = Some(rollout);
        let message = "the Deployment has the pod template that already runs everywhere again: Boathook runs no hooks";
        self.set_complete(reason::CANCELLED, message);
        self.report(reason::CANCELLED, "Cancel", message.to_owned());
        // Recorded first: a mark counts only with its record.
        self.write_status();
        self.mark(target, Some(Mark::Done { revision }));
        self.say(deployment, reason::COMPLETE, message);
    }

    /// Whether the last that is known of this template is that its rollout was complete, or lacked nothing but that.
    fn was_complete(&self, deployment: &Deployment) -> bool {
        let past = self.status.history.iter().map(|past| &past.rollout);
        let mut all = self.status.rollout.iter().chain(past);
        let last = all.find(|rollout| rollout.target == deployment.template);
        last.is_none_or(|rollout| {
            let post = rollout.stage(Stage::Post);
            rollout.phase == RolloutPhase::Complete || post.is_some_and(|record| record.state.has_passed())
        })
    }

    /// It was let in before, and its rollout was not over when another template came: what is left of it is post.
    fn resume(&mut self, deployment: &Deployment, target: &ReplicaSet) {
        let Some(revision) = target.revision.clone() else { return };
        self.archive();
        let mut rollout = self.rollout(deployment, Some(target));
        (rollout.hooks.pre, rollout.hooks.mid, rollout.resumed) = (None, None, true);
        rollout.phase = RolloutPhase::Rolling;
        self.status.rollout = Some(rollout);
        // Recorded first: a mark counts only with its record.
        self.write_status();
        self.mark(target, Some(Mark::Open { revision }));
        self.rolling(deployment, Some(target));
    }

    fn record(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        self.archive();
        self.status.rollout = Some(self.rollout(deployment, target));
        let message = "Boathook holds the new version until pre has passed";
        self.set_under_way(reason::PRE, message);
        self.say(deployment, reason::PRE, message);
        // The next look goes on: this one's was about another rollout.
        self.again(self.now);
    }

    /// One that begins now: by its beginning it is told from the one before, whatever the clock says.
    pub(super) fn rollout(&self, deployment: &Deployment, target: Option<&ReplicaSet>) -> Rollout {
        let after = self.status.history.first().map(|past| past.rollout.start_time.0 + SignedDuration::from_micros(1));
        let start = after.map_or(self.now, |after| after.max(self.now));
        Rollout {
            target: deployment.template.clone(),
            revision: target.and_then(|target| target.revision.clone()),
            replica_set: target.map(|target| target.name.clone()),
            phase: RolloutPhase::Pre,
            start_time: moment(start),
            complete_time: None,
            hooks: RecordedHooks::from(&self.observed.object.spec),
            stages: vec![],
            resumed: false,
            // What stands there was asked about the one before.
            request: self.observed.object.annotations().get(ROLLOUT_REQUEST).cloned(),
        }
    }

    /// Keeps what became of the rollout before.
    pub(super) fn archive(&mut self) {
        let Some(mut rollout) = self.status.rollout.take() else { return };
        let outcome = match rollout.phase {
            RolloutPhase::Complete => RolloutOutcome::Complete,
            RolloutPhase::Aborted => RolloutOutcome::Aborted,
            RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Rolling | RolloutPhase::Post => {
                rollout.complete_time = Some(moment(self.now));
                for record in rollout.stages.iter_mut().filter(|record| record.state == StageState::Running) {
                    (record.state, record.complete_time) = (StageState::Superseded, Some(moment(self.now)));
                }
                let revision = rollout.revision.as_deref().unwrap_or("(not yet created)");
                let note = format!("a newer pod template superseded revision {revision}");
                self.report(reason::SUPERSEDED, "Supersede", note);
                RolloutOutcome::Superseded
            }
        };
        shorten(&mut rollout);
        self.status.history.insert(0, PastRollout { rollout, outcome });
        self.status.history.truncate(HISTORY);
    }
}

/// Why a rollout is not begun. It is held, unless just that is what is missing.
fn not_begun(reason: &str, message: &str) -> String {
    match reason {
        reason::GATE_MISSING => message.to_owned(),
        _ => format!("Boathook holds the new version: {message}"),
    }
}

/// What only a rollout that goes on needs is not kept, and of the rest not more than a person reads later.
fn shorten(past: &mut Rollout) {
    (past.hooks, past.request) = (RecordedHooks::default(), None);
    for tail in past.stages.iter_mut().filter_map(|record| record.log_tail.as_mut()) {
        let from = tail.ceil_char_boundary(tail.len().saturating_sub(PAST_TAIL));
        tail.drain(..from);
    }
}
