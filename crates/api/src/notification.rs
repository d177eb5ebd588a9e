//! Notification: tells every pod that a selector finds, through PodNotifications of its own.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to run, and in which pods. Immutable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "Notification",
    namespaced,
    status = "NotificationStatus",
    derive = "PartialEq",
    doc = "Runs a notifier, which the pods declare, in every Running pod that a selector finds.",
    printcolumn = r#"{"name": "Notifier", "type": "string", "jsonPath": ".spec.notifier"}"#,
    printcolumn = r#"{"name": "Complete", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Complete\")].status"}"#,
    printcolumn = r#"{"name": "Succeeded", "type": "integer", "jsonPath": ".status.succeededCount"}"#,
    printcolumn = r#"{"name": "Failed", "type": "integer", "jsonPath": ".status.failedCount"}"#,
    printcolumn = r#"{"name": "Undeclared", "type": "integer", "jsonPath": ".status.undeclaredCount"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self == oldSelf", "spec is immutable: create another Notification"))]
pub struct NotificationSpec {
    /// Labels of the pods to notify. Only Running pods are notified.
    pub selector: LabelSelector,
    /// `AllPods`: also pods that appear later, until the object is deleted; it never completes. `PreExistingPods`: only
    /// pods created before it. Default: AllPods.
    #[serde(default)]
    pub policy: PodSelectionPolicy,
    /// Name of the notifier to run.
    #[schemars(length(min = 1, max = 317))]
    pub notifier: String,
    /// Pods notified at the same time; 0 means all. A negative number fails the Notification. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<i32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodSelectionPolicy {
    #[default]
    AllPods,
    PreExistingPods,
}

/// Progress of the notification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationStatus {
    /// Pods in which a handler failed.
    #[serde(default)]
    pub failed_count: i32,
    /// Pods in which every handler succeeded.
    #[serde(default)]
    pub succeeded_count: i32,
    /// Pods without the notifier: nothing ran in them.
    #[serde(default)]
    pub undeclared_count: i32,
    /// When the controller first saw the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the last PodNotification ended. Never set with the policy AllPods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Types: Accepted, Complete and Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
