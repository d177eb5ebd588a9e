//! PodNotification: one action in one pod, and what takes it back. The only door into a container.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Action, names};

/// What to run, and where. Immutable except `undoRequested` and `ttlSecondsAfterFinished`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "PodNotification",
    shortname = "pn",
    namespaced,
    status = "PodNotificationStatus",
    derive = "PartialEq",
    doc = "Runs one action in one pod, once, and later the undo that takes it back.",
    selectable = ".status.nodeName",
    printcolumn = r#"{"name": "Pod", "type": "string", "jsonPath": ".spec.podName"}"#,
    printcolumn = r#"{"name": "Notifier", "type": "string", "jsonPath": ".spec.notifier"}"#,
    printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#,
    printcolumn = r#"{"name": "Error", "type": "string", "jsonPath": ".status.error.type"}"#,
    printcolumn = r#"{"name": "Undone", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Undone\")].reason"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.nodeName", "priority": 1}"#,
    printcolumn = r#"{"name": "Executor", "type": "string", "jsonPath": ".status.executor", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.notifier) != has(self.action)", "write exactly one of notifier and action"),
    validation = ("self.podName == oldSelf.podName && has(self.podUID) == has(oldSelf.podUID) && (!has(self.podUID) || self.podUID == oldSelf.podUID) && has(self.notifier) == has(oldSelf.notifier) && (!has(self.notifier) || self.notifier == oldSelf.notifier) && has(self.action) == has(oldSelf.action) && (!has(self.action) || self.action == oldSelf.action) && has(self.containers) == has(oldSelf.containers) && (!has(self.containers) || self.containers == oldSelf.containers) && self.startDeadlineSeconds == oldSelf.startDeadlineSeconds && self.retry == oldSelf.retry && has(self.undo) == has(oldSelf.undo) && (!has(self.undo) || self.undo == oldSelf.undo)", "spec is immutable except undoRequested and ttlSecondsAfterFinished: create another PodNotification"),
    validation = ("self.undoRequested || !oldSelf.undoRequested", "undoRequested cannot be set back to false: create another PodNotification to run the action again"),
    validation = ("has(self.undo) || !has(self.action) || !has(self.action.exec) || !has(self.action.exec.hold) || !self.action.exec.hold", "action.exec.hold needs an undo, which releases the session: write `undo: {}` or `undo: {afterSeconds: N}`"),
    validation = ("!has(self.undo) || has(self.undo.notifier) || has(self.undo.action) || (has(self.action) && has(self.action.exec) && has(self.action.exec.hold) && self.action.exec.hold)", "undo: write exactly one of notifier and action (both may be omitted only with action.exec.hold)")
)]
pub struct PodNotificationSpec {
    /// Name of the pod, in the same namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub pod_name: String,
    /// UID that the pod must have. Default: that of the pod at acceptance.
    #[serde(default, rename = "podUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub pod_uid: Option<String>,
    /// Name of the notifier to run. Write either this or `action`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub notifier: Option<String>,
    /// The action to run. The author needs the right to `create pods/exec` in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Containers to run in. Default: all or, with a notifier, those that declare it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000), inner(length(max = 253), regex(pattern = names::LABEL)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub containers: Option<Vec<String>>,
    /// Seconds from creation within which an executor must claim the object; later it fails and never runs. Default:
    /// 60.
    #[serde(default = "default_start_deadline")]
    #[schemars(range(min = 1))]
    pub start_deadline_seconds: i32,
    /// `Never`: run the handler at most once. `UntilTimeout`: retry a failed handler until its timeout. Default: Never.
    #[serde(default)]
    pub retry: Retry,
    /// Takes the handler back. It is recorded before the handler runs, and then runs at least once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// `true` runs the undo or, before an executor has claimed the object, revokes it. It cannot be set back to false.
    /// Default: false.
    #[serde(default)]
    pub undo_requested: bool,
    /// Seconds from the end of handlers and undo until the object is deleted. Without it, the object is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

impl PodNotificationSpec {
    /// Whether its handler is a command whose session is held until the undo.
    pub fn holds(&self) -> bool {
        self.action.as_ref().is_some_and(Action::holds)
    }

    /// Refuses names that cannot exist; the error says what to write instead.
    pub fn validate(&self) -> Result<(), String> {
        names::object("podName", &self.pod_name)?;
        let mut containers = self.containers.iter().flatten().enumerate();
        containers.try_for_each(|(place, name)| names::container(&format!("containers[{place}]"), name))
    }

    /// Whether its caller wrote a command of their own into it.
    pub fn is_inline(&self) -> bool {
        self.action.is_some() || self.undo.as_ref().is_some_and(|undo| undo.action.is_some())
    }

    /// Whether it runs something that the pod declares.
    pub fn uses_declarations(&self) -> bool {
        self.notifier.is_some() || self.undo.as_ref().is_some_and(|undo| undo.notifier.is_some())
    }
}

/// The default of `startDeadlineSeconds`.
pub const DEFAULT_START_DEADLINE_SECONDS: i32 = 60;

fn default_start_deadline() -> i32 {
    DEFAULT_START_DEADLINE_SECONDS
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Retry {
    #[default]
    Never,
    UntilTimeout,
}

/// Takes a handler back, in the containers where it may have run. A held session is released first; then the notifier
/// or action runs, if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.notifier) || !has(self.action)", "write exactly one of notifier and action"),
    validation = ("!has(self.action) || !has(self.action.exec) || !has(self.action.exec.hold) || !self.action.exec.hold", "action.exec.hold: an undo cannot hold its session: remove hold")
)]
pub struct Undo {
    /// Name of a notifier that each container of the handler declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub notifier: Option<String>,
    /// The action to run. The author needs the right to `create pods/exec` in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Time limit in seconds for one round; rounds are repeated until one succeeds. Default: that of the notifier or
    /// action, and 10 to release a held session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i32>,
    /// Expiry: seconds from the start of the handler until the undo runs on its own. Without it, there is no expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub after_seconds: Option<i32>,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNotificationStatus {
    /// Result of the handlers alone: `New`, then for good `Succeeded` (in every container) or `Failed`. Default: New.
    #[serde(default)]
    pub state: State,
    /// When the controller first saw the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the handlers had ended in every container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NotificationError>,
    /// UID of the pod, recorded at acceptance.
    #[serde(default, rename = "podUID", skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Node that the pod runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// `api`: the controller runs the handlers, through the API server. `agent`: the node agent does, through the
    /// container runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// The only process that runs the handlers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Result in each container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    #[schemars(length(max = 1000))]
    pub containers: Vec<ContainerNotificationStatus>,
    /// Types: Accepted, Complete, Succeeded, Undone and Held.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum State {
    #[default]
    New,
    Succeeded,
    Failed,
}

impl State {
    pub fn is_terminal(self) -> bool {
        match self {
            Self::New => false,
            Self::Succeeded | Self::Failed => true,
        }
    }
}

/// `api`: the controller runs the handlers, through the API server. `agent`: the node agent does, through the container
/// runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Executor {
    /// The controller, through the API server's exec.
    Api,
    /// The node's agent, through CRI.
    Agent,
}

/// The process that runs the handlers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Unique identity of the process.
    pub holder: String,
    /// When the process claimed the object. `afterSeconds` counts from here.
    pub time: MicroTime,
}

/// Result of the handler in one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerNotificationStatus {
    /// Name of the container.
    pub name: String,
    /// Runtime ID of the container when the handler ran; a restart changes it.
    #[serde(default, rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// When the handler started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the handler ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Whether the handler succeeded. Absent while unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    /// Why the handler failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NotificationError>,
    /// Number of attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// Exit code of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The last 10 KiB of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The handler may still act: a process could not be ended, or a server has not answered. The undo runs once more
    /// at its expiry or, without `afterSeconds`, 30 s after the handler's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_may_remain: Option<bool>,
    /// The undo of this container, and its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<UndoStatus>,
}

/// The undo of one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoStatus {
    /// The action, recorded before the handler ran. Absent if the undo only releases a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Time limit in seconds to release the held session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_seconds: Option<i32>,
    /// Runtime ID of the container when the undo ran.
    #[serde(default, rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// When the undo first started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the undo last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Whether the undo succeeded. A retry can turn false into true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    /// Why the undo failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NotificationError>,
    /// Number of attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// Exit code of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The last 10 KiB of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationError {
    /// Kind of failure, for programs.
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// What happened and what to do.
    pub message: String,
    /// When it happened.
    pub timestamp: MicroTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ErrorType {
    /// There is no such pod, or it is another one by now.
    PodNotFound,
    /// The handler did not end in time.
    HandlerTimeout,
    /// The handler ended, and not well.
    HandlerFailed,
    /// The container did not run, or stopped meanwhile.
    ContainerNotRunning,
    /// Boathook may not do that there.
    Forbidden,
    /// The handler ended well, but its probe did not pass in time.
    ProbeFailed,
    /// The container's first process does not handle the signal: it would be lost, or kill it.
    SignalNotHandled,
    /// This executor cannot do that, or it is switched off; the message says how to enable it.
    Unsupported,
    /// It was revoked before it was claimed.
    Revoked,
    /// No executor claimed it in time.
    StartDeadlineExceeded,
    /// It may have run, or not: the process that ran it is gone, or the stream ended without a status.
    OutcomeUnknown,
    /// The pod's declaration of notifiers is not valid.
    InvalidDeclaration,
    /// A container that was named does not declare the notifier.
    NotifierNotDeclared,
    /// A container that would run the handler does not declare its undo.
    UndoNotDeclared,
}
