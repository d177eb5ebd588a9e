//! ExecutionHook: a PreAction now, and a PostAction when it is deleted, asked to thaw, or expires.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hook_action::{HookAction, HookPolicy},
    names, selector,
};

/// Runs a PreAction in the selected containers, and later the PostAction that takes it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "ExecutionHook",
    shortname = "eh",
    namespaced,
    status = "ExecutionHookStatus",
    derive = "PartialEq",
    doc = "A PreAction now, and a PostAction when it is deleted, asked to thaw, or expires, in selected containers.",
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
    validation = ("!has(self.executionHookTemplateName) || (!has(self.postAction) && !has(self.expirationSeconds) && !has(self.policy))", "postAction, expirationSeconds and policy are the template's: leave them away, or write preAction instead of executionHookTemplateName"),
    validation = ("!has(self.postAction) || !has(self.postAction.exec) || !has(self.postAction.exec.hold) || !self.postAction.exec.hold", "postAction.exec.hold: only a preAction's session can be held"),
    validation = ("!has(self.expirationTimeSeconds)", "expirationTimeSeconds is called expirationSeconds"),
    validation = ("has(self.executionHookTemplateName) == has(oldSelf.executionHookTemplateName) && (!has(self.executionHookTemplateName) || self.executionHookTemplateName == oldSelf.executionHookTemplateName) && has(self.preAction) == has(oldSelf.preAction) && (!has(self.preAction) || self.preAction == oldSelf.preAction) && has(self.postAction) == has(oldSelf.postAction) && (!has(self.postAction) || self.postAction == oldSelf.postAction) && has(self.expirationSeconds) == has(oldSelf.expirationSeconds) && (!has(self.expirationSeconds) || self.expirationSeconds == oldSelf.expirationSeconds) && has(self.policy) == has(oldSelf.policy) && (!has(self.policy) || self.policy == oldSelf.policy) && has(self.podContainerNamesList) == has(oldSelf.podContainerNamesList) && (!has(self.podContainerNamesList) || self.podContainerNamesList == oldSelf.podContainerNamesList) && has(self.podSelector) == has(oldSelf.podSelector) && (!has(self.podSelector) || self.podSelector == oldSelf.podSelector) && has(self.containerSelector) == has(oldSelf.containerSelector) && (!has(self.containerSelector) || self.containerSelector == oldSelf.containerSelector)", "only thawRequested can be changed: create another ExecutionHook"),
    validation = ("self.thawRequested || !oldSelf.thawRequested", "thawRequested cannot be taken back")
)]
pub struct ExecutionHookSpec {
    /// The ExecutionHookTemplate, of the same namespace, that says what to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub execution_hook_template_name: Option<String>,
    /// Instead of a template: what runs when the hook is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action: Option<HookAction>,
    /// Instead of a template: what runs when the hook is deleted, asked to thaw, or expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action: Option<HookAction>,
    /// Instead of a template: the longest time from the first PreAction to the PostActions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expiration_seconds: Option<i32>,
    /// Instead of a template: ExecuteAll (default) or ExecuteOnce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<HookPolicy>,
    /// Where to run, pod by pod. It wins over the selectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub pod_container_names_list: Option<Vec<PodContainerNames>>,
    /// Where to run: in the pods with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// Where in those pods. Absent: in all of their containers (with a notifier: in those that declare it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_selector: Option<ContainerSelector>,
    /// Asks for the PostActions, as deletion does; the object stays to be read. Never goes back to false.
    #[serde(default)]
    pub thaw_requested: bool,
    /// Not a field: `expirationSeconds` is meant.
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
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub pod_name: String,
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(max = 253), regex(pattern = names::LABEL)))]
    pub container_names: Vec<String>,
    /// Not a field: `containerNames` is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,
}

/// Containers have no labels: they are selected by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.ContainerName)", "ContainerName is called containerName"),
    validation = ("has(self.containerName) || has(self.ContainerName)", "containerName is missing: name a container")
)]
pub struct ContainerSelector {
    // Not required by the schema, which would otherwise not get to the rules.
    /// The name of the container. Required.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253), regex(pattern = names::LABEL))]
    pub container_name: String,
    /// Not a field: `containerName` is meant.
    #[serde(default, rename = "ContainerName", skip_serializing_if = "Option::is_none")]
    pub capital_container_name: Option<String>,
}

/// What was recorded when the hook was accepted, and what happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookStatus {
    /// What runs: a copy of the template, so that a later edit changes nothing under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedHook>,
    /// When the controller pinned what the hook is about, by that controller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// The controller that did: a name that no other process, and no later one, has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_by: Option<String>,
    /// One for each selected container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub container_execution_hook_statuses: Vec<ContainerExecutionHookStatus>,
    /// Absent until the PreActions have ended in every container; then whether all succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action_succeed: Option<bool>,
    /// Absent until every PostAction has succeeded, or failed once; then whether all succeeded. It alone may turn from
    /// false to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action_succeed: Option<bool>,
    /// From the start of the first PreAction to the end of the last PostAction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_window: Option<FreezeWindow>,
    /// Accepted; NoExpiry; Frozen; Expired; Thawed; Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

/// What a hook runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedHook {
    pub policy: HookPolicy,
    pub pre_action: HookAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action: Option<HookAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i32>,
}

/// How it went in one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerExecutionHookStatus {
    pub pod_name: String,
    #[serde(rename = "podUID")]
    pub pod_uid: String,
    pub container_name: String,
    /// The instance that the PreAction ran in.
    #[serde(default, rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// Absent until it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_action_status: Option<ExecutionHookActionStatus>,
    /// Absent until it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action_status: Option<ExecutionHookActionStatus>,
}

/// How one action went in one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionHookActionStatus {
    /// When it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_timestamp: Option<MicroTime>,
    /// When it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_timestamp: Option<MicroTime>,
    /// Absent while it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_succeed: Option<bool>,
    /// How often it was started.
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
    pub time: MicroTime,
    /// For a person: what happened, and what to do.
    pub message: String,
}

/// How long something was frozen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FreezeWindow {
    /// When the first PreAction was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the last PostAction had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<MicroTime>,
    /// The time between, for a person: `1.234s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}
