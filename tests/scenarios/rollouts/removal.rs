//! A lifecycle that goes lets its Deployment go; a Deployment that goes takes its hooks along.

use anyhow::{Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{RolloutPhase, Stage},
    pod_notification::Executor,
    words::{GATE, LIFECYCLE, LIFECYCLE_MANAGED, LIFECYCLE_REQUIRED, condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{condition_of, passes, waits},
        rollouts::{BROKEN, Now, Web, is_managed, web},
    },
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use serde_json::json;

/// What was held goes on without hooks, and nothing of Boathook is left; with a lifecycle again, hooks run again.
async fn let_go_and_adopt_again(mut web: Web, at: Stage) -> Result<()> {
    web.roll_to("v2").await?;
    web.hook_runs(at).await?;
    web.let_go().await?;
    web.serves("v2", 2).await?;
    web.until("nothing of Boathook is left on it", |now| {
        let deployment = now.deployment.as_ref()?;
        let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
        let free = !is_managed(deployment) && conditions.iter().all(|one| one.type_ != condition::LIFECYCLE);
        let mut sets = now.sets.values();
        (free && sets.all(|set| !is_managed(set) && !set.labels().contains_key(GATE))).then_some(())
    })
    .await?;
    web.adopt(json!({"pre": passes(), "post": passes()})).await?;
    web.roll_to("v3").await?;
    web.completed().await?;
    web.serves("v3", 2).await?;
    web.delete_all().await?;
    let runs = web.finish().await?.runs();
    assert_eq!(runs, [&format!("{at} v2"), "pre v3", "post v3"]);
    Ok(())
}

pub(crate) async fn a_lifecycle_deleted_during_pre_lets_go_and_made_again_holds(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let (deployment, hooks) =
            (web(&ctx).replicas(2).recreate_if(recreate), json!({"pre": waits(), "post": passes()}));
        let_go_and_adopt_again(Web::adopted(&ctx, deployment, hooks).await?, Stage::Pre).await?;
    }
    Ok(())
}

pub(crate) async fn a_lifecycle_deleted_during_mid_lets_go_and_made_again_holds(ctx: Ctx, _: Executor) -> Result<()> {
    let web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), json!({"mid": waits()})).await?;
    let_go_and_adopt_again(web, Stage::Mid).await
}

pub(crate) async fn a_lifecycle_deleted_during_post_lets_go_and_made_again_holds(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).recreate_if(recreate);
        let_go_and_adopt_again(Web::adopted(&ctx, deployment, json!({"post": waits()})).await?, Stage::Post).await?;
    }
    Ok(())
}

pub(crate) async fn a_lifecycle_deleted_while_pods_are_replaced_lets_go_and_made_again_holds(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).rolling(1, 0).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes()})).await?;
        web.roll_to(BROKEN).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        web.let_go().await?;
        web.adopt(json!({"pre": passes(), "post": passes()})).await?;
        web.roll_to("v3").await?;
        web.completed().await?;
        web.serves("v3", 2).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre broken", "pre v3", "post v3"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn a_deployment_deleted_during_mid_or_post_takes_its_hook_with_it(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for (at, recreate) in [(Stage::Mid, true), (Stage::Post, false), (Stage::Post, true)] {
        let deployment = web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({at.as_str(): waits()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(at).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), [format!("{at} v2")], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn a_deployment_deleted_while_pods_are_replaced_runs_no_more_hooks(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).rolling(1, 0).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes(), "post": passes()})).await?;
        web.roll_to(BROKEN).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre broken"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn a_deployment_deleted_midway_takes_its_hooks_with_it(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = || web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment(), json!({"pre": waits()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
        ctx.delete_and_see_gone::<Deployment>("web").await?;
        web.until("its pods are gone, those of hooks too", |now| now.pods.is_empty().then_some(())).await?;
        let waits = |object: &DeploymentLifecycle| {
            let missing = ("False".to_owned(), reason::DEPLOYMENT_NOT_FOUND.to_owned());
            condition_of(object, condition::ACCEPTED) == Some(missing)
        };
        web.until_lifecycle("says that its Deployment is missing", waits).await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2"]);

        // Another one of the same name is another Deployment.
        let mut web = Web::run(&ctx, deployment()).await?;
        web.expect_adoption();
        web.until("it is adopted", |now| now.deployment.as_ref().filter(|one| is_managed(*one)).map(drop)).await?;
        web.roll_to("v2").await?;
        web.release(Stage::Pre).await?;
        web.completed().await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2"], "recreate: {recreate}");
    }
    Ok(())
}

/// Who replaces a Deployment with a manifest that knows nothing of Boathook does not free it.
pub(crate) async fn a_dropped_annotation_is_put_back(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": passes()})).await?;
    web.write(json!({"metadata": {"annotations": {LIFECYCLE: null}}, "spec": {"minReadySeconds": 1}})).await?;
    let deployment: Deployment = ctx.api().get("web").await?;
    let value = deployment.annotations().get(LIFECYCLE).map(String::as_str);
    ensure!(value == Some(LIFECYCLE_MANAGED), "{value:?}");
    web.roll_to("v2").await?;
    web.completed().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"]);
    Ok(())
}

/// Nobody needs a lifecycle to get back what is held for want of one.
pub(crate) async fn what_requires_a_lifecycle_that_never_comes_can_take_that_back(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let required = web(&ctx).replicas(2).annotation(LIFECYCLE, LIFECYCLE_REQUIRED).recreate_if(recreate);
        let mut web = Web::make(&ctx, required.build()).await?;
        web.until("its ReplicaSet is made", |now| (!now.sets.is_empty()).then_some(())).await?;
        web.serves("none", 0).await?;
        web.write(json!({"metadata": {"annotations": {LIFECYCLE: null}}})).await?;
        web.serves("v1", 2).await?;
        ctx.delete_and_see_gone::<Deployment>("web").await?;
        let none = |now: &Now| (now.pods.is_empty() && now.sets.is_empty()).then_some(());
        web.until("everything of it is gone", none).await?;
        ensure!(web.finish().await?.runs().is_empty(), "hooks ran without a lifecycle");
    }
    Ok(())
}
