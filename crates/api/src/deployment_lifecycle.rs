//! DeploymentLifecycle: hooks at the stages of every rollout of the Deployment that has its name.

use k8s_openapi::{
    api::core::v1::EnvVar,
    apimachinery::pkg::apis::meta::v1::{Condition, MicroTime},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{action::Output, names};

/// The hook of each stage; at least one is needed. An edit applies to the next rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "DeploymentLifecycle",
    shortname = "dlc",
    namespaced,
    status = "DeploymentLifecycleStatus",
    derive = "PartialEq",
    doc = "Runs hooks at the stages pre, mid and post of each rollout of the Deployment of the same name.",
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
    /// Runs while the new version is held and the old one serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<LifecycleHook>,
    /// Runs after the last old pod is gone and before the first new pod starts. Requires the strategy Recreate.
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

/// The hook of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHook {
    /// `Retry`: run the command again until it succeeds or the stage has lasted `progressDeadlineSeconds` of the
    /// Deployment; then as Abort (`post` of a RollingUpdate: as Ignore). `Abort`: end the rollout. `Ignore`: continue
    /// it. Default: Retry.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// The pod to run. The author needs the right to `create pods` in the namespace.
    pub exec_new_pod: ExecNewPod,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    #[default]
    Retry,
    Abort,
    Ignore,
}

/// A pod made from a container of the new template. The author needs the right to `create pods` in the namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecNewPod {
    /// Container of the new template that gives image, environment, resources and security context.
    #[schemars(length(min = 1, max = 63), regex(pattern = names::LABEL))]
    pub container_name: String,
    /// Command, instead of the container's. Default: the entrypoint of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 16384), regex(pattern = names::WORD)))]
    pub command: Vec<String>,
    /// Arguments, instead of the container's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 16384), regex(pattern = names::WORD)))]
    pub args: Vec<String>,
    /// Environment variables, after those of the container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub env: Vec<EnvVar>,
    /// Volumes of the template to mount, where the container mounts them. Unknown names are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63), regex(pattern = names::LABEL)))]
    pub volumes: Vec<String>,
    /// Log of a failed hook that `logTail` and messages keep, readable with the object: `Tail` the last 10 KiB, `None`
    /// nothing. Default: Tail.
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

/// The current or last rollout, and earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentLifecycleStatus {
    /// UID of the Deployment.
    #[serde(default, rename = "deploymentUID", skip_serializing_if = "Option::is_none")]
    pub deployment_uid: Option<String>,
    /// Generation of this object whose author admission has checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_generation: Option<i64>,
    /// The current rollout, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// The 10 rollouts before, the latest first, without `hooks` and `request`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub history: Vec<PastRollout>,
    /// Types: Accepted, Complete, Failed and Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// One rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// Digest of its pod template.
    pub target: String,
    /// Revision of its ReplicaSet, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Name of its ReplicaSet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica_set: Option<String>,
    /// `Pre`: the new version is held, the old one serves. `Mid`: the old version ends, then mid runs. `Rolling`: the
    /// new version starts. `Post`: it serves everywhere. `Complete`. `Aborted`: a hook failed and ended the rollout.
    pub phase: RolloutPhase,
    /// When the rollout began; unique for the Deployment.
    pub start_time: MicroTime,
    /// When the rollout ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Hooks of this rollout, copied from the spec when it began: later edits apply to the next one.
    #[serde(default)]
    pub hooks: RecordedHooks,
    /// Result of each stage that has begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRecord>,
    /// An earlier, incomplete rollout already let this version in: only post is left. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// The last request to retry or skip a stage.
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
    /// Hook of pre.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<LifecycleHook>,
    /// Hook of mid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid: Option<LifecycleHook>,
    /// Hook of post.
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

/// Result of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageRecord {
    /// `Pre`, `Mid` or `Post`.
    pub stage: Stage,
    /// `Running`, `Succeeded`, `Ignored` (failed, but the rollout continued), `Failed`, `Skipped` (by a user) or
    /// `Superseded` (by a newer template).
    pub state: StageState,
    /// Name of the last pod of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// UID of that pod.
    #[serde(default, rename = "podUID", skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Pods created for the stage.
    #[serde(default)]
    pub pods: i32,
    /// Failed runs of the command.
    #[serde(default)]
    pub failures: i32,
    /// Failed runs in the last pod.
    #[serde(default)]
    pub pod_failures: i32,
    /// When the stage began; its time limit counts from here.
    pub start_time: MicroTime,
    /// When the stage ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// What happened last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The end of the log of a failed hook, at most 10 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_tail: Option<String>,
    /// The user who asked to retry or skip the stage.
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

/// An earlier rollout, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastRollout {
    /// The rollout.
    #[serde(flatten)]
    pub rollout: Rollout,
    /// `Complete`, `Aborted`, or `Superseded` by a newer template.
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
