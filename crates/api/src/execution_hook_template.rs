//! ExecutionHookTemplate: the pair of actions that hooks of one kind of application share.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::hook_action::{HookAction, HookPolicy};

/// What to run before and after, without saying where: hooks name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "ExecutionHookTemplate",
    shortname = "eht",
    namespaced,
    derive = "PartialEq",
    doc = "A pair of actions, before and after, for hooks to name.",
    printcolumn = r#"{"name": "Policy", "type": "string", "jsonPath": ".spec.policy"}"#,
    printcolumn = r#"{"name": "Expires after", "type": "integer", "jsonPath": ".spec.expirationSeconds"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.postAction) || !has(self.postAction.exec) || !has(self.postAction.exec.hold) || !self.postAction.exec.hold", "postAction.exec.hold: only a preAction's session can be held"),
    validation = ("!has(self.expirationTimeSeconds)", "expirationTimeSeconds is called expirationSeconds")
)]
pub struct ExecutionHookTemplateSpec {
    /// ExecuteAll (default): on every selected pod. ExecuteOnce: on the oldest that is Ready.
    #[serde(default)]
    pub policy: HookPolicy,
    /// Runs when a hook is created: the freeze.
    pub pre_action: HookAction,
    /// Runs when the hook is deleted, asked to thaw, or expires: the thaw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action: Option<HookAction>,
    /// The longest time from the first PreAction to the PostActions, which then run by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expiration_seconds: Option<i32>,
    /// Not a field: `expirationSeconds` is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time_seconds: Option<i32>,
}
