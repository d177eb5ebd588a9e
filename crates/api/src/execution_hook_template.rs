//! ExecutionHookTemplate: the pair of actions that hooks of one kind of application share.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::hook_action::{HookAction, HookPolicy};

/// What to run. Hooks copy it when they start, so it can be changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "boathook.dev",
    version = "v1alpha1",
    kind = "ExecutionHookTemplate",
    shortname = "eht",
    namespaced,
    derive = "PartialEq",
    doc = "A PreAction and a PostAction that ExecutionHooks and ApplicationSnapshots use by name.",
    printcolumn = r#"{"name": "Policy", "type": "string", "jsonPath": ".spec.policy"}"#,
    printcolumn = r#"{"name": "Expires after", "type": "integer", "jsonPath": ".spec.expirationSeconds"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!has(self.postAction) || !has(self.postAction.exec) || !has(self.postAction.exec.hold) || !self.postAction.exec.hold", "postAction.exec.hold: only a preAction can hold its session: remove hold"),
    validation = ("!has(self.expirationTimeSeconds)", "expirationTimeSeconds is called expirationSeconds")
)]
pub struct ExecutionHookTemplateSpec {
    /// `ExecuteAll`: run in every selected pod. `ExecuteOnce`: run in the oldest selected pod that is Ready. Default:
    /// ExecuteAll.
    #[serde(default)]
    pub policy: HookPolicy,
    /// Freezes: runs when a hook is created, with retries until `actionTimeoutSeconds`.
    pub pre_action: HookAction,
    /// Thaws: runs when the hook is deleted, asked to thaw, or expires, and when a PreAction fails, with retries until
    /// it succeeds or the pod is gone. Omit it if nothing needs to be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_action: Option<HookAction>,
    /// Seconds from the start of the first PreAction until the PostActions run on their own. Without it, a hook never
    /// expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expiration_seconds: Option<i32>,
    /// Not a field: always rejected. Write `expirationSeconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_time_seconds: Option<i32>,
}
