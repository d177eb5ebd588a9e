//! ExecutionHooks and their templates in scenarios: written as their spec, waited for by what their status says.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ExecutionHook, ExecutionHookTemplate,
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookStatus},
    words::{ABANDON_UNDO, UNDO_NOW, condition},
};
use k8s_openapi::{api::core::v1::Event, jiff::Timestamp};
use kube::{
    Resource,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    conditions::{is_true, said},
    recording::record,
};
use crate::{Ctx, DEADLINE};

/// An action has this long, unless a scenario is about that: a busy machine is slow.
const PATIENCE: i32 = 60;

/// Longer than any scenario.
const NEVER: i32 = 3600;

/// An action: a line for a shell.
pub fn shell(script: &str) -> Value {
    shell_within(script, PATIENCE)
}

/// The same, which has this many seconds.
pub fn shell_within(script: &str, seconds: i32) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}, "actionTimeoutSeconds": seconds})
}

/// What records a `freeze` before and a `thaw` after, as a template has it.
pub fn freezing() -> Value {
    freezing_as("")
}

/// The same, each word followed by this, which the shell expands.
pub fn freezing_as(whose: &str) -> Value {
    json!({
        "preAction": shell(&record(&format!("freeze{whose}"))),
        "postAction": shell(&record(&format!("thaw{whose}"))),
        "expirationSeconds": NEVER,
    })
}

/// These fields with those of `more` instead or beside; what is null there is taken away.
pub fn with(mut fields: Value, more: Value) -> Value {
    for (key, value) in more.as_object().into_iter().flatten() {
        match value {
            Value::Null => _ = fields.as_object_mut().and_then(|fields| fields.remove(key)),
            value => fields[key] = value.clone(),
        }
    }
    fields
}

/// The containers `main` of these pods, as `podContainerNamesList` has them.
pub fn mains<const N: usize>(pods: [&str; N]) -> Value {
    let list: Vec<_> = pods.iter().map(|pod| json!({"podName": pod, "containerNames": ["main"]})).collect();
    json!({"podContainerNamesList": list})
}

/// Its status, empty if nobody has written one.
pub fn status(hook: &ExecutionHook) -> ExecutionHookStatus {
    hook.status.clone().unwrap_or_default()
}

/// Status and reason of its condition of this type.
pub fn condition_of(hook: &ExecutionHook, kind: &str) -> Option<(String, String)> {
    said(&status(hook).conditions, kind)
}

/// What it says of the container `main` of this pod.
pub fn part_of(hook: &ExecutionHook, pod: &str) -> Result<ContainerExecutionHookStatus> {
    let mut parts = status(hook).container_execution_hook_statuses.into_iter();
    parts
        .find(|part| part.pod_name == pod && part.container_name == "main")
        .with_context(|| format!("it says nothing of pod `{pod}`: {hook:?}"))
}

/// Every PreAction has succeeded, and nothing was taken back.
pub fn is_frozen(hook: &ExecutionHook) -> bool {
    is_true(&status(hook).conditions, condition::FROZEN)
}

/// Every PreAction has ended.
fn is_tried(hook: &ExecutionHook) -> bool {
    status(hook).pre_action_succeed.is_some()
}

pub fn is_thawed(hook: &ExecutionHook) -> bool {
    status(hook).post_action_succeed == Some(true)
}

impl Ctx {
    pub async fn create_template(&self, name: &str, spec: Value) -> Result<ExecutionHookTemplate> {
        let object = serde_json::from_value(object("ExecutionHookTemplate", name, spec))
            .with_context(|| format!("ExecutionHookTemplate `{name}` has no such spec"))?;
        self.create::<ExecutionHookTemplate>(&object).await
    }

    pub async fn create_hook(&self, name: &str, spec: Value) -> Result<ExecutionHook> {
        let object = serde_json::from_value(object("ExecutionHook", name, spec))
            .with_context(|| format!("ExecutionHook `{name}` has no such spec"))?;
        self.create::<ExecutionHook>(&object).await
    }

    /// Creates a hook, and waits until it has frozen.
    pub async fn freeze(&self, name: &str, spec: Value) -> Result<ExecutionHook> {
        self.create_hook(name, spec).await?;
        let tried = self.tried(name).await?;
        ensure!(is_frozen(&tried), "it did not freeze: {tried:?}");
        Ok(tried)
    }

    /// Waits until every PreAction has ended, well or not.
    pub async fn tried(&self, name: &str) -> Result<ExecutionHook> {
        self.watch_until(DEADLINE, name, "has run its PreActions", is_tried).await
    }

    /// Waits until every PostAction has succeeded.
    pub async fn thawed(&self, name: &str) -> Result<ExecutionHook> {
        self.watch_until(DEADLINE, name, "is thawed", is_thawed).await
    }

    /// Waits until its condition of this type has this reason.
    pub async fn hook_says(&self, name: &str, kind: &str, reason: &str) -> Result<ExecutionHook> {
        let what = format!("says {kind}, {reason}");
        let says = |hook: &ExecutionHook| condition_of(hook, kind).is_some_and(|(_, why)| why == reason);
        self.watch_until(DEADLINE, name, &what, says).await
    }

    /// Waits for an Event about the object of this kind and name, for this reason.
    pub async fn event_of<K: Resource<DynamicType = ()>>(&self, name: &str, reason: &str) -> Result<()> {
        let mut events = self.watch::<Event>("").await?;
        let kind = K::kind(&());
        let tells = |event: &Event| {
            let about = &event.involved_object;
            about.kind.as_deref() == Some(&*kind)
                && about.name.as_deref() == Some(name)
                && event.reason.as_deref() == Some(reason)
        };
        let what = format!("an Event about {kind} `{name}` says {reason}");
        events.until(DEADLINE, &what, |seen| seen.now.values().any(tells)).await.map(drop)
    }

    pub async fn request_thaw(&self, name: &str) -> Result<()> {
        self.patch_hook(name, json!({"spec": {"thawRequested": true}})).await
    }

    /// As `boathook thaw NAME` does it.
    pub async fn thaw_now(&self, name: &str) -> Result<()> {
        let annotations = json!({UNDO_NOW: Timestamp::now().to_string()});
        self.patch_hook(name, json!({"metadata": {"annotations": annotations}, "spec": {"thawRequested": true}})).await
    }

    /// As `boathook thaw NAME --force` does it.
    pub async fn give_up_thaw(&self, name: &str) -> Result<()> {
        let annotations = json!({ABANDON_UNDO: "true"});
        self.patch_hook(name, json!({"metadata": {"annotations": annotations}, "spec": {"thawRequested": true}})).await
    }

    async fn patch_hook(&self, name: &str, patch: Value) -> Result<()> {
        let patched = self.api::<ExecutionHook>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).with_context(|| format!("failed to change ExecutionHook `{name}`"))
    }
}

pub(super) fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "boathook.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}
