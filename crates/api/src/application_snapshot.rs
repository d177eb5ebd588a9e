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

/// What to freeze and snapshot. Immutable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "ApplicationSnapshot",
    shortname = "appsnap",
    namespaced,
    status = "ApplicationSnapshotStatus",
    derive = "PartialEq",
    doc = "Freezes an application with hooks, takes snapshots of its volumes, and thaws the application, also after a failure.",
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
    /// The volumes to snapshot.
    pub source: SnapshotSource,
    /// VolumeSnapshotClass. Default: that of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub volume_snapshot_class_name: Option<String>,
    /// Hooks that freeze the application, one after the other; they thaw in reverse order. Without hooks, the snapshot
    /// is only crash-consistent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub execution_hook_infos: Vec<ExecutionHookInfo>,
    /// Time limit in seconds for the cut: from creating the VolumeSnapshots until the storage has taken them. Default:
    /// 60.
    #[serde(default = "default_cut_timeout")]
    #[schemars(range(min = 1))]
    pub cut_timeout_seconds: i32,
    /// Time limit in seconds until every hook is frozen. Default: 60 plus, per hook, 60 and its PreAction's timeout
    /// (600 for a notifier).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub freeze_timeout_seconds: Option<i32>,
    /// When a hook fails: `Fail` takes no snapshot, `CrashConsistent` takes one with the consistency `Crash`. Default:
    /// Fail.
    #[serde(default)]
    pub on_hook_failure: OnHookFailure,
    /// Running pods that mount a claim and that no hook covers. `MustBeCovered`: they make the snapshot
    /// crash-consistent. `Vouched`: they count as frozen, because the author states that a hook freezes their data from
    /// another pod, for example an operator's. Default: MustBeCovered.
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

/// One claim, or the claims that match a selector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.selector) != has(self.persistentVolumeClaimName)", "write exactly one of persistentVolumeClaimName and selector"),
    validation = ("has(self.volumeSnapshotName) == has(self.volumeSnapshotUID) && (!has(self.volumeSnapshotName) || has(self.persistentVolumeClaimName))", "volumeSnapshotName and volumeSnapshotUID are set by Boathook, together with persistentVolumeClaimName: remove both")
)]
pub struct SnapshotSource {
    /// The claim to snapshot. Write either this or `selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub persistent_volume_claim_name: Option<String>,
    /// Labels of the claims to snapshot, all at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Set by Boathook: a marked VolumeSnapshot that another user creates, and that the controller waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub volume_snapshot_name: Option<String>,
    /// Set by Boathook: UID of that VolumeSnapshot.
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

/// A template, and the pods and containers to run it in. Without `podSelector` and `podContainerNamesList`, the hook
/// runs in the running pods that mount the claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookInfo {
    /// ExecutionHookTemplate of the namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub execution_hook_template_name: String,
    /// Labels of the pods to run in. Default: the running pods and containers that mount the claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// The container to run in, in each pod that `podSelector` selects. Default: all or, with a notifier, those that
    /// declare it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_selector: Option<ContainerSelector>,
    /// Pods and containers to run in, by name. Takes precedence over `podSelector`.
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

/// How running pods count that mount a claim and that no hook covers.
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

/// Progress and result of the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSnapshotStatus {
    /// `Pending`: not started, or waiting for another snapshot of a claim. `Freezing`: PreActions run. `Cutting`: the
    /// storage takes the snapshots. `Thawing`: PostActions run. `ThawFailed`: consistency is final, but a PostAction
    /// failed and is retried, or may not have run. `Complete`, `Failed`: finished. Default: Pending.
    #[serde(default)]
    pub phase: Phase,
    /// When a controller accepted the snapshot, by its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When every hook was frozen and the cut began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_time: Option<MicroTime>,
    /// When the snapshot finished, thaw included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Names of the ExecutionHooks, in the order of the freeze.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub execution_hook_names: Vec<String>,
    /// Result of each hook, kept after the ExecutionHook is deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub hooks: Vec<HookRecord>,
    /// The VolumeSnapshot of each claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotRecord>,
    /// ApplicationSnapshot with the same claims and hooks whose freeze this one shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares_freeze_of: Option<SnapshotReference>,
    /// ApplicationSnapshots that share this freeze. The thaw waits for their cut, within `cutTimeoutSeconds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<SnapshotReference>,
    /// Other PodNotifications in the frozen pods, recorded before they run. If one is deleted before the cut is seen,
    /// the consistency is `Crash`, because it may have thawed a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub other_notifications: Vec<OtherNotification>,
    /// Why the snapshot failed or, if it is complete, why it is only crash-consistent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<SnapshotFailure>,
    /// Pods that count as frozen only because of `otherPods: Vouched`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vouched_pods: Vec<String>,
    /// `Application`: every hook was frozen when the cut was seen. `Crash`: as after a power failure. It never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,
    /// Time from the first PreAction to the end of the last PostAction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_window: Option<FreezeWindow>,
    /// Types: Frozen, Thawed, Complete, Failed and Succeeded.
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
    /// The verdict is final, and a PostAction failed or is not known to have run. A failed one is retried, and the phase
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

/// `Application`: every hook was frozen when the cut was seen. `Crash`: as after a power failure. It never changes.
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

/// Why a snapshot failed, or is only crash-consistent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotFailure {
    /// One word, for example `HookFailed`.
    pub reason: String,
    /// What happened and what to do.
    pub message: String,
}

/// Another ApplicationSnapshot of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotReference {
    /// Name of the ApplicationSnapshot.
    pub name: String,
    /// UID of the ApplicationSnapshot.
    pub uid: String,
}

/// A PodNotification that does not belong to the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtherNotification {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its pod.
    pub pod_name: String,
    /// Its containers. Absent if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub containers: Vec<String>,
}

/// Result of one hook of the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRecord {
    /// Name of the ExecutionHook.
    pub name: String,
    /// UID of the ExecutionHook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its ExecutionHookTemplate.
    pub execution_hook_template_name: String,
    /// Pods and containers found by the claims, if the spec names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub pod_container_names_list: Option<Vec<PodContainerNames>>,
    /// As in the ExecutionHook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action_succeed: Option<bool>,
    /// As in the ExecutionHook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action_succeed: Option<bool>,
    /// Result in each container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub containers: Vec<ContainerExecutionHookStatus>,
    /// Why the hook failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The VolumeSnapshot of one claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRecord {
    /// Name of the claim.
    pub persistent_volume_claim_name: String,
    /// Name of the VolumeSnapshot.
    pub volume_snapshot_name: String,
    /// UIDs of the pods that mounted the claim when the freeze began. A later one makes the consistency `Crash`.
    #[serde(default, rename = "podUIDs", skip_serializing_if = "Vec::is_empty")]
    pub pod_uids: Vec<String>,
    /// When the controller first saw the VolumeSnapshot of another user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_time: Option<MicroTime>,
    /// When the controller saw the cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_seen_time: Option<MicroTime>,
    /// Why the storage could not take the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
