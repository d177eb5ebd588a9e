//! ApplicationSnapshot: hooks, then the cut of one or more volumes, then the thaw.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    execution_hook::{
        ContainerExecutionHookStatus, ContainerSelector, FreezeWindow, PodContainerNames, validate_targets,
    },
    names, selector,
};

/// Freezes an application, cuts snapshots of its volumes, and thaws it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "ApplicationSnapshot",
    shortname = "appsnap",
    namespaced,
    status = "ApplicationSnapshotStatus",
    derive = "PartialEq",
    doc = "Freezes an application, cuts snapshots of its volumes, and thaws it, whatever happens.",
    selectable = ".status.phase",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Frozen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Frozen\")].status"}"#,
    printcolumn = r#"{"name": "Since", "type": "date", "jsonPath": ".status.freezeWindow.startTime"}"#,
    printcolumn = r#"{"name": "Thawed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Thawed\")].status"}"#,
    printcolumn = r#"{"name": "Window", "type": "string", "jsonPath": ".status.freezeWindow.duration"}"#,
    printcolumn = r#"{"name": "Consistency", "type": "string", "jsonPath": ".status.consistency"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Claims", "type": "string", "jsonPath": ".status.snapshots[*].persistentVolumeClaimName", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self == oldSelf", "spec is immutable: create another ApplicationSnapshot, or delete this one to thaw"))]
pub struct ApplicationSnapshotSpec {
    /// What is cut.
    pub source: SnapshotSource,
    /// The VolumeSnapshotClass. Absent: the cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub volume_snapshot_class_name: Option<String>,
    /// The hooks: PreActions in this order, PostActions in reverse. Without any, the snapshot is crash-consistent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub execution_hook_infos: Vec<ExecutionHookInfo>,
    /// How long the cut may take. Default 60.
    #[serde(default = "default_cut_timeout")]
    #[schemars(range(min = 1))]
    pub cut_timeout_seconds: i32,
    /// How long the freeze may take, from the start to the last PreAction. Absent: as long as the actions' own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub freeze_timeout_seconds: Option<i32>,
    /// Fail (default): nothing is cut. CrashConsistent: cut anyway, and say so.
    #[serde(default)]
    pub on_hook_failure: OnHookFailure,
    /// Running pods that mount a claim and are covered by no hook. MustBeCovered (default): they make the snapshot
    /// crash-consistent. Vouched: the author states that a hook freezes the data of pods that it does not run in, for
    /// example through an operator or a proxy.
    #[serde(default)]
    pub other_pods: OtherPods,
}

impl ApplicationSnapshotSpec {
    /// Everything else as it is by default.
    pub fn new(source: SnapshotSource, execution_hook_infos: Vec<ExecutionHookInfo>) -> Self {
        Self {
            source,
            volume_snapshot_class_name: None,
            execution_hook_infos,
            cut_timeout_seconds: DEFAULT_CUT_TIMEOUT_SECONDS,
            freeze_timeout_seconds: None,
            on_hook_failure: OnHookFailure::default(),
            other_pods: OtherPods::default(),
        }
    }
}

impl ApplicationSnapshotSpec {
    /// Refuses names and selectors that Kubernetes does not have; the error says what to write instead.
    pub fn validate(&self) -> Result<(), String> {
        self.source.validate()?;
        if let Some(name) = &self.volume_snapshot_class_name {
            names::object("volumeSnapshotClassName", name)?;
        }
        let mut infos = self.execution_hook_infos.iter().enumerate();
        infos.try_for_each(|(place, info)| {
            info.validate().map_err(|wrong| format!("executionHookInfos[{place}].{wrong}"))
        })
    }
}

/// The default of `cutTimeoutSeconds`.
pub const DEFAULT_CUT_TIMEOUT_SECONDS: i32 = 60;

fn default_cut_timeout() -> i32 {
    DEFAULT_CUT_TIMEOUT_SECONDS
}

/// One claim, the claims with some labels, or a VolumeSnapshot that somebody else makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.selector) != has(self.persistentVolumeClaimName)", "write exactly one of persistentVolumeClaimName and selector"),
    validation = ("has(self.volumeSnapshotName) == has(self.volumeSnapshotUID) && (!has(self.volumeSnapshotName) || has(self.persistentVolumeClaimName))", "volumeSnapshotName needs volumeSnapshotUID and persistentVolumeClaimName: the admission of a marked VolumeSnapshot writes all three")
)]
pub struct SnapshotSource {
    /// The claim to cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub persistent_volume_claim_name: Option<String>,
    /// The claims to cut, all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// A VolumeSnapshot that is being created by somebody else: it is waited for, not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub volume_snapshot_name: Option<String>,
    /// Its UID: another one under the same name is not it.
    #[serde(default, rename = "volumeSnapshotUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub volume_snapshot_uid: Option<String>,
}

impl SnapshotSource {
    /// Refuses names and selectors that Kubernetes does not have; the error says what to write instead.
    pub fn validate(&self) -> Result<(), String> {
        if let Some(name) = &self.persistent_volume_claim_name {
            names::object("source.persistentVolumeClaimName", name)?;
        }
        if let Some(name) = &self.volume_snapshot_name {
            names::object("source.volumeSnapshotName", name)?;
        }
        match &self.selector {
            Some(labels) => selector::parse(labels).map(drop).map_err(|wrong| format!("source.selector.{wrong}")),
            None => Ok(()),
        }
    }
}

/// A template, and where it runs. Without a list or selector: in the pods and containers that mount the claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookInfo {
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub execution_hook_template_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_selector: Option<ContainerSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub pod_container_names_list: Option<Vec<PodContainerNames>>,
}

impl ExecutionHookInfo {
    /// Refuses names and selectors that Kubernetes does not have; the error says what to write instead.
    pub fn validate(&self) -> Result<(), String> {
        let Self { execution_hook_template_name, pod_selector, container_selector, pod_container_names_list } = self;
        names::object("executionHookTemplateName", execution_hook_template_name)?;
        validate_targets(pod_container_names_list.as_deref(), pod_selector.as_ref(), container_selector.as_ref())
    }

    /// Whether it says where to run: else the pods that mount the claims are meant.
    pub fn names_a_target(&self) -> bool {
        self.pod_selector.is_some() || self.pod_container_names_list.is_some()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnHookFailure {
    #[default]
    Fail,
    CrashConsistent,
}

/// What running pods count for that mount a claim and are covered by no hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OtherPods {
    #[default]
    MustBeCovered,
    Vouched,
}

impl OtherPods {
    /// Every value, in the words that objects use.
    pub const ALL: [(&'static str, Self); 2] = [("MustBeCovered", Self::MustBeCovered), ("Vouched", Self::Vouched)];
}

/// How far it has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSnapshotStatus {
    #[serde(default)]
    pub phase: Phase,
    /// When the controller accepted it, by that controller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When everything was frozen and the cut began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_time: Option<MicroTime>,
    /// When everything was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// The hooks that it runs, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub execution_hook_names: Vec<String>,
    /// What became of each: kept when the hooks are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub hooks: Vec<HookRecord>,
    /// What is cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotRecord>,
    /// Whose freeze it shares: the hooks are that one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares_freeze_of: Option<SnapshotReference>,
    /// Those that share its freeze: it is not thawed before they are cut, but no later than a cut may take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<SnapshotReference>,
    /// PodNotifications of others in the pods that it freezes, recorded before they run: if one of them is gone when the
    /// cut is seen, whether it thawed a pod is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub other_notifications: Vec<OtherNotification>,
    /// What went wrong: why it failed, or why it is called no more than `Crash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<SnapshotFailure>,
    /// The pods that mounted a claim, were covered by no hook, and count as frozen only because the spec says
    /// `otherPods: Vouched`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouched_pods: Vec<String>,
    /// Absent without a cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,
    /// From the start of the first PreAction to the end of the last PostAction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_window: Option<FreezeWindow>,
    /// Frozen; Thawed; Complete; Failed; Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Not begun: it was not seen yet, or waits for another snapshot of the same claim.
    #[default]
    Pending,
    /// PreActions run, hook after hook.
    Freezing,
    /// Everything is frozen, and the snapshots are being cut.
    Cutting,
    /// PostActions run, hook after hook, in reverse.
    Thawing,
    /// The verdict is final, and a PostAction failed or is not known to have run. One that failed is retried, and the phase
    /// is Complete or Failed once it succeeds.
    ThawFailed,
    Complete,
    Failed,
}

impl Phase {
    /// Whether the verdict is final: at most a thaw is still retried.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Freezing | Self::Cutting | Self::Thawing => false,
            Self::ThawFailed | Self::Complete | Self::Failed => true,
        }
    }
}

/// What is known of the data in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Consistency {
    /// The application had been frozen by its hooks when the cut was seen, and still was.
    Application,
    /// As after a power failure.
    Crash,
}

impl Consistency {
    /// As it is written on VolumeSnapshots.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Application => "Application",
            Self::Crash => "Crash",
        }
    }
}

/// Why a snapshot is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotFailure {
    /// One word of `words::reason`.
    pub reason: String,
    /// For a person: what happened, and what to do.
    pub message: String,
}

/// Another ApplicationSnapshot of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotReference {
    pub name: String,
    /// Another one under the same name is not it.
    pub uid: String,
}

/// A PodNotification that no hook of the snapshot made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtherNotification {
    pub name: String,
    pub uid: String,
    pub pod_name: String,
    /// The containers that it runs in. Absent: not known when it was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub containers: Vec<String>,
}

/// One hook of the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRecord {
    pub name: String,
    /// The UID of the ExecutionHook, once it has begun: it is thawed though it lost its owner reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    pub execution_hook_template_name: String,
    /// Where it runs, if that was found out from who mounts the claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub pod_container_names_list: Option<Vec<PodContainerNames>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action_succeed: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action_succeed: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub containers: Vec<ContainerExecutionHookStatus>,
    /// Why the hook failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One VolumeSnapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRecord {
    pub persistent_volume_claim_name: String,
    pub volume_snapshot_name: String,
    /// The pods that used the claim when the freeze began, by UID: whoever comes later is not frozen.
    #[serde(default, rename = "podUIDs", skip_serializing_if = "Vec::is_empty")]
    pub pod_uids: Vec<String>,
    /// When the controller first saw a VolumeSnapshot that another user makes: if it is gone later, it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_time: Option<MicroTime>,
    /// When the controller saw that it had been cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_seen_time: Option<MicroTime>,
    /// Why it could not be cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
