//! A rollout and its stages, when everything goes well.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Stage, StageState},
    pod_notification::Executor,
    words::{LIFECYCLE, LIFECYCLE_REQUIRED, condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{condition_of, hook, passes, stages, waits},
        rollouts::{History, Web, is_hook, is_live, web},
    },
    deployments::is_rolled_out,
    pods::is_ready,
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::api::ListParams;
use serde_json::json;

pub(crate) async fn hooks_run_at_their_stages_of_a_rolling_update(ctx: Ctx, _: Executor) -> Result<()> {
    let hooks = json!({"pre": waits(), "post": waits()});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2), hooks).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Pre).await?;
    web.serves("v1", 2).await?;
    web.release(Stage::Pre).await?;
    web.hook_runs(Stage::Post).await?;
    web.serves("v2", 2).await?;
    let is_to_pass = |object: &DeploymentLifecycle| {
        condition_of(object, condition::COMPLETE) == Some(("False".to_owned(), reason::POST.to_owned()))
    };
    web.until_lifecycle("says that it is not complete before post has passed", is_to_pass).await?;
    web.release(Stage::Post).await?;
    let completed = web.completed().await?;
    assert_eq!(stages(&completed), [(Stage::Pre, StageState::Succeeded), (Stage::Post, StageState::Succeeded)]);
    assert_eq!(condition_of(&completed, condition::COMPLETE).unwrap_or_default().0, "True");
    assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2"]);
    Ok(())
}

pub(crate) async fn hooks_run_at_their_stages_under_recreate(ctx: Ctx, _: Executor) -> Result<()> {
    let hooks = json!({"pre": waits(), "mid": waits(), "post": waits()});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), hooks).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Pre).await?;
    web.serves("v1", 2).await?;
    web.release(Stage::Pre).await?;
    web.hook_runs(Stage::Mid).await?;
    web.serves("none", 0).await?;
    web.release(Stage::Mid).await?;
    web.hook_runs(Stage::Post).await?;
    web.serves("v2", 2).await?;
    web.release(Stage::Post).await?;
    web.completed().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "mid v2", "post v2"]);
    Ok(())
}

/// Package managers install custom resources last.
pub(crate) async fn a_first_rollout_that_requires_a_lifecycle_is_held_until_there_is_one(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for (strategy, runs) in [("rolling", &["pre v1", "post v1"][..]), ("recreate", &["pre v1", "mid v1", "post v1"])] {
        let required = web(&ctx).replicas(2).annotation(LIFECYCLE, LIFECYCLE_REQUIRED);
        let (required, mid) = match strategy {
            "recreate" => (required.recreate(), Some(passes())),
            _ => (required, None),
        };
        let web = Web::make(&ctx, required.build()).await?;
        web.until("its ReplicaSet is made", |now| (!now.sets.is_empty()).then_some(())).await?;
        web.create_lifecycle(json!({"pre": waits(), "mid": mid, "post": passes()})).await?;
        web.hook_runs(Stage::Pre).await?;
        web.serves("none", 0).await?;
        web.release(Stage::Pre).await?;
        web.completed().await?;
        web.serves("v1", 2).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), runs, "{strategy}");
    }
    Ok(())
}

pub(crate) async fn what_is_adopted_runs_no_hooks_until_its_next_template(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": passes(), "post": passes()})).await?;
    let pods = ctx.api::<Pod>().list(&ListParams::default()).await?.items.len();
    ensure!(pods == 1, "{pods} pods: only its own should be there");
    web.restart().await?;
    web.completed().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v1", "post v1"]);
    Ok(())
}

/// What was under way when it was adopted is nobody's business; what comes after it is.
pub(crate) async fn a_rollout_under_way_when_it_is_adopted_goes_on_without_hooks(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::run(&ctx, web(&ctx).replicas(2).rolling(1, 0)).await?;
    // No new pod counts before it is adopted.
    web.pause().await?;
    web.roll_to("v2").await?;
    web.write(json!({"spec": {"paused": null, "minReadySeconds": 500}})).await?;
    web.until("a new pod is made", |now| (now.pods.len() == 3).then_some(())).await?;
    web.adopt(json!({"pre": passes(), "post": passes()})).await?;
    web.count_new_pods().await?;
    web.serves("v2", 2).await?;
    web.roll_to("v3").await?;
    web.completed().await?;
    web.serves("v3", 2).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v3", "post v3"]);
    Ok(())
}

pub(crate) async fn hooks_that_are_edited_during_a_rollout_count_from_the_next_one(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": waits(), "post": passes()})).await?;
    web.roll_to("v2").await?;
    web.hook_runs(Stage::Pre).await?;
    web.write_lifecycle(json!({"spec": {"pre": hook("exit 1"), "post": null}})).await?;
    web.release(Stage::Pre).await?;
    web.completed().await?;
    web.write_lifecycle(json!({"spec": {"pre": hook("exit 0")}})).await?;
    web.roll_to("v3").await?;
    web.completed().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2", "pre v3"]);
    Ok(())
}

/// maxSurge 0, then maxUnavailable 0: no pod of the old version goes before pre has passed.
pub(crate) async fn every_bound_of_a_rolling_update_is_kept(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(3).rolling(0, 1), json!({"pre": waits()})).await?;
    let bounds = json!({"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}});
    for (version, before, bounds) in [("v2", "v1", None), ("v3", "v2", Some(bounds))] {
        if let Some(bounds) = bounds {
            web.write(json!({"spec": bounds})).await?;
        }
        web.roll_to(version).await?;
        web.hook_runs(Stage::Pre).await?;
        web.serves(before, 3).await?;
        web.release(Stage::Pre).await?;
        web.completed().await?;
        web.serves(version, 3).await?;
    }
    let deployment = web.story().now().deployment;
    ensure!(deployment.as_ref().is_some_and(is_rolled_out), "{deployment:?}");
    let history = web.finish().await?;
    assert_eq!(history.runs(), ["pre v2", "pre v3"]);
    keeps_its_bounds(&history, 3)
}

/// From when all were ready for the first time: never more pods are asked for than may be, nor are fewer ready. Those that
/// are going do not count; and how many there may be is the word of the ReplicaSets, each of which follows at its own pace.
fn keeps_its_bounds(history: &History, replicas: usize) -> Result<()> {
    let mut begun = false;
    for (now, moment) in history.steps() {
        let Some(bounds) = now.deployment.as_ref().and_then(bounds) else { continue };
        let stays = |pod: &&Pod| !is_hook(pod) && is_live(pod) && pod.metadata.deletion_timestamp.is_none();
        let ready = now.pods.values().filter(stays).filter(|pod| is_ready(pod)).count();
        let asked =
            now.sets.values().filter_map(|set| usize::try_from(set.spec.as_ref()?.replicas?).ok()).sum::<usize>();
        begun |= ready == replicas;
        let (surge, unavailable) = bounds;
        let kept = asked <= replicas + surge && ready + unavailable >= replicas;
        ensure!(!begun || kept, "before {}: {asked} asked for, {ready} ready; bounds {bounds:?}", moment.version);
    }
    ensure!(begun, "they were never all ready");
    Ok(())
}

/// maxSurge and maxUnavailable, as numbers.
fn bounds(deployment: &Deployment) -> Option<(usize, usize)> {
    let bounds = deployment.spec.as_ref()?.strategy.as_ref()?.rolling_update.as_ref()?;
    let number = |bound: &Option<IntOrString>| match bound {
        Some(IntOrString::Int(number)) => usize::try_from(*number).ok(),
        Some(IntOrString::String(_)) | None => None,
    };
    Some((number(&bounds.max_surge)?, number(&bounds.max_unavailable)?))
}

/// GitOps applies what is there already, again and again, whatever goes on.
pub(crate) async fn a_manifest_that_is_applied_again_at_every_stage_changes_nothing(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    for recreate in [false, true] {
        let deployment = || web(&ctx).replicas(1).recreate_if(recreate);
        let mut manifest = deployment().build();
        let pod = manifest.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()).context("no template")?;
        let version = pod.containers[0].env.iter_mut().flatten().find(|variable| variable.name == "VERSION");
        version.context("no version")?.value = Some("v2".to_owned());
        let (mut hooks, mut at) = (json!({"pre": waits(), "post": waits()}), vec![Stage::Pre, Stage::Post]);
        if recreate {
            hooks["mid"] = waits();
            at.insert(1, Stage::Mid);
        }
        let mut web = Web::adopted(&ctx, deployment(), hooks).await?;
        web.apply(&manifest).await?;
        for stage in &at {
            web.hook_runs(*stage).await?;
            let generation = web.deployment()?.metadata.generation;
            for _ in 0..3 {
                web.apply(&manifest).await?;
            }
            assert_eq!(ctx.api::<Deployment>().get("web").await?.metadata.generation, generation, "{stage}");
            web.release(*stage).await?;
        }
        web.completed().await?;
        web.serves("v2", 1).await?;
        web.delete_all().await?;
        let expected: Vec<_> = at.iter().map(|stage| format!("{stage} v2")).collect();
        assert_eq!(web.finish().await?.runs(), expected, "recreate: {recreate}");
    }
    Ok(())
}
