//! DeploymentLifecycle: hooks at the stages of every rollout of the Deployment that has its name.

use k8s_openapi::{
    api::core::v1::EnvVar,
    apimachinery::pkg::apis::meta::v1::{Condition, MicroTime},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{action::Output, names};

/// Runs hooks at the stages of each rollout of the Deployment of the same name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "DeploymentLifecycle",
    shortname = "dlc",
    namespaced,
    status = "DeploymentLifecycleStatus",
    derive = "PartialEq",
    doc = "Hooks at the stages of every rollout of the Deployment that has its name: pre, mid and post.",
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].reason"}"#,
    printcolumn = r#"{"name": "Revision", "type": "string", "jsonPath": ".status.rollout.revision"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.rollout.phase"}"#,
    printcolumn = r#"{"name": "Complete", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Complete\")].status"}"#,
    printcolumn = r#"{"name": "Failed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Failed\")].status"}"#,
    printcolumn = r#"{"name": "Since", "type": "date", "jsonPath": ".status.rollout.startTime"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.pre) || has(self.mid) || has(self.post)", "write at least one of pre, mid and post"))]
pub struct DeploymentLifecycleSpec {
    /// Runs before anything of the running version is touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<LifecycleHook>,
    /// Runs when every pod of the old version is gone, and before the first of the new one. For the strategy Recreate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid: Option<LifecycleHook>,
    /// Runs when the new version is available everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<LifecycleHook>,
}

impl DeploymentLifecycleSpec {
    /// Refuses names that cannot exist and commands that cannot be run; the error says what to write instead.
    pub fn validate(&self) -> Result<(), String> {
        for stage in Stage::ALL {
            let Some(LifecycleHook { exec_new_pod: run, .. }) = self.hook(stage) else { continue };
            let field = |name: &str| format!("{stage}.execNewPod.{name}");
            names::container(&field("containerName"), &run.container_name)?;
            names::words(&field("command"), &run.command)?;
            names::words(&field("args"), &run.args)?;
        }
        Ok(())
    }

    pub fn hook(&self, stage: Stage) -> Option<&LifecycleHook> {
        match stage {
            Stage::Pre => self.pre.as_ref(),
            Stage::Mid => self.mid.as_ref(),
            Stage::Post => self.post.as_ref(),
        }
    }
}

/// What runs at one stage, and what becomes of the rollout when it fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHook {
    /// Retry (default): it is run until it succeeds or `progressDeadlineSeconds` of the Deployment are over. Abort: the
    /// rollout ends there. Ignore: the rollout goes on.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    pub exec_new_pod: ExecNewPod,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    #[default]
    Retry,
    Abort,
    Ignore,
}

/// A pod made from a container of the new template. Who writes one must be allowed to `create pods` in the namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecNewPod {
    /// The container of the Deployment's template whose image, environment and resources are taken.
    #[schemars(length(min = 1, max = 63), regex(pattern = names::LABEL))]
    pub container_name: String,
    /// The command; the container's own is never taken. Absent: the image's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 16384), regex(pattern = names::WORD)))]
    pub command: Vec<String>,
    /// Its arguments; the container's own are never taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 16384), regex(pattern = names::WORD)))]
    pub args: Vec<String>,
    /// Variables that come after those of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub env: Vec<EnvVar>,
    /// The volumes of the template that are mounted, where the container mounts them. Names that it has not are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63), regex(pattern = names::LABEL)))]
    pub volumes: Vec<String>,
    /// What is kept of what it writes when it fails, for every user who may read the object. Tail (default): the end of
    /// it, in `logTail` and in messages. None: nothing; its pod has the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Stage {
    Pre,
    Mid,
    Post,
}

impl Stage {
    pub const ALL: [Self; 3] = [Self::Pre, Self::Mid, Self::Post];

    /// As it is written in a spec, and on pods.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Mid => "mid",
            Self::Post => "post",
        }
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far the rollout under way, or the last one, has come; and those before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentLifecycleStatus {
    /// The Deployment that this is about: another one under the same name is not it.
    #[serde(default, rename = "deploymentUID", skip_serializing_if = "Option::is_none")]
    pub deployment_uid: Option<String>,
    /// The generation of this object whose author was checked: it stays so when Boathook's webhooks are made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// What became of earlier ones, the latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub history: Vec<PastRollout>,
    /// Accepted; Complete; Failed; Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// One rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// A digest of the Deployment's template that is rolled out.
    pub target: String,
    /// The revision of its ReplicaSet. Absent before there is one: under Recreate that is made after the drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The ReplicaSet of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_set: Option<String>,
    pub phase: RolloutPhase,
    /// When it was begun, by the controller's clock. No two rollouts of a Deployment have the same.
    pub start_time: MicroTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// The hooks as they were when it began: an edit counts from the next rollout on. Not kept of past rollouts.
    #[serde(default)]
    pub hooks: RecordedHooks,
    /// How each stage that was begun went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRecord>,
    /// Its version was let in before, by a rollout that was not complete when another template came: what is left is post.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// The last request of a person, to retry or to skip, that was carried out. Not kept of past rollouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

impl Rollout {
    pub fn stage(&self, stage: Stage) -> Option<&StageRecord> {
        self.stages.iter().find(|record| record.stage == stage)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutPhase {
    /// The new version is held; the old one serves.
    Pre,
    /// Under Recreate: the old version ends, then mid runs; the new one is held.
    Mid,
    /// The new version is let in, and the old one out.
    Rolling,
    /// The new version serves everywhere.
    Post,
    Complete,
    /// A hook failed, and its policy ends the rollout there.
    Aborted,
}

impl RolloutPhase {
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Pre | Self::Mid | Self::Rolling | Self::Post => false,
            Self::Complete | Self::Aborted => true,
        }
    }
}

/// The hooks of one rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedHooks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<LifecycleHook>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid: Option<LifecycleHook>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<LifecycleHook>,
}

impl RecordedHooks {
    pub fn hook(&self, stage: Stage) -> Option<&LifecycleHook> {
        match stage {
            Stage::Pre => self.pre.as_ref(),
            Stage::Mid => self.mid.as_ref(),
            Stage::Post => self.post.as_ref(),
        }
    }
}

impl From<&DeploymentLifecycleSpec> for RecordedHooks {
    fn from(spec: &DeploymentLifecycleSpec) -> Self {
        let DeploymentLifecycleSpec { pre, mid, post } = spec.clone();
        Self { pre, mid, post }
    }
}

/// How one stage went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageRecord {
    pub stage: Stage,
    pub state: StageState,
    /// The pod that runs it, or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Its UID, once it was seen.
    #[serde(default, rename = "podUID", skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// How many pods were made for it.
    #[serde(default)]
    pub pods: i32,
    /// How often its command was started and has failed.
    #[serde(default)]
    pub failures: i32,
    /// How often in the pod that runs it, or ran it last.
    #[serde(default)]
    pub pod_failures: i32,
    /// When it was begun; from then on it has `progressDeadlineSeconds`.
    pub start_time: MicroTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// For a person: what happened last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The end of what a failed hook wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_tail: Option<String>,
    /// Who asked for it to be retried or skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StageState {
    Running,
    Succeeded,
    /// It failed, and the rollout went on.
    Ignored,
    /// It failed, and the rollout ended.
    Failed,
    /// A person had it skipped.
    Skipped,
    /// A newer template came before it had ended.
    Superseded,
}

impl StageState {
    /// Whether the rollout goes on.
    pub fn has_passed(self) -> bool {
        match self {
            Self::Succeeded | Self::Ignored | Self::Skipped => true,
            Self::Running | Self::Failed | Self::Superseded => false,
        }
    }
}

/// What became of a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRollout {
    #[serde(flatten)]
    pub rollout: Rollout,
    pub outcome: RolloutOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutOutcome {
    Complete,
    Aborted,
    /// A newer template came before it was complete.
    Superseded,
}

/// What a person asks for by annotation: to try a stage again, or to go on without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolloutRequest {
    /// Tells this request from the next one.
    pub id: String,
    pub stage: Stage,
    #[serde(rename = "do")]
    pub what: Requested,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Requested {
    Retry,
    Skip,
}
