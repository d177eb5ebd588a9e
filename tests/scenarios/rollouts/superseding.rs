//! A newer template before a rollout is over: what runs for the older one ends, and the newer one begins with pre.

use anyhow::{Context, Result};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{RolloutOutcome, RolloutPhase, Stage},
    pod_notification::Executor,
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{passes, status, waits},
        rollouts::{BROKEN, Web, is_hook, version_of_pod, web},
    },
};
use serde_json::json;

/// What became of the rollout before this one.
fn before(object: &DeploymentLifecycle) -> Result<RolloutOutcome> {
    let history = status(object).history;
    history.first().map(|past| past.outcome).context("no rollout before it is kept")
}

pub(crate) async fn a_new_template_during_pre_begins_with_its_own_pre(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": waits(), "post": passes()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
        web.roll_to("v3").await?;
        web.release(Stage::Pre).await?;
        assert_eq!(before(&web.completed().await?)?, RolloutOutcome::Superseded);
        web.serves("v3", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "pre v3", "post v3"]);
    }
    Ok(())
}

pub(crate) async fn a_new_template_during_mid_begins_with_its_own_pre(ctx: Ctx, _: Executor) -> Result<()> {
    let hooks = json!({"pre": passes(), "mid": waits(), "post": passes()});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), hooks).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Mid).await?;
    web.roll_to("v3").await?;
    web.release(Stage::Mid).await?;
    assert_eq!(before(&web.completed().await?)?, RolloutOutcome::Superseded);
    web.serves("v3", 2).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "mid v2", "pre v3", "mid v3", "post v3"]);
    Ok(())
}

pub(crate) async fn a_new_template_while_pods_are_replaced_begins_with_its_own_pre(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).rolling(1, 0).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes(), "post": passes()})).await?;
        web.roll_to(BROKEN).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        web.roll_to("v3").await?;
        assert_eq!(before(&web.completed().await?)?, RolloutOutcome::Superseded);
        web.serves("v3", 2).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre broken", "pre v3", "post v3"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn a_new_template_during_post_begins_with_its_own_pre(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes(), "post": waits()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Post).await?;
        web.roll_to("v3").await?;
        web.release(Stage::Post).await?;
        assert_eq!(before(&web.completed().await?)?, RolloutOutcome::Superseded);
        web.serves("v3", 1).await?;
        web.delete_all().await?;
        let runs = web.finish().await?.runs();
        assert_eq!(runs, ["pre v2", "post v2", "pre v3", "post v3"], "recreate: {recreate}");
    }
    Ok(())
}

/// X, Y, X: while pre of Y runs, X has all the pods still, and is what it was.
pub(crate) async fn going_back_during_pre_cancels_and_runs_no_hooks(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": waits(), "post": passes()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
        web.roll_to("v1").await?;
        web.cancelled().await?;
        web.serves("v1", 2).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2"], "recreate: {recreate}");
    }
    Ok(())
}

/// When pods of Y were let in, the way back to X is a rollout like any other.
pub(crate) async fn going_back_while_pods_are_replaced_runs_hooks(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web =
        Web::adopted(&ctx, web(&ctx).replicas(2).rolling(1, 0), json!({"pre": passes(), "post": passes()})).await?;
    web.roll_to(BROKEN).await?;
    web.until("a broken pod is made", |now| {
        let broken = now.pods.values().filter(|pod| version_of_pod(pod) == BROKEN);
        (broken.filter(|pod| !is_hook(pod)).count() == 1).then_some(())
    })
    .await?;
    web.roll_to("v1").await?;
    web.completed().await?;
    web.serves("v1", 2).await?;
    assert_eq!(web.finish().await?.runs(), ["pre broken", "pre v1", "post v1"]);
    Ok(())
}

/// Whatever came between, it was let in and its rollout was not complete: pre has passed for it, post has not.
pub(crate) async fn going_back_to_a_version_whose_post_was_ended_runs_its_post(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let hooks = json!({"pre": waits(), "post": waits()});
        let mut web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate_if(recreate), hooks).await?;
        web.roll_to("v2").await?;
        web.release(Stage::Pre).await?;
        web.hook_runs(Stage::Post).await?;
        web.roll_to("v3").await?;
        web.hook_runs(Stage::Pre).await?;
        web.roll_to("v2").await?;
        web.release(Stage::Post).await?;
        web.completed().await?;
        web.serves("v2", 2).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2", "pre v3", "post v2"], "recreate: {recreate}");
    }
    Ok(())
}
