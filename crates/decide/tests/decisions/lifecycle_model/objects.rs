//! The objects of Kubernetes that a rollout is made of: of each what its controllers read and write.

use boathook_api::words::{LIFECYCLE_REQUIRED, condition};
use boathook_decide::deployment_lifecycle::{self as decide, DeploymentCondition, Strategy};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};

use super::Plan;

/// Each stage has so long.
pub(crate) const DEADLINE: i64 = 60;

#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub(crate) version: u64,
    pub(crate) generation: i64,
    pub(crate) lifecycle: Option<String>,
    pub(crate) template: char,
    pub(crate) replicas: i32,
    pub(crate) paused: bool,
    pub(crate) strategy: Strategy,
    pub(crate) surge: i32,
    pub(crate) unavailable: i32,
    pub(crate) history_limit: usize,
    pub(crate) status: DeploymentStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeploymentStatus {
    pub(crate) observed_generation: i64,
    pub(crate) replicas: i32,
    pub(crate) updated: i32,
    pub(crate) available: i32,
    pub(crate) progressing: Option<DeploymentCondition>,
    pub(crate) ours: Option<DeploymentCondition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) version: u64,
    pub(crate) uid: String,
    pub(crate) created: Timestamp,
    pub(crate) template: char,
    /// Annotations.
    pub(crate) lifecycle: Option<String>,
    pub(crate) revision: Option<i64>,
    pub(crate) desired: Option<i32>,
    pub(crate) most: Option<i32>,
    /// The label.
    pub(crate) gate: Option<String>,
    pub(crate) replicas: i32,
    /// As the ReplicaSet controller has counted them.
    pub(crate) has: i32,
    pub(crate) available: i32,
}

#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) set: String,
    /// Its containers are ready from then on.
    pub(crate) ready: Timestamp,
    /// Deleted: it is gone then.
    pub(crate) ends: Option<Timestamp>,
}

/// How the command of a hook ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    Succeeds,
    Fails,
    Hangs,
}

pub(crate) fn digest(template: char) -> String {
    format!("digest-{template}")
}

impl Deployment {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            version: 1,
            generation: 1,
            lifecycle: plan.required.then(|| LIFECYCLE_REQUIRED.to_owned()),
            template: 'a',
            replicas: plan.replicas,
            paused: false,
            strategy: plan.strategy,
            surge: plan.surge,
            unavailable: plan.unavailable,
            history_limit: plan.history_limit,
            status: DeploymentStatus::default(),
        }
    }

    /// As its controller has it, and `kubectl rollout status`.
    pub(crate) fn is_complete(&self, status: &DeploymentStatus) -> bool {
        let all = [status.updated, status.replicas, status.available].iter().all(|count| *count == self.replicas);
        all && status.observed_generation >= self.generation
    }

    pub(crate) fn surge(&self) -> i32 {
        match self.strategy {
            Strategy::RollingUpdate => self.surge,
            Strategy::Recreate => 0,
        }
    }

    pub(crate) fn unavailable(&self) -> i32 {
        match self.strategy {
            Strategy::RollingUpdate => self.unavailable.min(self.replicas),
            Strategy::Recreate => 0,
        }
    }

    pub(crate) fn seen(&self) -> decide::Deployment {
        let image = Some(self.template.to_string());
        let container = Container { name: "web".to_owned(), image, ..Container::default() };
        let spec = Some(PodSpec { containers: vec![container], ..PodSpec::default() });
        decide::Deployment {
            name: "web".to_owned(),
            uid: "web-uid".to_owned(),
            resource_version: self.version.to_string(),
            generation: self.generation,
            observed_generation: self.status.observed_generation,
            deleted: false,
            lifecycle: self.lifecycle.clone(),
            paused: self.paused,
            strategy: self.strategy,
            progress_deadline_seconds: i32::try_from(DEADLINE).expect("a minute"),
            template: digest(self.template),
            pod_template: PodTemplateSpec { metadata: None, spec },
            replicas: self.replicas,
            status_replicas: self.status.replicas,
            updated_replicas: self.status.updated,
            available_replicas: self.status.available,
            progressing: self.status.progressing.clone(),
            ours: self.status.ours.clone(),
        }
    }
}

impl DeploymentStatus {
    pub(crate) fn condition(&mut self, kind: &str) -> &mut Option<DeploymentCondition> {
        match kind {
            condition::LIFECYCLE => &mut self.ours,
            condition::PROGRESSING => &mut self.progressing,
            other => panic!("nobody writes {other}"),
        }
    }
}

impl Set {
    pub(crate) fn name(&self) -> String {
        format!("web-{}", self.template)
    }

    pub(crate) fn hash(&self) -> String {
        format!("hash{}", self.template)
    }

    pub(crate) fn seen(&self) -> decide::ReplicaSet {
        decide::ReplicaSet {
            name: self.name(),
            uid: self.uid.clone(),
            resource_version: self.version.to_string(),
            created: self.created,
            template: digest(self.template),
            pod_template_hash: self.hash(),
            revision: self.revision.map(|revision| revision.to_string()),
            managed: self.lifecycle.is_some(),
            gate: self.gate.clone(),
            replicas: self.replicas,
            status_replicas: self.has,
            available_replicas: self.available,
            observed: true,
        }
    }
}
