//! DeploymentLifecycles in scenarios: written as their spec, asked for what their status says.

use anyhow::{Context, Result};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{DeploymentLifecycleStatus, Rollout, RolloutPhase, Stage, StageRecord, StageState},
};
use serde_json::{Value, json};

use super::{
    conditions,
    execution_hooks::{object, with},
};

/// A hook that runs a line for a shell in the image of the container `main`, with the volume `log` that is its own.
pub fn hook(script: &str) -> Value {
    json!({"execNewPod": {"containerName": "main", "command": ["sh", "-c", script], "volumes": ["log"]}})
}

/// A hook that succeeds at once.
pub fn passes() -> Value {
    hook("true")
}

/// A hook that succeeds when it is told to, by [`super::rollouts::Web::release`].
pub fn waits() -> Value {
    hook(WAITS)
}

/// A line for a shell that ends when it is told to; and, as programs do, when it is stopped.
pub const WAITS: &str = "trap 'exit 143' TERM; until [ -e log/go ]; do sleep 0.1; done";

/// A line for a shell that succeeds or fails when it is told to, by [`super::rollouts::Web::release`] and
/// [`super::rollouts::Web::refuse`].
pub const FAILS_OR_PASSES: &str = "until [ -e log/go -o -e log/fail ]; do sleep 0.1; done; [ -e log/go ]";

/// A hook that fails, after it has said why.
pub fn fails() -> Value {
    hook("echo no such table; exit 7")
}

/// A hook that fails for this version only.
pub fn vetoes(version: &str) -> Value {
    hook(&format!("[ $VERSION != {version} ]"))
}

/// A hook that fails twice: what it counts by is its pod's.
pub fn succeeds_at_its_third_try() -> Value {
    hook("echo >> log/tries; [ $(wc -l < log/tries) -ge 3 ]")
}

/// The same hook under this failurePolicy.
pub fn policy(hook: Value, policy: &str) -> Value {
    with(hook, json!({"failurePolicy": policy}))
}

/// A lifecycle for the Deployment of this name.
pub fn lifecycle(name: &str, spec: Value) -> Result<DeploymentLifecycle> {
    serde_json::from_value(object("DeploymentLifecycle", name, spec))
        .with_context(|| format!("DeploymentLifecycle `{name}` has no such spec"))
}

/// Its status, empty if nobody has written one.
pub fn status(object: &DeploymentLifecycle) -> DeploymentLifecycleStatus {
    object.status.clone().unwrap_or_default()
}

pub fn rollout(object: &DeploymentLifecycle) -> Option<&Rollout> {
    object.status.as_ref()?.rollout.as_ref()
}

pub fn phase(object: &DeploymentLifecycle) -> Option<RolloutPhase> {
    rollout(object).map(|rollout| rollout.phase)
}

/// What it says of a stage of its rollout.
pub fn stage(object: &DeploymentLifecycle, stage: Stage) -> Result<StageRecord> {
    let record = rollout(object).and_then(|rollout| rollout.stage(stage));
    record.cloned().with_context(|| format!("it says nothing of {stage}: {object:?}"))
}

/// Every stage of its rollout and how it stands, in short.
pub fn stages(object: &DeploymentLifecycle) -> Vec<(Stage, StageState)> {
    let records = rollout(object).into_iter().flat_map(|rollout| &rollout.stages);
    records.map(|record| (record.stage, record.state)).collect()
}

/// Status and reason of its condition of this type.
pub fn condition_of(object: &DeploymentLifecycle, kind: &str) -> Option<(String, String)> {
    conditions::said(&status(object).conditions, kind)
}

/// The message of its condition of this type.
pub fn message_of(object: &DeploymentLifecycle, kind: &str) -> String {
    conditions::message(&status(object).conditions, kind)
}
