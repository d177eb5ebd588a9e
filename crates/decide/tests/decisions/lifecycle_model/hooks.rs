//! The pods of hooks: they start, run their command, and end, or are taken away.

use boathook_api::{
    deployment_lifecycle::{ExecNewPod, FailurePolicy, LifecycleHook, Stage},
    words::{HOOK_OF_LABEL, ROLLOUT_LABEL, STAGE_LABEL},
};
use boathook_decide::deployment_lifecycle::{self as decide, End};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as core;

use super::{
    World,
    objects::Hook,
    runs::{Outcome, Run},
};

/// How long a command takes, and how long it is until one that failed is started again.
const TAKES: SignedDuration = SignedDuration::from_secs(3);
const STARTED_AGAIN: SignedDuration = SignedDuration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct HookPod {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) rollout: String,
    pub(crate) stage: Stage,
    /// The UID of its owner.
    pub(crate) owner: String,
    retries: bool,
    /// When its command ends, if it does by itself.
    ends: Timestamp,
    /// The kubelet ends it then.
    deadline: Timestamp,
    failures: i32,
    pub(crate) end: Option<End>,
    /// Something in it runs.
    pub(crate) live: bool,
    /// Deleted: it is gone then.
    gone: Option<Timestamp>,
}

pub(crate) fn hook(failure_policy: FailurePolicy) -> LifecycleHook {
    let exec_new_pod =
        ExecNewPod { container_name: "web".to_owned(), command: vec!["migrate".to_owned()], ..ExecNewPod::default() };
    LifecycleHook { failure_policy, exec_new_pod }
}

impl HookPod {
    pub(crate) fn seen(&self) -> decide::HookPod {
        decide::HookPod {
            name: self.name.clone(),
            uid: self.uid.clone(),
            rollout: self.rollout.clone(),
            live: self.live,
            gone_by: self.gone,
            failures: self.failures,
            last_failure: None,
            runs: self.runs(),
            waiting: None,
            end: self.end.clone(),
            log_tail: None,
            owned_by_deployment: self.owner == "web-uid",
        }
    }

    /// Its command may still do something.
    pub(crate) fn runs(&self) -> bool {
        self.live && self.end.is_none()
    }
}

impl World {
    pub(crate) fn create_hook_pod(&mut self, pod: &core::Pod) {
        let name = pod.metadata.name.clone().expect("hook pods are named");
        if self.hook_pods.iter().any(|known| known.name == name) {
            return;
        }
        let labels = pod.metadata.labels.as_ref().expect("hook pods are labelled");
        assert_eq!(labels[HOOK_OF_LABEL], "web");
        let stage = Stage::ALL.into_iter().find(|stage| stage.as_str() == labels[STAGE_LABEL]).expect("a stage");
        let spec = pod.spec.as_ref().expect("a spec");
        let seconds = spec.active_deadline_seconds.expect("a deadline");
        let template = spec.containers[0].image.as_ref().and_then(|image| image.chars().next()).expect("an image");
        let new = HookPod {
            name: name.clone(),
            uid: format!("{name}-{}", self.revision + 1),
            rollout: labels[ROLLOUT_LABEL].clone(),
            stage,
            owner: pod.metadata.owner_references.as_ref().expect("an owner")[0].uid.clone(),
            retries: spec.restart_policy.as_deref() == Some("OnFailure"),
            ends: self.now + TAKES,
            deadline: self.now + SignedDuration::from_secs(seconds),
            failures: 0,
            end: None,
            live: true,
            gone: None,
        };
        self.check_new_hook(&new, template);
        self.runs.push(Run {
            rollout: new.rollout.clone(),
            template: self.templates,
            stage,
            uid: new.uid.clone(),
            outcome: Outcome::Runs,
            excused: false,
        });
        self.hook_pods.push(new);
        self.changed();
    }

    /// `taken`: by others than Boathook, from under it.
    pub(crate) fn delete_hook_pod(&mut self, name: &str, taken: bool) {
        let gone = self.now + SignedDuration::from_secs(self.plan.ending);
        let Some(pod) = self.hook_pods.iter_mut().find(|pod| pod.name == name && pod.gone.is_none()) else { return };
        pod.gone = Some(gone);
        let uid = pod.uid.clone();
        if taken {
            self.excuse(&uid);
        }
        self.changed();
    }

    /// Those whose time has come end.
    pub(crate) fn hooks_go_on(&mut self) -> bool {
        let before = self.revision;
        for place in 0..self.hook_pods.len() {
            let pod = &self.hook_pods[place];
            if pod.runs() && pod.gone.is_none() && pod.ends <= self.now {
                self.hook_ends(place, self.usual);
            }
            let pod = &mut self.hook_pods[place];
            if pod.runs() && pod.gone.is_none() && pod.deadline <= self.now {
                (pod.end, pod.live) = (Some(End::Exhausted), false);
                self.note_end(place, Outcome::Failed);
            }
        }
        for pod in self.hook_pods.iter().filter(|pod| pod.gone.is_some_and(|gone| gone <= self.now)) {
            if let Some(run) = self.runs.iter_mut().find(|run| run.uid == pod.uid && run.outcome == Outcome::Runs) {
                run.outcome = Outcome::Taken;
            }
        }
        let here = self.hook_pods.len();
        self.hook_pods.retain(|pod| pod.gone.is_none_or(|gone| gone > self.now));
        if self.hook_pods.len() < here {
            self.changed();
        }
        self.revision > before
    }

    /// The command of one that runs ends, or is begun again.
    pub(crate) fn hook_ends(&mut self, place: usize, how: Hook) {
        let sidecar = self.plan.sidecar;
        let now = self.now;
        let pod = &mut self.hook_pods[place];
        if !pod.runs() || pod.gone.is_some() {
            return;
        }
        match how {
            // Until its deadline.
            Hook::Hangs => pod.ends = pod.deadline + TAKES,
            Hook::Succeeds => {
                (pod.end, pod.live) = (Some(End::Succeeded), sidecar);
                self.note_end(place, Outcome::Succeeded);
            }
            Hook::Fails if pod.retries => {
                pod.failures += 1;
                pod.ends = now + STARTED_AGAIN;
                self.changed();
            }
            Hook::Fails => {
                (pod.end, pod.live) = (Some(End::Failed("exit code 1".to_owned())), sidecar);
                self.note_end(place, Outcome::Failed);
            }
        }
    }

    /// Its node takes it away.
    pub(crate) fn evict(&mut self, place: usize) {
        let pod = &mut self.hook_pods[place];
        if pod.runs() {
            (pod.end, pod.live) = (Some(End::Lost("evicted".to_owned())), false);
            let uid = pod.uid.clone();
            self.note_end(place, Outcome::Taken);
            self.excuse(&uid);
        }
    }

    fn note_end(&mut self, place: usize, outcome: Outcome) {
        let uid = &self.hook_pods[place].uid;
        self.runs.iter_mut().filter(|run| run.uid == *uid).for_each(|run| run.outcome = outcome);
        self.changed();
    }

    pub(crate) fn next_of_hooks(&self) -> Option<Timestamp> {
        let times = self.hook_pods.iter().flat_map(|pod| match (pod.gone, pod.runs()) {
            (Some(gone), _) => [Some(gone), None],
            (None, true) => [Some(pod.ends), Some(pod.deadline)],
            (None, false) => [None, None],
        });
        times.flatten().filter(|then| *then > self.now).min()
    }
}
