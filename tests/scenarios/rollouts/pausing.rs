//! A Deployment that is paused: nothing is begun or let in, and what runs goes on.

use anyhow::Result;
use boathook_api::{
    deployment_lifecycle::{RolloutPhase, Stage},
    pod_notification::Executor,
    words::{condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{passes, waits},
        rollouts::{BROKEN, Now, Web, is_hook, version_of_pod, web},
    },
};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

/// Waits until the Deployment says that it waits for the resume.
async fn says_paused(web: &Web) -> Result<()> {
    web.until("it says that it is paused", |now: &Now| {
        let conditions = now.deployment.as_ref()?.status.as_ref()?.conditions.as_ref()?;
        let ours = conditions.iter().find(|one| one.type_ == condition::LIFECYCLE)?;
        (ours.reason.as_deref() == Some(reason::PAUSED)).then_some(())
    })
    .await
}

pub(crate) async fn what_is_paused_begins_nothing(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes(), "post": passes()})).await?;
        web.pause().await?;
        web.roll_to("v2").await?;
        says_paused(&web).await?;
        web.serves("v1", 1).await?;
        assert_eq!(web.story().now().pods.values().filter(|pod| is_hook(pod)).count(), 0);
        web.resume().await?;
        web.completed().await?;
        web.serves("v2", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn what_is_paused_during_pre_is_held_until_the_resume(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(1).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": waits(), "post": passes()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
        web.pause().await?;
        web.release(Stage::Pre).await?;
        says_paused(&web).await?;
        web.serves("v1", 1).await?;
        web.resume().await?;
        web.completed().await?;
        web.serves("v2", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2"], "recreate: {recreate}");
    }
    Ok(())
}

pub(crate) async fn what_is_paused_during_mid_is_held_until_the_resume(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), json!({"mid": waits()})).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Mid).await?;
    web.pause().await?;
    web.release(Stage::Mid).await?;
    says_paused(&web).await?;
    web.serves("none", 0).await?;
    web.resume().await?;
    web.completed().await?;
    web.serves("v2", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["mid v2"]);
    Ok(())
}

/// Whoever pauses and resumes the version that is let in already: no hook runs again.
pub(crate) async fn what_is_paused_while_pods_are_replaced_goes_on_after_the_resume_with_each_hook_once(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(3).rolling(1, 0).recreate_if(recreate);
        // Of Recreate the new ReplicaSet is there before the last hook that holds it has passed.
        let last = if recreate { Stage::Mid } else { Stage::Pre };
        let hooks = json!({last.as_str(): waits(), "post": passes()});
        let mut web = Web::adopted(&ctx, deployment, hooks).await?;
        web.roll_to("v2").await?;
        web.hook_runs(last).await?;
        web.discount_new_pods().await?;
        web.release(last).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        web.until("a new pod is there", |now| now.pods.values().any(is_new_replica).then_some(())).await?;
        web.pause().await?;
        web.count_new_pods().await?;
        web.is_observed().await?;
        web.resume().await?;
        web.completed().await?;
        web.serves("v2", 3).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), [format!("{last} v2"), "post v2".to_owned()], "recreate: {recreate}");
    }
    Ok(())
}

fn is_new_replica(pod: &Pod) -> bool {
    !is_hook(pod) && version_of_pod(pod) == "v2"
}

/// The next version waits for the resume; post, which has begun, does not.
pub(crate) async fn what_is_paused_while_pods_are_replaced_or_during_post_goes_on_as_far_as_it_has_begun(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).rolling(1, 0).recreate_if(recreate);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes(), "post": waits()})).await?;
        web.roll_to(BROKEN).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        web.pause().await?;
        web.roll_to("v2").await?;
        says_paused(&web).await?;
        web.resume().await?;
        web.hook_runs(Stage::Post).await?;
        web.pause().await?;
        web.release(Stage::Post).await?;
        web.completed().await?;
        web.serves("v2", 2).await?;
        web.resume().await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre broken", "pre v2", "post v2"], "recreate: {recreate}");
    }
    Ok(())
}
