//! An application of two pods on one volume, each with a hook of its own. What a hook does, it writes down on the volume,
//! so that a copy of the volume says itself whether it was cut in the freeze.

use anyhow::{Context, Result, ensure};
use boathook_api::application_snapshot::{ApplicationSnapshotStatus, Consistency};
use boathook_tests::{
    Ctx,
    boathook::{
        application_snapshots::{by, of_data},
        execution_hooks::{mains, shell, shell_within, with},
        recording::recorder_on,
    },
    claims::claim,
};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// In the order in which they are frozen.
pub(crate) const PODS: [&str; 2] = ["one", "two"];

/// Longer than any scenario: nothing is thawed only because its time was over.
pub(crate) const LONG: i32 = 3600;

/// Starts the pods.
pub(crate) async fn start(ctx: &Ctx) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    for pod in PODS {
        ctx.run_pod(recorder_on(ctx, "data", pod).build()).await?;
    }
    Ok(())
}

/// A line for a shell: writes down that this was done to this pod for this snapshot.
pub(crate) fn record(snapshot: &str, pod: &str, done: &str) -> String {
    format!("echo {done} >> log/{snapshot}-{pod}")
}

/// The hooks of one snapshot: of each pod, what freezes and what thaws it.
pub(crate) async fn create_templates(ctx: &Ctx, snapshot: &str, expiration: Option<i32>) -> Result<()> {
    create_templates_within(ctx, snapshot, expiration, 60).await
}

/// The same, whose PreActions have this many seconds each.
pub(crate) async fn create_templates_within(
    ctx: &Ctx,
    snapshot: &str,
    expiration: Option<i32>,
    seconds: i32,
) -> Result<()> {
    for pod in PODS {
        let template = json!({
            "preAction": shell_within(&record(snapshot, pod, "frozen"), seconds),
            "postAction": shell(&record(snapshot, pod, "thawed")),
            "expirationSeconds": expiration,
        });
        let name = format!("{snapshot}-{pod}");
        let create = async || ctx.create_template(&name, template.clone()).await;
        ctx.when_admitted(&format!("template `{name}` is admitted"), create).await?;
    }
    Ok(())
}

/// A snapshot of the volume with its hooks, as its spec.
pub(crate) fn snapshot(name: &str) -> Value {
    of_data(PODS.map(|pod| with(by(&format!("{name}-{pod}")), mains([pod]))))
}

/// What was done to this pod for this snapshot so far, as another pod that has the volume reads it, or a copy.
pub(crate) async fn recorded(ctx: &Ctx, reader: &str, snapshot: &str, pod: &str) -> Result<Vec<String>> {
    let script = format!("cat log/{snapshot}-{pod} 2>/dev/null || true");
    let lines = ctx.shell(reader, &script).await.context("failed to read the record")?;
    Ok(lines.lines().map(str::to_owned).collect())
}

/// Whatever was frozen is thawed, and nothing was frozen again after that.
pub(crate) async fn is_thawed(ctx: &Ctx, snapshot: &str) -> Result<()> {
    for pod in PODS {
        let lines = recorded(ctx, pod, snapshot, pod).await?;
        let since = lines.iter().position(|line| line == "thawed").unwrap_or_default();
        let holds = lines[since..].iter().all(|line| line == "thawed");
        ensure!(holds, "pod `{pod}` is frozen still, or again: {lines:?}");
    }
    Ok(())
}

/// What was frozen was thawed after that. Of two controllers that both lead for a moment, one may thaw before a PreAction
/// that the other one has begun, which then takes it back itself.
pub(crate) async fn is_thawed_at_last(ctx: &Ctx, snapshot: &str) -> Result<()> {
    for pod in PODS {
        let lines = recorded(ctx, pod, snapshot, pod).await?;
        ensure!(lines.last().is_none_or(|line| line == "thawed"), "pod `{pod}` is frozen still: {lines:?}");
    }
    Ok(())
}

/// If a snapshot is called application-consistent, then the copy in it was cut in the freeze of every pod.
pub(crate) async fn is_honest(ctx: &Ctx, snapshot: &str, status: &ApplicationSnapshotStatus) -> Result<()> {
    match status.consistency {
        Some(Consistency::Application) => {}
        Some(Consistency::Crash) | None => return Ok(()),
    }
    let copy = format!("copy-of-{snapshot}");
    ctx.create(&claim(&copy).restored_from(snapshot).build()).await?;
    ctx.run_pod(recorder_on(ctx, &copy, &copy).build()).await?;
    for pod in PODS {
        let lines = recorded(ctx, &copy, snapshot, pod).await?;
        let frozen = lines.last().is_some_and(|line| line == "frozen");
        ensure!(frozen, "it is called application-consistent, but pod `{pod}` was not frozen in it: {lines:?}");
    }
    ctx.delete_and_see_gone::<Pod>(&copy).await
}
