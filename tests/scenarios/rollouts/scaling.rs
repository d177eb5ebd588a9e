//! Scaling at every stage: it costs no hook, and lets nothing in that is held.

use anyhow::{Context, Result};
use boathook_api::{
    deployment_lifecycle::{RolloutPhase, Stage},
    pod_notification::Executor,
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        lifecycles::{passes, waits},
        rollouts::{BROKEN, Now, Web, is_hook, is_live, web},
    },
    deployments::revision,
};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

pub(crate) async fn scaling_during_pre_is_for_the_old_version(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": waits()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
        for replicas in [4, 1] {
            web.scale(replicas).await?;
            web.serves("v1", usize::try_from(replicas)?).await?;
        }
        web.release(Stage::Pre).await?;
        web.completed().await?;
        web.serves("v2", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn scaling_during_mid_starts_nothing(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), json!({"mid": waits()})).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Mid).await?;
    for replicas in [3, 0, 1] {
        web.scale(replicas).await?;
        web.is_observed().await?;
        web.serves("none", 0).await?;
    }
    web.release(Stage::Mid).await?;
    web.completed().await?;
    web.serves("v2", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["mid v2"]);
    Ok(())
}

pub(crate) async fn scaling_while_pods_are_replaced_goes_on(ctx: Ctx, _: Executor) -> Result<()> {
    for (recreate, more) in [(false, 1), (true, 0)] {
        let deployment = web(&ctx).replicas(2).rolling(1, 0).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes()})).await?;
        web.roll_to(BROKEN).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        for replicas in [4, 1] {
            web.scale(replicas).await?;
            // Versions share what is wanted, and what may be more; how, is the Deployment controller's business.
            web.until(&format!("{replicas} pods and {more} more are wanted"), |now| {
                let wanted = now.sets.values().filter_map(|set| set.spec.as_ref()?.replicas);
                (wanted.sum::<i32>() == replicas + more).then_some(())
            })
            .await?;
        }
        web.roll_to("v3").await?;
        web.completed().await?;
        web.serves("v3", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre broken", "pre v3"], "recreate: {recreate}");
    }
    Ok(())
}

/// With no pods wanted any more, there is nothing left to wait for.
pub(crate) async fn scaling_to_zero_while_pods_are_replaced_completes(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).rolling(1, 0).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes(), "post": passes()})).await?;
        web.roll_to(BROKEN).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        web.scale(0).await?;
        web.completed().await?;
        web.serves("none", 0).await?;
        web.roll_to("v3").await?;
        web.completed().await?;
        web.scale(2).await?;
        web.serves("v3", 2).await?;
        web.delete_all().await?;
        let runs = web.finish().await?.runs();
        assert_eq!(runs, ["pre broken", "post broken", "pre v3", "post v3"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn scaling_during_post_runs_it_once(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"post": waits()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Post).await?;
        for replicas in [4, 0, 1] {
            web.scale(replicas).await?;
            web.serves("v2", usize::try_from(replicas)?).await?;
        }
        web.release(Stage::Post).await?;
        web.completed().await?;
        web.serves("v2", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["post v2"], "recreate: {recreate}");
    }
    Ok(())
}

/// At zero there is nothing to replace, and hooks run all the same; scaled up afterwards, none does.
pub(crate) async fn what_is_scaled_to_zero_rolls_out_with_hooks(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": waits(), "post": passes()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
        web.scale(0).await?;
        web.serves("none", 0).await?;
        web.release(Stage::Pre).await?;
        web.completed().await?;
        web.scale(2).await?;
        web.serves("v2", 2).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2"], "recreate: {recreate}");
    }
    Ok(())
}

/// As `kubectl scale rs`: what is held is not let in by hand, neither the new version nor, while mid runs, the old one.
pub(crate) async fn a_replica_set_scaled_by_hand_stays_held(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), json!({"mid": waits()})).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Mid).await?;
    for of_revision in [1, 2] {
        assert_eq!(scaled_by_hand(&web, of_revision, 1).await?, Some(0), "revision {of_revision}");
    }
    assert_eq!(web.story().now().pods.values().filter(|pod| !is_hook(pod) && is_live(pod)).count(), 0);
    web.release(Stage::Mid).await?;
    web.completed().await?;
    web.serves("v2", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["mid v2"]);
    Ok(())
}

/// The old version stays while it serves; and what is let in may grow, as the Deployment controller might have it.
pub(crate) async fn a_replica_set_scaled_by_hand_moves_only_where_its_rollout_is(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(3).rolling(1, 0), json!({"pre": waits()})).await?;
    web.roll_to(BROKEN).await?;
    web.hook_runs(Stage::Pre).await?;
    assert_eq!(scaled_by_hand(&web, 1, 1).await?, Some(3), "the old version, in pre");
    web.release(Stage::Pre).await?;
    web.until_phase(RolloutPhase::Rolling).await?;
    web.until("a pod is let in", |now| now.sets.values().any(|set| is_of(set, 2, 1)).then_some(())).await?;
    assert_eq!(scaled_by_hand(&web, 2, 2).await?, Some(2), "the new version, let in");
    web.roll_to("v3").await?;
    web.release(Stage::Pre).await?;
    web.completed().await?;
    web.serves("v3", 3).await?;
    assert_eq!(web.finish().await?.runs(), ["pre broken", "pre v3"]);
    Ok(())
}

/// As `kubectl scale rs`; and what came of it.
async fn scaled_by_hand(web: &Web, of_revision: i64, to: i32) -> Result<Option<i32>> {
    let of_it = |now: &Now| now.sets.values().find(|set| revision(*set) == Some(of_revision)).cloned();
    let set = web.until(&format!("there is a revision {of_revision}"), of_it).await?.name_any();
    let patch = Patch::Merge(json!({"spec": {"replicas": to}}));
    let sets = web.ctx().api::<ReplicaSet>();
    sets.patch_scale(&set, &PatchParams::default(), &patch).await?;
    Ok(sets.get(&set).await?.spec.context("no spec")?.replicas)
}

fn is_of(set: &ReplicaSet, of_revision: i64, replicas: i32) -> bool {
    revision(set) == Some(of_revision) && set.spec.as_ref().is_some_and(|spec| spec.replicas == Some(replicas))
}

/// Whoever deletes the Deployment and keeps its pods has a plain ReplicaSet: nobody rolls it out, and nobody holds it.
pub(crate) async fn a_replica_set_whose_deployment_is_gone_is_scaled_by_hand(ctx: Ctx, _: Executor) -> Result<()> {
    let web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": passes()})).await?;
    let set = web.until("its ReplicaSet is there", |now| now.sets.keys().next().cloned()).await?;
    ctx.api::<Deployment>().delete("web", &DeleteParams::orphan()).await?;
    // Its story is of what has an owner.
    let is_orphaned = |set: &ReplicaSet| set.owner_references().is_empty();
    ctx.watch_until(DEADLINE, &set, "is nobody's", is_orphaned).await?;
    let scale = Patch::Merge(json!({"spec": {"replicas": 2}}));
    ctx.api::<ReplicaSet>().patch_scale(&set, &PatchParams::default(), &scale).await?;
    web.serves("v1", 2).await
}
