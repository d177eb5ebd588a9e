//! ExecutionHook: a PreAction now, and a PostAction when it is deleted, asked to thaw, or expires.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hook_action::{HookAction, HookPolicy},
    names, selector,
};

/// What to run, and where. Immutable except `thawRequested`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "ExecutionHook",
    shortname = "eh",
    namespaced,
    status = "ExecutionHookStatus",
    derive = "PartialEq",
    doc = "Runs a PreAction in selected containers when it is created, and the PostAction when it is deleted, asked to thaw, or expires.",
    printcolumn = r#"{"name": "Template", "type": "string", "jsonPath": ".spec.executionHookTemplateName"}"#,
    printcolumn = r#"{"name": "Frozen", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Frozen\")].reason"}"#,
    printcolumn = r#"{"name": "Since", "type": "date", "jsonPath": ".status.freezeWindow.startTime"}"#,
    printcolumn = r#"{"name": "Thawed", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Thawed\")].reason"}"#,
    printcolumn = r#"{"name": "Window", "type": "string", "jsonPath": ".status.freezeWindow.duration"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.executionHookTemplateName) != has(self.preAction)", "write exactly one of executionHookTemplateName and preAction"),
    validation = ("!has(self.executionHookTemplateName) || (!has(self.postAction) && !has(self.expirationSeconds) && !has(self.policy))", "postAction, expirationSeconds and policy come from the template: remove them, or write preAction instead of executionHookTemplateName"),
    validation = ("!has(self.postAction) || !has(self.postAction.exec) || !has(self.postAction.exec.hold) || !self.postAction.exec.hold", "postAction.exec.hold: only a preAction can hold its session: remove hold"),
    validation = ("!has(self.expirationTimeSeconds)", "expirationTimeSeconds is called expirationSeconds"),
    validation = ("has(self.executionHookTemplateName) == has(oldSelf.executionHookTemplateName) && (!has(self.executionHookTemplateName) || self.executionHookTemplateName == oldSelf.executionHookTemplateName) && has(self.preAction) == has(oldSelf.preAction) && (!has(self.preAction) || self.preAction == oldSelf.preAction) && has(self.postAction) == has(oldSelf.postAction) && (!has(self.postAction) || self.postAction == oldSelf.postAction) && has(self.expirationSeconds) == has(oldSelf.expirationSeconds) && (!has(self.expirationSeconds) || self.expirationSeconds == oldSelf.expirationSeconds) && has(self.policy) == has(oldSelf.policy) && (!has(self.policy) || self.policy == oldSelf.policy) && has(self.podContainerNamesList) == has(oldSelf.podContainerNamesList) && (!has(self.podContainerNamesList) || self.podContainerNamesList == oldSelf.podContainerNamesList) && has(self.podSelector) == has(oldSelf.podSelector) && (!has(self.podSelector) || self.podSelector == oldSelf.podSelector) && has(self.containerSelector) == has(oldSelf.containerSelector) && (!has(self.containerSelector) || self.containerSelector == oldSelf.containerSelector)", "spec is immutable except thawRequested: create another ExecutionHook"),
    validation = ("self.thawRequested || !oldSelf.thawRequested", "thawRequested cannot be set back to false: create another ExecutionHook to freeze again")
)]
pub struct ExecutionHookSpec {
    /// ExecutionHookTemplate of the namespace that defines actions, policy and expiry. Write either this or
    /// `preAction`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub execution_hook_template_name: Option<String>,
    /// Without a template: freezes, when the hook is created, with retries until `actionTimeoutSeconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action: Option<HookAction>,
    /// Without a template: thaws, when the hook is deleted, asked to thaw, or expires, and when a PreAction fails, with
    /// retries until it succeeds or the pod is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action: Option<HookAction>,
    /// Without a template: seconds from the start of the first PreAction until the PostActions run on their own. If
    /// absent, the hook never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expiration_seconds: Option<i32>,
    /// `ExecuteAll`: run in every selected pod. `ExecuteOnce`: run in the oldest selected pod that is Ready. Default:
    /// ExecuteAll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<HookPolicy>,
    /// Pods and containers to run in, by name. Takes precedence over `podSelector`, one of which is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub pod_container_names_list: Option<Vec<PodContainerNames>>,
    /// Labels of the pods to run in. Pods that are created after the hook was accepted are not frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// The container to run in, in each pod that `podSelector` selects. Default: all or, with a notifier, those that
    /// declare it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_selector: Option<ContainerSelector>,
    /// `true` runs the PostActions and keeps the object. It cannot be set back to false. Default: false.
    #[serde(default)]
    pub thaw_requested: bool,
    /// Not a field: always rejected. Write `expirationSeconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time_seconds: Option<i32>,
}

impl ExecutionHookSpec {
    /// Refuses names and selectors that Kubernetes does not have; the error says what to write instead.
    pub fn validate(&self) -> Result<(), String> {
        if let Some(name) = &self.execution_hook_template_name {
            names::object("executionHookTemplateName", name)?;
        }
        let Self { pod_container_names_list, pod_selector, container_selector, .. } = self;
        validate_targets(pod_container_names_list.as_deref(), pod_selector.as_ref(), container_selector.as_ref())
    }

    /// Whether its author wrote a command of their own into it.
    pub fn is_inline(&self) -> bool {
        self.pre_action.iter().chain(&self.post_action).any(HookAction::is_inline)
    }
}

/// Refuses names and selectors that Kubernetes does not have.
pub(crate) fn validate_targets(
    list: Option<&[PodContainerNames]>,
    pods: Option<&LabelSelector>,
    containers: Option<&ContainerSelector>,
) -> Result<(), String> {
    for (place, pod) in list.iter().copied().flatten().enumerate() {
        let field = format!("podContainerNamesList[{place}]");
        names::object(&format!("{field}.podName"), &pod.pod_name)?;
        if pod.container_name.is_some() {
            return Err(format!("{field}.containerName is called containerNames, and is a list"));
        }
        for (place, name) in pod.container_names.iter().enumerate() {
            names::container(&format!("{field}.containerNames[{place}]"), name)?;
        }
    }
    if let Some(pods) = pods {
        selector::parse(pods).map_err(|wrong| format!("podSelector.{wrong}"))?;
    }
    match containers {
        Some(containers) if containers.capital_container_name.is_some() => {
            Err("containerSelector.ContainerName is called containerName".to_owned())
        }
        Some(containers) if containers.container_name.is_empty() => {
            Err("containerSelector.containerName is missing: name a container".to_owned())
        }
        Some(containers) => names::container("containerSelector.containerName", &containers.container_name),
        None => Ok(()),
    }
}

/// Containers of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!has(self.containerName)", "containerName is called containerNames, and is a list"))]
pub struct PodContainerNames {
    /// Name of a pod in the same namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub pod_name: String,
    /// At least one container to run in.
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(max = 253), regex(pattern = names::LABEL)))]
    pub container_names: Vec<String>,
    /// Not a field: always rejected. Write `containerNames`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,
}

/// Selects a container by its name, because containers have no labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.ContainerName)", "ContainerName is called containerName"),
    validation = ("has(self.containerName) || has(self.ContainerName)", "containerName is missing: name a container")
)]
pub struct ContainerSelector {
    // Not required by the schema, which would otherwise not get to the rules.
    /// Name of the container. Required.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::LABEL))]
    pub container_name: String,
    /// Not a field: always rejected. Write `containerName`.
    #[serde(default, rename = "ContainerName", skip_serializing_if = "Option::is_none")]
    pub capital_container_name: Option<String>,
}

/// What the hook runs, and the result in each container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookStatus {
    /// What the hook runs, copied when it was accepted: later edits of the template have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedHook>,
    /// When a controller accepted the hook, by its clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// Unique identity of the controller process that accepted the hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_by: Option<String>,
    /// Result in each selected container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub container_execution_hook_statuses: Vec<ContainerExecutionHookStatus>,
    /// Whether every PreAction succeeded. Absent until all have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action_succeed: Option<bool>,
    /// Whether every PostAction succeeded. Absent until each has succeeded or failed once; a retry can turn false into
    /// true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action_succeed: Option<bool>,
    /// Time from the first PreAction to the end of the last PostAction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_window: Option<FreezeWindow>,
    /// Types: Accepted, NoExpiry, Frozen, Expired, Thawed and Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// The actions, policy and expiry of a hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedHook {
    /// The policy.
    pub policy: HookPolicy,
    /// Freezes.
    pub pre_action: HookAction,
    /// Thaws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action: Option<HookAction>,
    /// Seconds from the first PreAction to the expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i32>,
}

/// Result of the PreAction and the PostAction in one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerExecutionHookStatus {
    /// Name of the pod.
    pub pod_name: String,
    /// UID of the pod.
    #[serde(rename = "podUID")]
    pub pod_uid: String,
    /// Name of the container.
    pub container_name: String,
    /// Runtime ID of the container when the PreAction ran; a restart changes it.
    #[serde(default, rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Result of the PreAction. Absent until it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action_status: Option<ExecutionHookActionStatus>,
    /// Result of the PostAction. Absent until it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action_status: Option<ExecutionHookActionStatus>,
}

/// Result of one action in one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookActionStatus {
    /// When the action started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_timestamp: Option<MicroTime>,
    /// When the action ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_timestamp: Option<MicroTime>,
    /// Whether the action succeeded. Absent until it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_succeed: Option<bool>,
    /// Number of attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<HookError>,
}

/// Why an action failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookError {
    /// When the error occurred.
    pub time: MicroTime,
    /// What happened and what to do.
    pub message: String,
}

/// How long something was frozen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FreezeWindow {
    /// When the first PreAction started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the last PostAction ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<MicroTime>,
    /// The time in between, for example `1.234s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}
