//! ApplicationSnapshots in scenarios: written as their spec, waited for by what their status says.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::{ApplicationSnapshotStatus, Consistency, Phase},
    words::CONSISTENCY,
};
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};

use super::{
    execution_hooks::{is_frozen, object},
    recording::recorder_on,
};
use crate::{
    Ctx, DEADLINE,
    claims::claim,
    snapshots::{VolumeSnapshot, is_ready},
};

/// A snapshot of the claim `data`, with these hooks in this order.
pub fn of_data<const N: usize>(hooks: [Value; N]) -> Value {
    json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": hooks.as_slice()})
}

/// A hook of this template, in the pods and containers that mount the claim.
pub fn by(template: &str) -> Value {
    json!({"executionHookTemplateName": template})
}

/// Its status, empty if nobody has written one.
pub fn status(object: &ApplicationSnapshot) -> ApplicationSnapshotStatus {
    object.status.clone().unwrap_or_default()
}

/// The reason and message of what went wrong.
pub fn failure(object: &ApplicationSnapshot) -> Option<(String, String)> {
    status(object).failure.map(|failure| (failure.reason, failure.message))
}

/// It is over, and is this consistent.
pub fn is_complete(object: &ApplicationSnapshot, consistency: Consistency) -> Result<()> {
    let status = status(object);
    ensure!(status.phase == Phase::Complete, "it is {:?}: {status:?}", status.phase);
    ensure!(status.consistency == Some(consistency), "it is {:?}: {status:?}", status.consistency);
    Ok(())
}

/// It is over for this reason, and nothing was cut.
pub fn failed_for(object: &ApplicationSnapshot, reason: &str) -> Result<()> {
    let status = status(object);
    ensure!(status.phase == Phase::Failed && status.consistency.is_none(), "it is {:?}: {status:?}", status.phase);
    let why = status.failure.as_ref().map(|failure| failure.reason.as_str());
    ensure!(why == Some(reason), "it failed for another reason: {status:?}");
    Ok(())
}

impl Ctx {
    pub async fn create_application_snapshot(&self, name: &str, spec: Value) -> Result<ApplicationSnapshot> {
        let object = serde_json::from_value(object("ApplicationSnapshot", name, spec))
            .with_context(|| format!("ApplicationSnapshot `{name}` has no such spec"))?;
        self.create::<ApplicationSnapshot>(&object).await
    }

    /// Creates one, and waits until it is over, well or not.
    pub async fn take(&self, name: &str, spec: Value) -> Result<ApplicationSnapshot> {
        self.create_application_snapshot(name, spec).await?;
        self.over(name).await
    }

    /// Waits until it is over, well or not.
    pub async fn over(&self, name: &str) -> Result<ApplicationSnapshot> {
        self.watch_until(DEADLINE, name, "is over", |object| status(object).phase.is_terminal()).await
    }

    /// Waits until it is in this phase.
    pub async fn in_phase(&self, name: &str, phase: Phase) -> Result<ApplicationSnapshot> {
        let what = format!("is in the phase {phase:?}");
        self.watch_until(DEADLINE, name, &what, |object| status(object).phase == phase).await
    }

    /// Its hook of this place in the list, when it has frozen.
    pub async fn hook_frozen(&self, name: &str, place: usize) -> Result<ExecutionHook> {
        let hook = self.hook_name(name, place).await?;
        self.watch_until(DEADLINE, &hook, "is frozen", is_frozen).await
    }

    /// The name of its hook of this place in the list.
    pub async fn hook_name(&self, name: &str, place: usize) -> Result<String> {
        let has_hooks = |object: &ApplicationSnapshot| status(object).execution_hook_names.len() > place;
        let object: ApplicationSnapshot = self.watch_until(DEADLINE, name, "names its hooks", has_hooks).await?;
        Ok(status(&object).execution_hook_names.swap_remove(place))
    }

    /// The claim `data`, and a running pod `box` that records on it.
    pub async fn run_box_on_data(&self) -> Result<()> {
        self.create(&claim("data").build()).await?;
        self.run_pod(recorder_on(self, "data", "box").build()).await.map(drop)
    }

    /// What a VolumeSnapshot says of itself.
    pub async fn consistency_mark(&self, snapshot: &str) -> Result<Option<String>> {
        let snapshot: VolumeSnapshot = self.api().get(snapshot).await?;
        Ok(snapshot.annotations().get(CONSISTENCY).cloned())
    }

    /// Restores a VolumeSnapshot of a claim that was recorded on, and returns what had been recorded when it was cut.
    pub async fn restored_record(&self, snapshot: &str) -> Result<Vec<String>> {
        self.watch_until::<VolumeSnapshot>(DEADLINE, snapshot, "is ready to use", is_ready).await?;
        let copy = format!("copy-of-{snapshot}");
        self.create(&claim(&copy).restored_from(snapshot).build()).await?;
        self.run_pod(recorder_on(self, &copy, &copy).build()).await?;
        self.recorded(&copy).await
    }

    /// The names of the hooks that are there.
    pub async fn hooks_there(&self) -> Result<Vec<String>> {
        let hooks = self.api::<ExecutionHook>().list(&ListParams::default()).await?;
        Ok(hooks.items.iter().map(ResourceExt::name_any).collect())
    }
}
