//! What a decision knows of Kubernetes' own objects: of each no more than it needs.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplateSpec;

/// A Deployment.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub observed_generation: i64,
    pub deleted: bool,
    /// The value of its annotation.
    pub lifecycle: Option<String>,
    pub paused: bool,
    pub strategy: Strategy,
    pub progress_deadline_seconds: i32,
    /// The digest of its template.
    pub template: String,
    /// What hook pods are made from.
    pub pod_template: PodTemplateSpec,
    /// As it asks for.
    pub replicas: i32,
    /// Of all versions, as the Deployment controller has counted them.
    pub status_replicas: i32,
    pub updated_replicas: i32,
    pub available_replicas: i32,
    /// Kubernetes' own `Progressing`.
    pub progressing: Option<DeploymentCondition>,
    /// The condition that is ours.
    pub ours: Option<DeploymentCondition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    RollingUpdate,
    Recreate,
}

/// A condition of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentCondition {
    pub kind: &'static str,
    pub status: &'static str,
    pub reason: String,
    pub message: String,
    pub last_update: Timestamp,
    pub last_transition: Timestamp,
}

/// A ReplicaSet that the Deployment owns.
#[derive(Clone, Debug)]
pub struct ReplicaSet {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub created: Timestamp,
    /// The digest of its template.
    pub template: String,
    pub pod_template_hash: String,
    pub revision: Option<String>,
    /// It has the annotation.
    pub managed: bool,
    /// Its label, as it is.
    pub gate: Option<String>,
    /// As it asks for.
    pub replicas: i32,
    /// As it has.
    pub status_replicas: i32,
    /// Of those, how many count as available.
    pub available_replicas: i32,
    /// Its controller has seen it as it is: what it has is counted since.
    pub observed: bool,
}

impl ReplicaSet {
    pub(super) fn has_pods(&self) -> bool {
        self.replicas > 0 || self.status_replicas > 0
    }

    /// As a number, as Kubernetes compares them.
    pub(super) fn revision_number(&self) -> i64 {
        self.revision.as_deref().and_then(|revision| revision.parse().ok()).unwrap_or(0)
    }
}

/// The pod of a hook.
#[derive(Clone, Debug)]
pub struct HookPod {
    pub name: String,
    pub uid: String,
    /// Which rollout it is of.
    pub rollout: String,
    /// It may still run something: it has not ended.
    pub live: bool,
    /// It is deleted: when it should be gone.
    pub gone_by: Option<Timestamp>,
    /// How often its command was started and has failed, while it is tried again.
    pub failures: i32,
    /// How it failed the last time.
    pub last_failure: Option<String>,
    /// Its command runs.
    pub runs: bool,
    /// What it waits for, if it does: no image, say.
    pub waiting: Option<String>,
    /// How its command ended for good.
    pub end: Option<End>,
    /// The end of what it wrote, if it failed.
    pub log_tail: Option<String>,
    pub owned_by_deployment: bool,
}

/// How a hook's command ended, judged by its container alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Succeeded,
    /// It ran and failed, for the last time.
    Failed(String),
    /// Its time was over.
    Exhausted,
    /// The pod was taken away from under it: evicted, preempted, its node gone.
    Lost(String),
}
