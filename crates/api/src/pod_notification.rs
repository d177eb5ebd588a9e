//! PodNotification: one action in one pod, and what takes it back. The only door into a container.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Action, names};

/// A request to run one action in one pod, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "PodNotification",
    shortname = "pn",
    namespaced,
    status = "PodNotificationStatus",
    derive = "PartialEq",
    doc = "A request to run one action in one pod, once, and what takes it back.",
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
    validation = ("self.podName == oldSelf.podName && has(self.podUID) == has(oldSelf.podUID) && (!has(self.podUID) || self.podUID == oldSelf.podUID) && has(self.notifier) == has(oldSelf.notifier) && (!has(self.notifier) || self.notifier == oldSelf.notifier) && has(self.action) == has(oldSelf.action) && (!has(self.action) || self.action == oldSelf.action) && has(self.containers) == has(oldSelf.containers) && (!has(self.containers) || self.containers == oldSelf.containers) && self.startDeadlineSeconds == oldSelf.startDeadlineSeconds && self.retry == oldSelf.retry && has(self.undo) == has(oldSelf.undo) && (!has(self.undo) || self.undo == oldSelf.undo)", "only undoRequested and ttlSecondsAfterFinished can be changed: create another PodNotification"),
    validation = ("self.undoRequested || !oldSelf.undoRequested", "undoRequested cannot be taken back"),
    validation = ("has(self.undo) || !has(self.action) || !has(self.action.exec) || !has(self.action.exec.hold) || !self.action.exec.hold", "exec.hold: something must release the session: write `undo: {}` or `undo: {afterSeconds: N}`"),
    validation = ("!has(self.undo) || has(self.undo.notifier) || has(self.undo.action) || (has(self.action) && has(self.action.exec) && has(self.action.exec.hold) && self.action.exec.hold)", "undo: write exactly one of notifier and action; only with exec.hold may it have neither")
)]
pub struct PodNotificationSpec {
    /// The pod, in the same namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = names::OBJECT))]
    pub pod_name: String,
    /// The pod must have this UID: another one under the same name is not told.
    #[serde(default, rename = "podUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub pod_uid: Option<String>,
    /// The name of the notifier to run, in every container that declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub notifier: Option<String>,
    /// What to run, written by a caller who may `create pods/exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Where it runs. Absent: an action in every container of the pod, a notifier in those that declare it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000), inner(length(max = 253), regex(pattern = names::LABEL)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub containers: Option<Vec<String>>,
    /// If no executor has claimed it this long after its creation, it fails and never runs. Default 60.
    #[serde(default = "default_start_deadline")]
    #[schemars(range(min = 1))]
    pub start_deadline_seconds: i32,
    /// Never (default): a handler runs at most once. UntilTimeout: a failed one is tried again within its timeout.
    #[serde(default)]
    pub retry: Retry,
    /// What takes it back. It is armed before the handler runs, and then runs at least once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// Asks for the undo; before an executor has claimed the object, it revokes it. Never goes back to false.
    #[serde(default)]
    pub undo_requested: bool,
    /// Deletes the object this long after it has ended and nothing is owed. Absent: kept.
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

/// What takes a handler back, in the containers where it may have run. A held session is released first; then this runs,
/// if it has a notifier or an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.notifier) || !has(self.action)", "write exactly one of notifier and action"),
    validation = ("!has(self.action) || !has(self.action.exec) || !has(self.action.exec.hold) || !self.action.exec.hold", "action.exec.hold: an undo's session cannot be held")
)]
pub struct Undo {
    /// The name of a notifier that every one of those containers declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub notifier: Option<String>,
    /// What to run, written by a caller who may `create pods/exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// How long one round of the undo may take; it is tried again within that time, and after it. Default: the
    /// notifier's or action's own. A held session has as long to end, by default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i32>,
    /// Expiry: the undo runs by itself this long after the handler started. Absent: only when it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub after_seconds: Option<i32>,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNotificationStatus {
    /// Speaks of the handlers alone: New, Succeeded (in every container), Failed.
    #[serde(default)]
    pub state: State,
    /// When the controller first saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the handlers had ended in every container, or nothing was to be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NotificationError>,
    /// The pod that was meant: another one under the same name is not it.
    #[serde(default, rename = "podUID", skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
    /// Where that pod runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Who carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// Which process has claimed it, and so runs it. Another one that finds it claimed never runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// One for each container that runs it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    #[schemars(length(max = 1000))]
    pub containers: Vec<ContainerNotificationStatus>,
    /// Accepted; Complete; Undone, if there is an undo; Held, if a session is or was held.
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

/// Who carries a PodNotification out: pinned when it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Executor {
    /// The controller, through the API server's exec.
    Api,
    /// The node's agent, through CRI.
    Agent,
}

/// One process' word that it runs the handlers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The process: a name that no other, and no later one, has.
    pub holder: String,
    /// When it claimed; the expiry of the undo counts from here.
    pub time: MicroTime,
}

/// How the handler went in one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerNotificationStatus {
    pub name: String,
    /// The instance that it ran in.
    #[serde(default, rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Absent while it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NotificationError>,
    /// How often it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The last 10 KiB of what it printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// It could not be ended, or nobody knows whether it has: a process of it may still run, or a server that it asked may
    /// still act. Its undo then runs once more when its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_may_remain: Option<bool>,
    /// Its undo: what was recorded before the handler ran, and how it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<UndoStatus>,
}

/// How the undo went in one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoStatus {
    /// What runs: recorded before the handler ran, and never read again from elsewhere. Absent: the release of the held
    /// session is all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// The session that the handler holds is released first, and has so many seconds to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_seconds: Option<i32>,
    /// The instance that it ran in: another one than the handler's if the container restarted meanwhile.
    #[serde(default, rename = "containerID", skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NotificationError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationError {
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// For a person: what happened, and what to do.
    pub message: String,
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
    /// Nobody claimed it in time.
    StartDeadlineExceeded,
    /// It may have run, or not: whoever ran it is gone, or the stream ended without a status.
    OutcomeUnknown,
    /// The pod's declaration of notifiers is not valid.
    InvalidDeclaration,
    /// A container that was named does not declare the notifier.
    NotifierNotDeclared,
    /// A container that would run the handler does not declare its undo.
    UndoNotDeclared,
}
