//! A rollout from where it stands: by what is recorded, and by the label of its target as far as the record confirms it.

use boathook_api::{
    deployment_lifecycle::{Rollout, RolloutPhase, Stage},
    words::reason,
};

use super::{
    Decision, Deployment, Effect, End, HookPod, Look, ReplicaSet, Strategy,
    gate::Mark,
    hook_pod,
    record::{self, Record},
    stage::Step,
};

/// What the label of the target says for the revision that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Held,
    Open,
    Done,
}

/// `recorded`: the record of this very rollout. A mark that the record does not confirm does not count.
pub(super) fn standing(target: Option<&ReplicaSet>, recorded: Option<&Rollout>) -> Standing {
    let mark = target.and_then(|target| target.gate.as_deref()).and_then(|gate| gate.parse::<Mark>().ok());
    let revision = target.and_then(|target| target.revision.as_deref());
    let marked = match &mark {
        Some(Mark::Open { revision: marked } | Mark::Done { revision: marked }) => revision == Some(marked),
        Some(Mark::Draining(_)) | None => false,
    };
    match recorded.map(record::of) {
        Some(Record::Complete) if marked => Standing::Done,
        Some(Record::LetIn) if marked => Standing::Open,
        Some(Record::Complete | Record::LetIn | Record::Draining | Record::Held) | None => Standing::Held,
    }
}

impl Look<'_> {
    /// `refusal`: why no new rollout may be begun.
    pub(super) fn roll_out(mut self, deployment: &Deployment, refusal: Option<(&'static str, &str)>) -> Decision {
        let target = self.target(deployment);
        let known = self.status.rollout.as_ref().filter(|rollout| is_same(rollout, deployment, target));
        let phase = known.map(|rollout| rollout.phase);
        if phase.is_some() {
            self.note_target(target);
            self.carry_out_request(deployment);
        }
        let phase = phase.and_then(|_| self.phase());
        let recorded = self.status.rollout.as_ref().filter(|_| phase.is_some());
        let standing = standing(target, recorded);
        if let (Standing::Held, Some(target)) = (standing, target) {
            self.revoke_unrecorded(target);
        }
        match standing {
            Standing::Held => {}
            Standing::Open => self.note_passed(deployment, &[Stage::Pre, Stage::Mid]),
            Standing::Done => self.note_passed(deployment, &Stage::ALL),
        }
        match (standing, phase) {
            (Standing::Done, _) => {
                self.finish_adoption(refusal);
                self.idle(deployment, target);
            }
            (Standing::Held, None | Some(RolloutPhase::Complete)) => return self.start(deployment, refusal),
            (Standing::Open | Standing::Held, Some(RolloutPhase::Aborted)) => self.aborted(deployment),
            (Standing::Held, Some(RolloutPhase::Pre)) => self.pre(deployment, target),
            (Standing::Held, Some(RolloutPhase::Mid)) => self.mid(deployment, target),
            // Somebody took the label away.
            (Standing::Held, Some(RolloutPhase::Rolling | RolloutPhase::Post)) => self.open(deployment, target),
            (Standing::Open, Some(RolloutPhase::Post)) => self.post(deployment, target),
            (Standing::Open, Some(RolloutPhase::Pre | RolloutPhase::Mid | RolloutPhase::Rolling)) => {
                self.rolling(deployment, target);
            }
            // Neither is open: `standing` asks the record.
            (Standing::Open, None | Some(RolloutPhase::Complete)) => {}
        }
        if phase.is_some() && self.phase() != Some(RolloutPhase::Aborted) {
            self.take_back_the_abort(deployment);
        }
        self.own_hooks(target);
        self.annotate_all();
        self.write_status();
        self.decision
    }

    /// Takes away a mark by which the gate would let a target in that no record opened. A restored or forged label is
    /// such a mark.
    fn revoke_unrecorded(&mut self, target: &ReplicaSet) {
        let opened = self.phase().is_some_and(|phase| matches!(phase, RolloutPhase::Rolling | RolloutPhase::Post));
        if target.gate.is_some() && !opened {
            self.mark(target, None);
        }
    }

    /// The pod of a Recreate's pre was made before there was a ReplicaSet to own it. It goes with that, though it failed;
    /// one that succeeded goes with the rollout.
    fn own_hooks(&mut self, target: Option<&ReplicaSet>) {
        let id = self.status.rollout.as_ref().map(hook_pod::rollout_id);
        let Some((target, id)) = target.zip(id) else { return };
        let deleted: Vec<_> = self.decision.effects.iter().filter_map(deleted_uid).collect();
        let orphans = self.observed.hook_pods.iter().filter(|pod| {
            let stays = pod.gone_by.is_none() && pod.end != Some(End::Succeeded) && !deleted.contains(&pod.uid);
            stays && pod.owned_by_deployment && pod.rollout == id
        });
        for HookPod { name, uid, .. } in orphans {
            let replica_set = (target.name.clone(), target.uid.clone());
            self.decision.effects.push(Effect::OwnPod { name: name.clone(), uid: uid.clone(), replica_set });
        }
    }

    fn pre(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        if !deployment.paused && self.fail_what_cannot_run(deployment) {
            return self.aborted(deployment);
        }
        match self.run_stage(deployment, target, Stage::Pre) {
            Step::Passed => {}
            Step::Waits => {
                return self.wait(deployment, reason::PRE, "Boathook holds the new version until pre has passed");
            }
            Step::Aborted => return self.aborted(deployment),
        }
        if deployment.paused {
            return self.wait(
                deployment,
                reason::PAUSED,
                "pre has passed: Boathook holds the new version until you resume the Deployment",
            );
        }
        match deployment.strategy {
            Strategy::RollingUpdate => self.open_unless_mid(deployment, target),
            Strategy::Recreate => {
                self.go_to(RolloutPhase::Mid);
                let message = "pre has passed: the old version ends, and Boathook holds the new version";
                self.set_under_way(reason::DRAINING, message);
                // Recorded before anything of the old version is touched.
                self.write_status();
                self.drain(deployment, target);
                self.say(deployment, reason::DRAINING, message);
            }
        }
    }

    fn mid(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        // Without pre it is asked for here first: after the drain it would be too late.
        if !deployment.paused && self.fail_what_cannot_run(deployment) {
            return self.aborted(deployment);
        }
        if deployment.strategy == Strategy::RollingUpdate {
            // Nothing of a mid that was skipped may run beside what is let in.
            return match self.has_yet_to_pass(Stage::Mid) || self.end_hooks(None) {
                true => self.open_unless_mid(deployment, target),
                false => {
                    let message = "mid was skipped: Boathook releases the new version when the pod of the skipped hook \
                                   has ended";
                    self.wait_for_a_hook(deployment, reason::MID, message);
                }
            };
        }
        let runs = deployment.replicas > 0 && target.is_some_and(|target| target.replicas > 0);
        if runs && self.needs_a_pod(Stage::Mid) {
            // A rollout to it was under way when the strategy was another one. Nothing would ever end them.
            let message = "mid may run only while no pod runs, but pods of the new version already run: scale the \
                           Deployment to 0 and retry mid, or skip mid";
            return self.abort_mid(deployment, message);
        }
        self.drain(deployment, target);
        let made = target.is_some_and(|target| target.revision.is_some());
        // Without a hook nothing hangs on it: the Deployment controller itself lets the old version end first. And without
        // the gate nothing keeps the new version from running beside it.
        let is_free = !self.needs_a_pod(Stage::Mid) || (self.is_drained() && self.observed.gate_is_there);
        if !is_free || !made {
            let message = self
                .still_ending(deployment, "pre has passed: the old version ends, and Boathook holds the new version");
            self.wait(deployment, reason::DRAINING, &message);
            return self.nudge_if_idle(deployment, target);
        }
        match self.run_stage(deployment, target, Stage::Mid) {
            Step::Passed if deployment.paused => {
                self.wait(
                    deployment,
                    reason::PAUSED,
                    "mid has passed: Boathook holds the new version until you resume the Deployment",
                );
            }
            Step::Passed => self.open(deployment, target),
            Step::Waits => {
                self.wait(
                    deployment,
                    reason::MID,
                    "no version runs: Boathook holds the new version until mid has passed",
                );
            }
            Step::Aborted => self.aborted(deployment),
        }
    }

    /// Under RollingUpdate; the strategy may have been another one when the rollout began.
    fn open_unless_mid(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        match self.has_yet_to_pass(Stage::Mid) {
            true => {
                let message = "the Deployment's strategy is no longer `Recreate`: set it to `Recreate` again, or \
                               remove mid";
                self.abort_mid(deployment, message);
            }
            false => self.open(deployment, target),
        }
    }

    /// Lets the target in.
    fn open(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        let Some((target, revision)) = target.and_then(|target| Some((target, target.revision.clone()?))) else {
            return self.nudge_if_idle(deployment, target);
        };
        self.go_to(RolloutPhase::Rolling);
        let message = "Boathook has released the new version";
        self.set_under_way(reason::ROLLING, message);
        // Recorded first: a mark counts only with its record.
        self.write_status();
        self.mark(target, Some(Mark::Open { revision }));
        self.drain(deployment, Some(target));
        self.say(deployment, reason::ROLLING, message);
        self.nudge_if_idle(deployment, Some(target));
    }

    pub(super) fn rolling(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        self.go_to(RolloutPhase::Rolling);
        self.drain(deployment, target);
        if is_complete(deployment) {
            self.go_to(RolloutPhase::Post);
            return self.post(deployment, target);
        }
        let message = "Boathook has released the new version";
        self.wait(deployment, reason::ROLLING, message);
        self.nudge_if_idle(deployment, target);
    }

    fn post(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        match self.run_stage(deployment, target, Stage::Post) {
            Step::Passed => self.complete(deployment, target),
            Step::Waits => self.wait(deployment, reason::POST, "the new version serves: the rollout waits for post"),
            Step::Aborted => self.aborted(deployment),
        }
    }

    pub(super) fn wait(&mut self, deployment: &Deployment, reason: &'static str, message: &str) {
        let overdue = self.overdue().map(|overdue| format!("{message}; {overdue}"));
        let message = overdue.as_deref().unwrap_or(message);
        self.set_under_way(reason, message);
        self.say(deployment, reason, message);
    }

    fn go_to(&mut self, phase: RolloutPhase) {
        if let Some(rollout) = &mut self.status.rollout {
            rollout.phase = phase;
        }
    }

    /// ReplicaSets from before the adoption too: a rollout may go back to them.
    fn annotate_all(&mut self) {
        let marked: Vec<_> = self.decision.effects.iter().filter_map(marked_uid).collect();
        let missing = self.observed.replica_sets.iter().filter(|set| !set.managed && !marked.contains(&set.uid));
        let missing: Vec<_> = missing.collect();
        for set in missing {
            self.mark(set, set.gate.as_deref().and_then(|gate| gate.parse().ok()));
        }
    }

    /// What of the target was not known when the rollout began.
    fn note_target(&mut self, target: Option<&ReplicaSet>) {
        if let (Some(rollout), Some(target)) = (&mut self.status.rollout, target) {
            rollout.replica_set = Some(target.name.clone());
            if rollout.revision.is_none() {
                rollout.revision.clone_from(&target.revision);
            }
        }
    }
}

fn marked_uid(effect: &Effect) -> Option<String> {
    match effect {
        Effect::MarkReplicaSet { uid, .. } => Some(uid.clone()),
        _ => None,
    }
}

fn deleted_uid(effect: &Effect) -> Option<String> {
    match effect {
        Effect::DeletePod { uid, .. } => Some(uid.clone()),
        _ => None,
    }
}

/// Whether what is recorded is about this rollout: its template, and its revision, once there was one.
pub(super) fn is_same(rollout: &Rollout, deployment: &Deployment, target: Option<&ReplicaSet>) -> bool {
    let revision = target.and_then(|target| target.revision.as_ref());
    // If its ReplicaSet is gone, the next one will have another revision.
    let same = rollout.revision.is_none() || rollout.revision.as_ref() == revision;
    rollout.target == deployment.template && same
}

/// As `kubectl rollout status` has it.
pub(super) fn is_complete(deployment: &Deployment) -> bool {
    deployment.observed_generation >= deployment.generation
        && deployment.updated_replicas == deployment.replicas
        && deployment.status_replicas == deployment.updated_replicas
        && deployment.available_replicas == deployment.updated_replicas
}
