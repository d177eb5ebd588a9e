//! One stage of a rollout: its hook's pod is made, followed and judged.
//!
//! A stage is recorded before its pod is made, and the pod's name follows from the record: made again after a crash, it
//! is the same pod. A stage has `progressDeadlineSeconds` from its beginning by our own clock, because a pod that never
//! starts has no deadline of its own. A step of the wall clock changes nothing of that. A process that did not see the
//! beginning takes the time before its first look from the wall clock, unless by that the stage began in the future or its
//! time was over before: then it counts anew from that look.

use std::collections::{BTreeMap, BTreeSet};

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{LifecycleHook, Stage, StageRecord, StageState},
    words::reason,
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{
    Deployment, Effect, End, HookPod, Look, ReplicaSet,
    failing::{Failure, exhausted, failure_text, is_ignored},
    hook_pod::{self, Making},
    refused_pod::is_refusal,
};
use crate::moment::moment;

/// How a stage stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It has passed, and nothing of it runs any more.
    Passed,
    Waits,
    Aborted,
}

impl Look<'_> {
    /// Brings a stage of the rollout on.
    pub(super) fn run_stage(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>, stage: Stage) -> Step {
        let Some(rollout) = &self.status.rollout else { return Step::Waits };
        let Some(hook) = rollout.hooks.hook(stage).cloned() else { return Step::Passed };
        match rollout.stage(stage).cloned() {
            None if deployment.paused => Step::Waits,
            None => self.begin(deployment, target, &hook, stage),
            Some(record) => match record.state {
                // What was injected into its own pod is on its way out; a stray pod may run anything.
                StageState::Succeeded => match self.end_hooks(record.pod.as_deref()) {
                    true => Step::Passed,
                    false => Step::Waits,
                },
                // Nothing of it may run beside what follows.
                StageState::Ignored | StageState::Skipped => match self.end_hooks(None) {
                    true => Step::Passed,
                    false => Step::Waits,
                },
                // Superseded stages are in the history only.
                StageState::Failed | StageState::Superseded => Step::Aborted,
                StageState::Running => self.follow(deployment, target, &hook, record),
            },
        }
    }

    fn begin(
        &mut self,
        deployment: &Deployment,
        target: Option<&ReplicaSet>,
        hook: &LifecycleHook,
        stage: Stage,
    ) -> Step {
        let record = self.begun(stage);
        self.make_pod(deployment, target, hook, record)
    }

    pub(super) fn begun(&self, stage: Stage) -> StageRecord {
        StageRecord {
            stage,
            state: StageState::Running,
            pod: None,
            pod_uid: None,
            pods: 0,
            failures: 0,
            pod_failures: 0,
            start_time: moment(self.now),
            complete_time: None,
            message: None,
            log_tail: None,
            requested_by: None,
        }
    }

    /// Records another pod, then makes it.
    fn make_pod(
        &mut self,
        deployment: &Deployment,
        target: Option<&ReplicaSet>,
        hook: &LifecycleHook,
        mut record: StageRecord,
    ) -> Step {
        let Some(rollout) = &self.status.rollout else { return Step::Waits };
        record.pods += 1;
        record.pod = Some(hook_pod::name(deployment, rollout, record.stage, record.pods));
        (record.pod_uid, record.pod_failures) = (None, 0);
        self.put(record.clone());
        self.create(deployment, target, hook, record)
    }

    fn create(
        &mut self,
        deployment: &Deployment,
        target: Option<&ReplicaSet>,
        hook: &LifecycleHook,
        record: StageRecord,
    ) -> Step {
        let (Some(rollout), Some(name)) = (&self.status.rollout, record.pod.clone()) else { return Step::Waits };
        let deadline = self.deadline(&record, deployment);
        let pod = hook_pod::build(&Making {
            name,
            namespace: self.observed.object.namespace(),
            deployment,
            target,
            rollout: hook_pod::rollout_id(rollout),
            stage: record.stage,
            hook,
            seconds_left: deadline.duration_since(self.now).as_secs(),
        });
        let Some(pod) = pod else {
            let message = hook_pod::mistake(deployment, record.stage, hook).unwrap_or_default();
            return self.fail(deployment, hook, record, Failure { message, log_tail: None });
        };
        self.again(deadline);
        // One at a time, also after a retry.
        let own = pod.name_any();
        if self.end_hooks(Some(&own)) {
            self.write_status();
            self.decision.effects.push(Effect::CreatePod(Box::new(pod)));
        }
        Step::Waits
    }

    fn follow(
        &mut self,
        deployment: &Deployment,
        target: Option<&ReplicaSet>,
        hook: &LifecycleHook,
        mut record: StageRecord,
    ) -> Step {
        let over = self.deadline(&record, deployment);
        let pod = self.observed.hook_pods.iter().find(|pod| Some(&pod.name) == record.pod.as_ref());
        let Some(pod) = &pod.map(|pod| shown(hook, pod)) else {
            let refused = self.observed.refused.as_deref().filter(|_| record.pod_uid.is_none());
            if let Some(why) = refused {
                self.note_refused(&mut record, why);
            }
            if self.now >= over {
                let failure = exhausted(deployment, None, &record);
                return self.fail(deployment, hook, record, failure);
            }
            if refused.is_some() {
                return self.wait_to_create(record, over);
            }
            if record.pod_uid.is_none() {
                return self.create(deployment, target, hook, record);
            }
            return self.replace(deployment, target, hook, record, "the hook pod was deleted");
        };
        record.pod_uid = Some(pod.uid.clone());
        record.message = record.message.filter(|message| !is_refusal(message));
        match &pod.end {
            Some(End::Succeeded) => {
                let stage = record.stage;
                record.state = StageState::Succeeded;
                record.complete_time = Some(moment(self.now));
                record.message = None;
                record.log_tail = None;
                self.put(record);
                self.report(reason::HOOK_SUCCEEDED, "RunHook", format!("{stage} has succeeded"));
                if pod.live && pod.gone_by.is_none() {
                    // Its command has ended; what else was injected into the pod never would.
                    self.delete(pod);
                }
                match self.end_hooks(Some(&pod.name)) {
                    true => Step::Passed,
                    false => Step::Waits,
                }
            }
            Some(End::Failed(message)) => {
                record.failures += 1;
                let failure = Failure { message: message.clone(), log_tail: pod.log_tail.clone() };
                self.fail(deployment, hook, record, failure)
            }
            Some(End::Exhausted) => {
                count(&mut record, pod);
                let failure = exhausted(deployment, Some(pod), &record);
                self.fail(deployment, hook, record, failure)
            }
            Some(End::Lost(_)) | None if self.now >= over => {
                count(&mut record, pod);
                let failure = exhausted(deployment, Some(pod), &record);
                self.fail(deployment, hook, record, failure)
            }
            Some(End::Lost(why)) => {
                let why = why.clone();
                count(&mut record, pod);
                self.replace(deployment, target, hook, record, &why)
            }
            None => {
                self.watch(record, pod);
                // Whoever led before may have made one that came late.
                self.end_hooks(Some(&pod.name));
                self.again(over);
                Step::Waits
            }
        }
    }

    /// Notes what a pod that has not ended does.
    fn watch(&mut self, mut record: StageRecord, pod: &HookPod) {
        if count(&mut record, pod) {
            let (stage, failures) = (record.stage, record.failures);
            // What could not be read this time does not take away what was.
            record.log_tail = pod.log_tail.clone().or(record.log_tail);
            let times = if failures == 1 { "once".to_owned() } else { format!("{failures} times") };
            let how = pod.last_failure.as_ref().map(|how| format!(" ({how})")).unwrap_or_default();
            let message = format!("{stage} failed {times}{how}: the kubelet retries it");
            record.message = Some(message);
            self.warn(reason::HOOK_RUN_FAILED, "RunHook", failure_text(&record));
        } else if pod.waiting.is_some() && pod.waiting != record.message && record.failures == 0 {
            record.message.clone_from(&pod.waiting);
        } else if pod.runs && record.failures == 0 {
            // What it waited for has come.
            record.message = None;
        }
        self.put(record);
    }

    /// Its pod was taken away: another one has the time that is left. If that goes on, each comes later.
    fn replace(
        &mut self,
        deployment: &Deployment,
        target: Option<&ReplicaSet>,
        hook: &LifecycleHook,
        mut record: StageRecord,
        why: &str,
    ) -> Step {
        let over = self.deadline(&record, deployment);
        let pause = 2i64.saturating_pow(record.pods.clamp(1, 30).unsigned_abs()) - 2;
        let not_before = self.start_of(&record) + SignedDuration::from_secs(pause);
        if self.now < not_before {
            self.put(record);
            self.again(not_before.min(over));
            return Step::Waits;
        }
        let message = format!("Boathook creates another hook pod for {}: {why}", record.stage);
        record.message = Some(message.clone());
        self.warn(reason::HOOK_POD_LOST, "RunHook", message);
        self.make_pod(deployment, target, hook, record)
    }

    /// These have passed, because what follows them is open: whoever opened it may have been stopped before it was
    /// recorded how they went.
    pub(super) fn note_passed(&mut self, deployment: &Deployment, stages: &[Stage]) {
        let Some(rollout) = self.status.rollout.clone() else { return };
        let open = rollout.stages.iter().filter(|record| record.state == StageState::Running);
        for record in open.filter(|record| stages.contains(&record.stage)) {
            let mut ends = self.observed.hook_pods.iter().filter(|pod| Some(&pod.name) == record.pod.as_ref());
            let succeeded = ends.any(|pod| pod.end == Some(End::Succeeded));
            let hook = rollout.hooks.hook(record.stage);
            let ignored = !succeeded && hook.is_some_and(|hook| is_ignored(hook, record.stage, deployment));
            let state = if ignored { StageState::Ignored } else { StageState::Succeeded };
            self.put(StageRecord { state, complete_time: Some(moment(self.now)), ..record.clone() });
        }
    }

    /// Whether a stage has a hook that has not passed yet.
    pub(super) fn has_yet_to_pass(&self, stage: Stage) -> bool {
        let Some(rollout) = self.status.rollout.as_ref().filter(|rollout| rollout.hooks.hook(stage).is_some()) else {
            return false;
        };
        let open = |record: &StageRecord| matches!(record.state, StageState::Running | StageState::Failed);
        rollout.stage(stage).is_none_or(open)
    }

    /// Whether the next step of a stage is to make a pod: there is none yet, or it was lost.
    pub(super) fn needs_a_pod(&self, stage: Stage) -> bool {
        let record = self.status.rollout.as_ref().and_then(|rollout| rollout.stage(stage));
        let pod = record.and_then(|record| record.pod.as_ref());
        let pod = self.observed.hook_pods.iter().find(|known| Some(&known.name) == pod);
        self.has_yet_to_pass(stage) && pod.is_none_or(|pod| matches!(pod.end, Some(End::Lost(_))))
    }

    /// When it began, by this process' own clock.
    pub(super) fn start_of(&self, record: &StageRecord) -> Timestamp {
        start(record, &self.observed.starts)
    }

    fn deadline(&self, record: &StageRecord, deployment: &Deployment) -> Timestamp {
        self.start_of(record) + time_of_a_stage(deployment)
    }

    /// Records how a stage stands.
    pub(super) fn put(&mut self, record: StageRecord) {
        let Some(rollout) = &mut self.status.rollout else { return };
        match rollout.stages.iter_mut().find(|known| known.stage == record.stage) {
            Some(known) => *known = record,
            None => rollout.stages.push(record),
        }
    }
}

/// Without what it wrote, if the hook's author keeps that out of the status.
fn shown(hook: &LifecycleHook, pod: &HookPod) -> HookPod {
    let output = hook.exec_new_pod.output.unwrap_or_default();
    let log_tail = pod.log_tail.clone().map(|tail| output.shown(tail)).filter(|tail| !tail.is_empty());
    HookPod { log_tail, ..pod.clone() }
}

/// Recorded starts of stages, and where they are on the wall clock of now, by this process' own clock. A start that is not
/// in it is one of now.
pub type Starts = BTreeMap<Timestamp, Timestamp>;

/// The recorded starts of the stages that run.
pub fn running_since(object: &DeploymentLifecycle) -> BTreeSet<Timestamp> {
    let stages = object.status.iter().flat_map(|status| &status.rollout).flat_map(|rollout| &rollout.stages);
    let running = stages.filter(|record| record.state == StageState::Running);
    running.map(|record| record.start_time.0).collect()
}

/// Whether the time of a stage is over by our own clock, whatever its pod says.
pub fn time_is_over(record: &StageRecord, deployment: &Deployment, starts: &Starts, now: Timestamp) -> bool {
    now >= start(record, starts) + time_of_a_stage(deployment)
}

/// How long a stage may take.
pub fn time_of_a_stage(deployment: &Deployment) -> SignedDuration {
    SignedDuration::from_secs(deployment.progress_deadline_seconds.into())
}

fn start(record: &StageRecord, starts: &Starts) -> Timestamp {
    starts.get(&record.start_time.0).copied().unwrap_or(record.start_time.0)
}

/// Adds what has failed since. Each pod counts anew, the stage goes on. Whether it has failed again.
fn count(record: &mut StageRecord, pod: &HookPod) -> bool {
    let since = pod.failures.saturating_sub(record.pod_failures).max(0);
    record.failures = record.failures.saturating_add(since);
    record.pod_failures = record.pod_failures.max(pod.failures);
    since > 0
}
