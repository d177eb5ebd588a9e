//! One ExecutionHook: frozen, thawed, and every write of Boathook counted meanwhile.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ExecutionHook, PodNotification,
    execution_hook::{ExecutionHookActionStatus, ExecutionHookStatus},
};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    discovery::ApiResource,
};
use serde_json::json;

use crate::{
    counted::{Counted, IsOurs},
    pods::{COMMAND, Place},
};

const DEADLINE: Duration = Duration::from_secs(280);

/// What one hook took.
pub(super) struct Seen {
    /// Milliseconds from the start of the first PreAction to the end of the last PostAction.
    pub(super) window: f64,
    /// Milliseconds from the first container frozen to the last.
    pub(super) skew: f64,
}

/// The writes of Boathook for each pod, with the hook's own and the Events.
pub(super) struct Writes {
    pub(super) to_freeze: f64,
    pub(super) to_thaw: f64,
}

/// As fast as it can be: the thaw is asked for as soon as the freeze is known.
pub(super) async fn freeze_and_thaw(place: &Place, size: usize, round: usize) -> Result<Seen> {
    let hook = Hook::create(place, size, &format!("hook-{size}-{round}")).await?;
    hook.until(|status| status.pre_action_succeed).await?;
    let status = hook.thaw().await?;
    Ok(Seen { window: between(&status)?, skew: skew(&status)? })
}

/// Once more, not in a hurry: what is written until it is frozen, and what after.
pub(super) async fn count_writes(place: &Place, size: usize) -> Result<Writes> {
    // Nobody else writes to these here.
    let all: IsOurs = |_| true;
    let kinds = vec![
        (ApiResource::erase::<ExecutionHook>(&()), all),
        (ApiResource::erase::<PodNotification>(&()), all),
        (ApiResource::erase::<Event>(&()), all),
    ];
    let mut counted = Counted::begin(&place.client, &place.namespace, kinds).await?;
    let hook = Hook::create(place, size, &format!("counted-{size}")).await?;
    hook.until(|status| status.pre_action_succeed).await?;
    // The create, and the patch that asks for the thaw, are not Boathook's.
    let to_freeze = counted.since_last_time().await? - 1.0;
    hook.thaw().await?;
    let to_thaw = counted.since_last_time().await? - 1.0;
    Ok(Writes { to_freeze: to_freeze / size as f64, to_thaw: to_thaw / size as f64 })
}

struct Hook {
    hooks: Api<ExecutionHook>,
    name: String,
}

impl Hook {
    async fn create(place: &Place, size: usize, name: &str) -> Result<Self> {
        let hooks: Api<ExecutionHook> = Api::namespaced(place.client.clone(), &place.namespace);
        let action = json!({"exec": {"command": [COMMAND]}, "actionTimeoutSeconds": 120});
        let target = |pod: &String| json!({"podName": pod, "containerNames": ["main"]});
        let targets: Vec<_> = place.pods[..size].iter().map(target).collect();
        let spec = json!({"preAction": action, "postAction": action, "podContainerNamesList": targets,
            "expirationSeconds": 240});
        let hook = ExecutionHook::new(name, serde_json::from_value(spec)?);
        hooks.create(&PostParams::default(), &hook).await.context("failed to create a hook")?;
        Ok(Self { hooks, name: name.to_owned() })
    }

    async fn thaw(&self) -> Result<ExecutionHookStatus> {
        let thaw = Patch::Merge(json!({"spec": {"thawRequested": true}}));
        self.hooks.patch(&self.name, &PatchParams::default(), &thaw).await.context("failed to ask for the thaw")?;
        self.until(|status| status.post_action_succeed).await
    }

    async fn until(&self, ended: fn(&ExecutionHookStatus) -> Option<bool>) -> Result<ExecutionHookStatus> {
        let name = &self.name;
        let is_over = move |hook: Option<&ExecutionHook>| hook.and_then(|hook| ended(hook.status.as_ref()?)).is_some();
        let over = kube::runtime::wait::await_condition(self.hooks.clone(), name, is_over);
        let hook = tokio::time::timeout(DEADLINE, over).await.with_context(|| format!("`{name}` did not end"))??;
        let status = hook.and_then(|hook| hook.status).context("the hook is gone")?;
        ensure!(ended(&status) == Some(true), "`{name}` failed: {:?}", status.conditions);
        Ok(status)
    }
}

fn between(status: &ExecutionHookStatus) -> Result<f64> {
    let window = status.freeze_window.as_ref().context("the hook says nothing of its window")?;
    let (start, end) = window.start_time.as_ref().zip(window.end_time.as_ref()).context("the window is not closed")?;
    Ok(end.0.duration_since(start.0).as_secs_f64() * 1000.0)
}

fn skew(status: &ExecutionHookStatus) -> Result<f64> {
    let frozen = |action: &ExecutionHookActionStatus| action.complete_timestamp.as_ref().map(|time| time.0);
    let all = status.container_execution_hook_statuses.iter();
    let all: BTreeSet<_> = all.filter_map(|one| one.pre_action_status.as_ref().and_then(frozen)).collect();
    let (first, last) = all.first().zip(all.last()).context("nothing was frozen")?;
    Ok(last.duration_since(*first).as_secs_f64() * 1000.0)
}
