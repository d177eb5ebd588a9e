//! Notification: tells every pod that a selector finds, through PodNotifications of its own.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, MicroTime};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tells every Running pod that the selector finds to run a notifier that its author declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "Notification",
    namespaced,
    status = "NotificationStatus",
    derive = "PartialEq",
    doc = "Tells every Running pod that a selector finds to run a notifier that its author declared.",
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
    /// Which pods of the namespace. Only Running ones are told.
    pub selector: LabelSelector,
    /// AllPods (default): also pods that come later, until this object is deleted; it is never complete.
    /// PreExistingPods: those created strictly before this object.
    #[serde(default)]
    pub policy: PodSelectionPolicy,
    /// The name of the notifier to run.
    #[schemars(length(min = 1, max = 317))]
    pub notifier: String,
    /// How many pods at once; 0 or absent: all. Negative: the Notification fails, and its condition says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<i32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodSelectionPolicy {
    #[default]
    AllPods,
    PreExistingPods,
}

/// How far it has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationStatus {
    /// How many of its PodNotifications have failed.
    #[serde(default)]
    pub failed_count: i32,
    /// In how many pods every handler has succeeded.
    #[serde(default)]
    pub succeeded_count: i32,
    /// How many pods declare no notifier of this name: nothing ran in them.
    #[serde(default)]
    pub undeclared_count: i32,
    /// When the controller first saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When the last of its PodNotifications had ended. Never set under AllPods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_time: Option<MicroTime>,
    /// Accepted; Complete; Succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
}
