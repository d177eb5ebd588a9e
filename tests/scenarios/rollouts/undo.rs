//! `kubectl rollout undo`, at every stage: it copies template and annotations of an old ReplicaSet.

use anyhow::Result;
use boathook_api::{
    deployment_lifecycle::{RolloutPhase, Stage},
    pod_notification::Executor,
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{fails, passes, policy, vetoes, waits},
        rollouts::{BROKEN, Web, web},
    },
    deployments::revision,
};
use serde_json::json;

pub(crate) async fn an_undo_during_pre_cancels(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2), json!({"pre": waits()})).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Pre).await?;
    web.undo_last().await?;
    web.cancelled().await?;
    web.serves("v1", 2).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"]);
    Ok(())
}

/// The version whose pre runs has no ReplicaSet yet: the one that serves is undone to by its revision, and a plain undo goes
/// to the one before that.
pub(crate) async fn an_undo_during_pre_of_a_recreate_goes_by_the_versions_that_served(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), json!({"pre": waits()})).await?;
    web.roll_to("v2").await?;
    web.release(Stage::Pre).await?;
    web.completed().await?;
    web.roll_to("v3").await?;
    web.hook_runs(Stage::Pre).await?;
    web.undo_to(2).await?;
    web.cancelled().await?;
    web.serves("v2", 1).await?;
    web.roll_to("v3").await?;
    web.hook_runs(Stage::Pre).await?;
    web.undo_last().await?;
    web.release(Stage::Pre).await?;
    web.completed().await?;
    web.serves("v1", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "pre v3", "pre v3", "pre v1"]);
    Ok(())
}

pub(crate) async fn an_undo_during_mid_is_a_rollout_of_its_own(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web =
        Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), json!({"pre": passes(), "mid": waits()})).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Mid).await?;
    web.undo_last().await?;
    web.release(Stage::Mid).await?;
    web.completed().await?;
    web.serves("v1", 2).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "mid v2", "pre v1", "mid v1"]);
    Ok(())
}

pub(crate) async fn an_undo_while_pods_are_replaced_is_a_rollout_of_its_own(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(3).rolling(1, 1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes()})).await?;
        web.roll_to(BROKEN).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        web.until("a pod of the old version has gone", |now| {
            let old = now.sets.values().find(|set| revision(*set) == Some(1))?;
            old.spec.as_ref().is_some_and(|spec| spec.replicas < Some(3)).then_some(())
        })
        .await?;
        web.undo_last().await?;
        web.completed().await?;
        web.serves("v1", 3).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre broken", "pre v1"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn an_undo_during_post_is_a_rollout_of_its_own(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes(), "post": waits()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Post).await?;
        web.undo_last().await?;
        web.release(Stage::Post).await?;
        web.completed().await?;
        web.serves("v1", 1).await?;
        web.delete_all().await?;
        let runs = web.finish().await?.runs();
        assert_eq!(runs, ["pre v2", "post v2", "pre v1", "post v1"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn an_undo_after_an_abort_cancels(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2), json!({"pre": policy(fails(), "Abort")})).await?;
    web.roll_to("v2").await?;
    web.aborted().await?;
    web.undo_last().await?;
    web.cancelled().await?;
    web.serves("v1", 2).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"]);
    Ok(())
}

/// Nothing runs then: the old version is let in again like any other, through its own hooks.
pub(crate) async fn an_undo_after_an_abort_in_mid_is_a_rollout_of_its_own(ctx: Ctx, _: Executor) -> Result<()> {
    let hooks = json!({"pre": passes(), "mid": policy(vetoes("v2"), "Abort"), "post": passes()});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), hooks).await?;
    web.roll_to("v2").await?;
    web.aborted().await?;
    web.serves("none", 0).await?;
    web.undo_last().await?;
    web.completed().await?;
    web.serves("v1", 2).await?;
    web.says_nothing_of_an_abort().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "mid v2", "pre v1", "mid v1", "post v1"]);
    Ok(())
}

/// The new version serves then, and goes like any other.
pub(crate) async fn an_undo_after_an_abort_in_post_is_a_rollout_of_its_own(ctx: Ctx, _: Executor) -> Result<()> {
    let hooks = json!({"pre": passes(), "post": policy(vetoes("v2"), "Abort")});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), hooks).await?;
    web.roll_to("v2").await?;
    web.aborted().await?;
    web.serves("v2", 2).await?;
    web.undo_last().await?;
    web.completed().await?;
    web.serves("v1", 2).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2", "pre v1", "post v1"]);
    Ok(())
}

/// Its ReplicaSet knows nothing of Boathook: the annotations that come with it must not free the Deployment.
pub(crate) async fn an_undo_to_a_revision_from_before_the_adoption_is_held_too(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::run(&ctx, web(&ctx).replicas(1)).await?;
    web.roll_to("v2").await?;
    web.serves("v2", 1).await?;
    web.adopt(json!({"pre": passes()})).await?;
    web.undo_to(1).await?;
    web.completed().await?;
    web.serves("v1", 1).await?;
    web.roll_to("v3").await?;
    web.completed().await?;
    web.serves("v3", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v1", "pre v3"]);
    Ok(())
}

pub(crate) async fn with_one_revision_kept_rollouts_and_an_undo_are_held(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).history_limit(1), json!({"pre": passes()})).await?;
    for version in ["v2", "v3"] {
        web.roll_to(version).await?;
        web.completed().await?;
    }
    web.until("only one old ReplicaSet is kept", |now| (now.sets.len() == 2).then_some(())).await?;
    web.undo_last().await?;
    web.completed().await?;
    web.serves("v2", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "pre v3", "pre v2"]);
    Ok(())
}
