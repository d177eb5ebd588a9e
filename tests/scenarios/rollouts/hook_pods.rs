//! The pods of hooks: what they are made of, and what may happen to them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Stage, StageState},
    pod_notification::Executor,
    words::reason,
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{stage, waits},
        rollouts::{History, Moment, Now, Thing, Web, hook_stage, is_hook, is_live, template},
    },
    deployments::deployment,
    pods::PodBuilder,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DeleteParams, EvictParams},
};
use serde_json::json;

/// The container's own variables first, then the hook's, which may refer to them; of the volumes only those that are named
/// and there; and no command of the container's.
pub(crate) async fn a_hook_has_what_its_container_has_and_more(ctx: Ctx, _: Executor) -> Result<()> {
    let template = template(&ctx).env("PORT", "80").scratch("cache", "/cache");
    let checks = "[ $ADDRESS = v2:80 ] && [ $PORT = 81 ] && [ -d log ] && [ ! -e /cache/. ]";
    let env = json!([{"name": "ADDRESS", "value": "$(VERSION):$(PORT)"}, {"name": "PORT", "value": "81"}]);
    let exec = json!({"containerName": "main", "command": ["sh"], "args": ["-c", checks], "env": env,
        "volumes": ["log", "nowhere"]});
    let mut web =
        Web::adopted(&ctx, deployment("web", template).replicas(1), json!({"pre": {"execNewPod": exec}})).await?;
    web.roll_to("v2").await?;
    web.completed().await?;
    let history = web.finish().await?;
    let hook = history.moments().iter().find_map(|moment| match &moment.thing {
        Thing::Pod(pod) if hook_stage(pod).is_some() => pod.spec.clone(),
        Thing::Pod(_) | Thing::Deployment(_) | Thing::ReplicaSet(_) | Thing::Lifecycle(_) => None,
    });
    let hook = hook.context("no hook's pod was seen")?;
    let names: Vec<_> = hook.containers[0].env.iter().flatten().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["VERSION", "PORT", "ADDRESS", "PORT"]);
    let volumes: Vec<_> = hook.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect();
    assert_eq!(volumes, ["log"]);
    assert_eq!(history.runs(), ["pre v2"]);
    Ok(())
}

pub(crate) async fn a_hook_whose_pod_is_deleted_runs_again(ctx: Ctx, _: Executor) -> Result<()> {
    for at in [Stage::Pre, Stage::Mid] {
        let (web, lost) = hook_that_waits(&ctx, template(&ctx), at).await?;
        ctx.api::<Pod>().delete(&lost, &DeleteParams::default()).await?;
        let (_, failures) = runs_again(&ctx, web, at).await?;
        assert_eq!(failures, 0, "it was stopped, and has not failed");
    }
    Ok(())
}

/// By the API, which deletes it.
pub(crate) async fn a_hook_whose_pod_is_evicted_runs_again(ctx: Ctx, _: Executor) -> Result<()> {
    for at in [Stage::Pre, Stage::Mid] {
        let (web, lost) = hook_that_waits(&ctx, template(&ctx), at).await?;
        ctx.api::<Pod>().evict(&lost, &EvictParams::default()).await?;
        let (_, failures) = runs_again(&ctx, web, at).await?;
        assert_eq!(failures, 0, "it was stopped, and has not failed");
    }
    Ok(())
}

/// By its node, which ends it and leaves it there, as failed.
pub(crate) async fn a_hook_whose_pod_its_node_evicts_runs_again(ctx: Ctx, _: Executor) -> Result<()> {
    let (web, lost) = hook_that_waits(&ctx, template(&ctx).scratch_at_most("1Mi"), Stage::Pre).await?;
    ctx.shell(&lost, "head -c 4194304 /dev/zero > log/filled").await?;
    let runs_no_more = |now: &Now| now.pods.get(&lost).is_none_or(|pod| !is_live(pod)).then_some(());
    web.until("its node has evicted it", runs_no_more).await?;
    // A kubelet may say that its container has ended before it says why.
    let (history, _) = runs_again(&ctx, web, Stage::Pre).await?;
    let was_evicted = history.moments().iter().any(|moment| match &moment.thing {
        Thing::Pod(pod) => pod.status.as_ref().is_some_and(|status| status.reason.as_deref() == Some("Evicted")),
        Thing::Deployment(_) | Thing::ReplicaSet(_) | Thing::Lifecycle(_) => false,
    });
    ensure!(was_evicted, "no pod was evicted by its node");
    Ok(())
}

/// A rollout whose hook of this stage runs, and the name of its pod; some of its time has passed. Mid is of a Recreate.
async fn hook_that_waits(ctx: &Ctx, template: PodBuilder, at: Stage) -> Result<(Web, String)> {
    let deployment = deployment("web", template).replicas(1).recreate_if(at == Stage::Mid);
    let mut web = Web::adopted(ctx, deployment, json!({at.as_str(): waits()})).await?;
    web.roll_to("v2").await?;
    let pod = web.hook_runs(at).await?.name_any();
    // A pod's time is counted in whole seconds: more than one passes.
    ctx.let_a_second_pass().await?;
    ctx.let_a_second_pass().await?;
    Ok((web, pod))
}

/// What happened, and how often the hook is said to have failed.
async fn runs_again(ctx: &Ctx, web: Web, at: Stage) -> Result<(History, i32)> {
    web.release(at).await?;
    let record = stage(&web.completed().await?, at)?;
    assert_eq!((record.state, record.pods), (StageState::Succeeded, 2), "{record:?}");
    ctx.event_of::<DeploymentLifecycle>("web", reason::HOOK_POD_LOST).await?;
    web.delete_all().await?;
    let history = web.finish().await?;
    assert_eq!(history.runs(), [format!("{at} v2"), format!("{at} v2")]);
    let mut pods = BTreeMap::new();
    for (place, (uid, seconds)) in history.moments().iter().filter_map(deadline_of_hook).enumerate() {
        pods.entry(uid).or_insert((place, seconds));
    }
    let mut pods: Vec<_> = pods.into_values().collect();
    pods.sort_unstable();
    ensure!(matches!(pods[..], [(_, first), (_, second)] if second < first), "the second has what is left: {pods:?}");
    Ok((history, record.failures))
}

/// Which pod of a hook this is about, and how long it may run.
fn deadline_of_hook(moment: &Moment) -> Option<(String, i64)> {
    match &moment.thing {
        Thing::Pod(pod) if is_hook(pod) => Some((pod.uid()?, pod.spec.as_ref()?.active_deadline_seconds?)),
        Thing::Pod(_) | Thing::Deployment(_) | Thing::ReplicaSet(_) | Thing::Lifecycle(_) => None,
    }
}
