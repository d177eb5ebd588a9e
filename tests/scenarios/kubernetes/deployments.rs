//! Deployments: how a change of the template becomes a change of the pods, and back.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use boathook_tests::{
    Ctx, DEADLINE,
    deployments::{TEMPLATE_HASH_LABEL, deployment, is_rolled_out, newest, revision},
    exec::exec,
    pods::{PodBuilder, is_ready, is_terminal, pod},
    watch::{Change, Seen},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Pod, PodTemplateSpec},
};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

const PODS: &str = "app=web";
const REPLICAS: i32 = 3;

/// The template's version is in a label, to tell pods apart, and in the environment, for them to say it.
fn version(ctx: &Ctx, version: &str) -> PodBuilder {
    pod("web", ctx.images().shell).idle().label("app", "web").label("version", version).env("VERSION", version)
}

pub(crate) async fn a_rolling_update_keeps_enough_pods_available(ctx: Ctx) -> Result<()> {
    ctx.create(&deployment("web", version(&ctx, "1")).replicas(REPLICAS).rolling(1, 1).build()).await?;
    rolled_out(&ctx).await?;
    let mut pods = ctx.watch::<Pod>(PODS).await?;
    let mut deployments = ctx.watch::<Deployment>("").await?;

    let generation = set_template(&ctx, &version(&ctx, "2").template()).await?;
    let rolled_out = |web: &Deployment| web.metadata.generation == generation && is_rolled_out(web);
    let seen = deployments.until(DEADLINE, "the new template is rolled out", |seen| seen.now.values().all(rolled_out));
    for change in seen.await?.history()? {
        if let Change::Is(Deployment { status: Some(status), .. }) = change {
            let available = status.available_replicas.unwrap_or(0);
            ensure!(available >= REPLICAS - 1, "{available} of {REPLICAS} replicas were available at some moment");
        }
    }
    let seen = pods.until(DEADLINE, "every pod is of the new template and ready", |seen| all_ready(seen, "2")).await?;
    let least = least_ready(seen.history()?, REPLICAS);
    ensure!(least >= REPLICAS - 1, "only {least} of {REPLICAS} pods were ready at some moment, one may be missing");
    all_say(&ctx, "2").await
}

pub(crate) async fn a_recreated_deployment_never_runs_two_templates_at_once(ctx: Ctx) -> Result<()> {
    ctx.create(&deployment("web", version(&ctx, "1")).replicas(REPLICAS).recreate().build()).await?;
    rolled_out(&ctx).await?;
    let mut pods = ctx.watch::<Pod>(PODS).await?;

    set_template(&ctx, &version(&ctx, "2").template()).await?;
    rolled_out(&ctx).await?;

    let seen = pods.until(DEADLINE, "every pod is of the new template and ready", |seen| all_ready(seen, "2")).await?;
    let mut alive = BTreeMap::new();
    for change in seen.history()? {
        match change {
            Change::Is(pod) if !is_terminal(pod) => alive.insert(pod.name_any(), label(pod, "version")),
            Change::Is(pod) | Change::Gone(pod) => alive.remove(&pod.name_any()),
        };
        let old = alive.values().filter(|version| **version == Some("1")).count();
        let new = alive.values().filter(|version| **version == Some("2")).count();
        ensure!(old == 0 || new == 0, "{old} old and {new} new pods were there at the same time: {alive:?}");
    }
    all_say(&ctx, "2").await
}

pub(crate) async fn an_undone_rollout_uses_its_old_replica_set_again(ctx: Ctx) -> Result<()> {
    ctx.create(&deployment("web", version(&ctx, "1")).replicas(REPLICAS).rolling(1, 1).build()).await?;
    rolled_out(&ctx).await?;
    let first = replica_sets(&ctx).await?;
    let first = newest(&first).context("no ReplicaSet after the first rollout")?;
    assert_eq!(revision(first), Some(1));
    set_template(&ctx, &version(&ctx, "2").template()).await?;
    rolled_out(&ctx).await?;

    // As kubectl does it: the template of the last revision but one, without the label that the controller added.
    let mut sets = replica_sets(&ctx).await?;
    sets.sort_by_key(revision);
    let [.., previous, _newest] = sets.as_slice() else { anyhow::bail!("no revision to go back to: {sets:?}") };
    let mut template = previous.spec.as_ref().and_then(|spec| spec.template.clone()).context("no template")?;
    let labels = template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut()).context("no labels")?;
    labels.remove(TEMPLATE_HASH_LABEL).context("the controller did not label the template with its hash")?;
    set_template(&ctx, &template).await?;
    let undone = rolled_out(&ctx).await?;

    assert_eq!(revision(&undone), Some(3), "going back is a new revision");
    let sets = replica_sets(&ctx).await?;
    assert_eq!(sets.len(), 2, "no third ReplicaSet was made");
    let again = newest(&sets).context("no ReplicaSet after the undo")?;
    assert_eq!((again.uid(), revision(again)), (first.uid(), Some(3)), "the first ReplicaSet has the new revision");
    assert_eq!(again.spec.as_ref().and_then(|spec| spec.replicas), Some(REPLICAS));
    all_say(&ctx, "1").await
}

/// Waits for the Deployment `web` as `kubectl rollout status` does.
async fn rolled_out(ctx: &Ctx) -> Result<Deployment> {
    ctx.watch_until(DEADLINE, "web", "is rolled out", is_rolled_out).await
}

async fn replica_sets(ctx: &Ctx) -> Result<Vec<ReplicaSet>> {
    Ok(ctx.api::<ReplicaSet>().list(&ListParams::default().labels(PODS)).await?.items)
}

/// Replaces the template as a whole, as kubectl's undo does. Returns the Deployment's new generation.
async fn set_template(ctx: &Ctx, template: &PodTemplateSpec) -> Result<Option<i64>> {
    let patch = serde_json::from_value(json!([{"op": "replace", "path": "/spec/template", "value": template}]))?;
    let patched = ctx.api::<Deployment>().patch("web", &PatchParams::default(), &Patch::Json::<()>(patch)).await;
    Ok(patched.context("failed to change the template")?.metadata.generation)
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.labels().get(key).map(String::as_str)
}

fn all_ready(seen: &Seen<Pod>, version: &str) -> bool {
    let ready = |pod: &Pod| is_ready(pod) && label(pod, "version") == Some(version);
    seen.now.values().filter(|pod| ready(pod)).count() == REPLICAS as usize && seen.now.values().all(ready)
}

/// The least number of pods that were ready and not on their way out, at any moment from when all of them were.
fn least_ready(history: &[Change<Pod>], all: i32) -> i32 {
    let mut ready = BTreeMap::new();
    let counts = history.iter().map(|change| {
        match change {
            Change::Is(pod) => ready.insert(pod.name_any(), is_ready(pod) && pod.metadata.deletion_timestamp.is_none()),
            Change::Gone(pod) => ready.remove(&pod.name_any()),
        };
        ready.values().filter(|ready| **ready).count() as i32
    });
    // The objects of the first list come one after the other, too.
    counts.skip_while(|count| *count < all).min().unwrap_or(0)
}

/// Every pod, once the old ones are gone, runs the template that its label says.
async fn all_say(ctx: &Ctx, version: &str) -> Result<()> {
    let mut pods = ctx.watch::<Pod>(PODS).await?;
    let what = format!("every pod is of template {version} and ready");
    let seen = pods.until(DEADLINE, &what, |seen| all_ready(seen, version)).await?;
    for name in seen.now.keys() {
        let said = exec(["sh", "-c", "echo $VERSION"]).in_pod(ctx, name).await?.success()?;
        assert_eq!(said.trim_end(), version, "pod `{name}`");
    }
    Ok(())
}
