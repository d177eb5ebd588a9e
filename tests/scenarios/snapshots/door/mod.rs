//! The second door: VolumeSnapshots that anybody's tool creates, marked to be taken with hooks.

pub(crate) mod admitted;
pub(crate) mod refused;
pub(crate) mod withdrawn;

use anyhow::{Context, Result};
use boathook_api::{
    ApplicationSnapshot,
    words::{EXECUTION_HOOK_INFOS, EXECUTION_HOOK_TEMPLATE_LABEL},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        execution_hooks::{freezing, shell_within, with},
        recording::record,
    },
    snapshots::{VolumeSnapshot, snapshot},
};
use kube::{
    ResourceExt,
    api::{ListParams, PostParams},
    core::Status,
};
use serde_json::{Value, json};

/// What a PreAction may take of the 26 s that hooks have of a request; the rest is for those who look whether it fits.
const SECONDS: i32 = 18;

/// What records, and may take no longer than a request can wait.
fn quick() -> Value {
    freezing_by(&record("freeze"))
}

/// The same with this line for a shell as its PreAction.
fn freezing_by(script: &str) -> Value {
    with(freezing(), json!({"preAction": shell_within(script, SECONDS)}))
}

/// A snapshot of the claim `data`, marked with this template.
fn labelled(name: &str, template: &str) -> VolumeSnapshot {
    let mut marked = snapshot(name, "data");
    marked.labels_mut().insert(EXECUTION_HOOK_TEMPLATE_LABEL.to_owned(), template.to_owned());
    marked
}

/// The same by an annotation, as it is written.
pub(crate) fn annotated(name: &str, infos: &str) -> VolumeSnapshot {
    let mut marked = snapshot(name, "data");
    marked.annotations_mut().insert(EXECUTION_HOOK_INFOS.to_owned(), infos.to_owned());
    marked
}

/// Asks for it, and returns with what it was refused.
async fn refused(ctx: &Ctx, asked: &VolumeSnapshot) -> Result<Status> {
    match ctx.api().create(&PostParams::default(), asked).await {
        Err(kube::Error::Api(status)) => Ok(*status),
        Err(error) => Err(error).context("failed in another way than by being refused"),
        Ok(stored) => anyhow::bail!("it was not refused: {stored:?}"),
    }
}

/// Waits until there is what stands for this VolumeSnapshot, and returns its name.
pub(crate) async fn intent_of(ctx: &Ctx, snapshot: &str) -> Result<String> {
    let is_it = |object: &ApplicationSnapshot| object.spec.source.volume_snapshot_name.as_deref() == Some(snapshot);
    let mut all = ctx.watch::<ApplicationSnapshot>("").await?;
    let what = format!("something is done about VolumeSnapshot `{snapshot}`");
    let seen = all.until(DEADLINE, &what, |seen| seen.now.values().any(is_it)).await?;
    seen.now.values().find(|object| is_it(object)).map(ResourceExt::name_any).context("it was there")
}

/// The VolumeSnapshots that something is being done about, or was.
async fn intents(ctx: &Ctx) -> Result<Vec<String>> {
    let all = ctx.api::<ApplicationSnapshot>().list(&ListParams::default()).await?;
    Ok(all.items.into_iter().filter_map(|object| object.spec.source.volume_snapshot_name).collect())
}
