//! An application of two pods on one volume, each with a hook of its own: what a hook does, it writes down on the volume,
//! so that a copy of the volume says itself whether it was cut in the freeze.

use anyhow::{Context, Result, bail, ensure};
use boathook_api::{
    ApplicationSnapshot, ExecutionHookTemplate,
    application_snapshot::{ApplicationSnapshotStatus, Consistency},
};
use boathook_tests::{
    Ctx, DEADLINE,
    claims::claim,
    pods::{is_ready, pod},
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};

/// In the order in which they are frozen.
pub(crate) const PODS: [&str; 2] = ["one", "two"];

/// Longer than any freeze here takes, also on a busy machine.
pub(crate) const EXPIRATION: i64 = 60;

/// Starts the pods.
pub(crate) async fn start(ctx: &Ctx) -> Result<()> {
    ctx.create(&claim("data").build()).await?;
    for name in PODS {
        ctx.run_pod(pod(name, ctx.images().shell).idle().mount_claim("data", "/data").build()).await?;
    }
    Ok(())
}

/// A line that a shell appends to the record of this snapshot and pod.
pub(crate) fn record(snapshot: &str, pod: &str, word: &str) -> String {
    format!("echo {word} >> data/{snapshot}-{pod}")
}

/// What freezes a pod for this snapshot, and what thaws it; each says so in the record.
pub(crate) async fn create_templates(ctx: &Ctx, snapshot: &str, expiration: i64) -> Result<()> {
    for pod in PODS {
        let (freeze, thaw) = (record(snapshot, pod, "frozen"), record(snapshot, pod, "thawed"));
        create_template(ctx, &format!("{snapshot}-{pod}"), &freeze, &thaw, expiration).await?;
    }
    Ok(())
}

pub(crate) async fn create_template(ctx: &Ctx, name: &str, freeze: &str, thaw: &str, expiration: i64) -> Result<()> {
    let shell = |script: &str| json!({"exec": {"command": ["sh", "-c", script]}});
    let template: ExecutionHookTemplate = object(
        "ExecutionHookTemplate",
        name,
        json!({"preAction": shell(freeze), "postAction": shell(thaw), "expirationSeconds": expiration}),
    )?;
    ctx.create(&template).await.map(drop)
}

/// Begins a snapshot of the volume, with the hooks that [`create_templates`] made for it.
pub(crate) async fn begin(ctx: &Ctx, name: &str, more: Value) -> Result<()> {
    let info = |pod: &str| {
        let target = json!({"podName": pod, "containerNames": ["main"]});
        json!({"executionHookTemplateName": format!("{name}-{pod}"), "podContainerNamesList": [target]})
    };
    let mut spec = json!({
        "source": {"persistentVolumeClaimName": "data"},
        "executionHookInfos": PODS.map(info),
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    let snapshot: ApplicationSnapshot = object("ApplicationSnapshot", name, spec)?;
    ctx.create(&snapshot).await.map(drop)
}

fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: Value) -> Result<K> {
    let object = json!({
        "apiVersion": "boathook.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    });
    serde_json::from_value(object).with_context(|| format!("{kind} `{name}` has no such spec"))
}

/// Waits until it is over, and returns what it has come to.
pub(crate) async fn ended(ctx: &Ctx, name: &str) -> Result<ApplicationSnapshotStatus> {
    let over = |object: &ApplicationSnapshot| status(object).phase.is_terminal();
    let snapshot = ctx.watch_until(DEADLINE, name, "is Complete or Failed", over).await?;
    Ok(status(&snapshot))
}

pub(crate) fn status(object: &ApplicationSnapshot) -> ApplicationSnapshotStatus {
    object.status.clone().unwrap_or_default()
}

/// What was recorded for this snapshot in this pod so far, in its order.
pub(crate) async fn recorded(ctx: &Ctx, snapshot: &str, pod: &str) -> Result<Vec<String>> {
    read(ctx, pod, snapshot, pod).await
}

async fn read(ctx: &Ctx, reader: &str, snapshot: &str, pod: &str) -> Result<Vec<String>> {
    let script = format!("cat data/{snapshot}-{pod} 2>/dev/null || true");
    let lines = ctx.shell(reader, &script).await.context("failed to read the record")?;
    Ok(lines.lines().map(str::to_owned).collect())
}

/// Whatever was frozen is thawed, and nothing was frozen again after that.
pub(crate) async fn thawed(ctx: &Ctx, snapshot: &str) -> Result<()> {
    for pod in PODS {
        let lines = recorded(ctx, snapshot, pod).await?;
        let thaw = lines.iter().position(|line| line == "thawed");
        let is_over = match thaw {
            Some(thaw) => lines[thaw..].iter().all(|line| line == "thawed"),
            None => lines.is_empty(),
        };
        ensure!(is_over, "pod `{pod}` is frozen still, or again: {lines:?}");
    }
    Ok(())
}

/// If a snapshot is called application-consistent, then a copy that is restored from it was cut in the freeze of every
/// pod: nothing follows the freeze in it.
pub(crate) async fn honest(ctx: &Ctx, snapshot: &str, status: &ApplicationSnapshotStatus) -> Result<()> {
    match status.consistency {
        Some(Consistency::Application) => {}
        Some(Consistency::Crash) | None => return Ok(()),
    }
    let (copy, reader) = (format!("copy-{snapshot}"), format!("reader-{snapshot}"));
    ctx.create(&claim(&copy).restored_from(snapshot).build()).await?;
    let shell = pod(&reader, ctx.images().shell).idle().mount_claim(&copy, "/data").build();
    ctx.create(&shell).await?;
    ctx.watch_until(DEADLINE, &reader, "is ready", is_ready).await?;
    for pod in PODS {
        let lines = read(ctx, &reader, snapshot, pod).await?;
        if lines.last().map(String::as_str) != Some("frozen") {
            bail!("`{snapshot}` is called application-consistent, but pod `{pod}` was not frozen in it: {lines:?}");
        }
    }
    ctx.api::<Pod>().delete(&reader, &DeleteParams::default()).await?;
    Ok(())
}
