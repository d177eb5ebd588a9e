//! The controller is killed where it stands, in every stage, and another one goes on: each hook has run once, or as often
//! as it failed.

use anyhow::Result;
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{RolloutPhase, Stage},
    pod_notification::Executor,
};
use boathook_tests::{
    Ctx,
    boathook::{
        installation::Installation,
        lifecycles::{succeeds_at_its_third_try, waits},
        process::Process,
        rollouts::{Now, Web, hook_stage, is_hook, is_live, template, web},
    },
    deployments::deployment,
    pods::is_terminal,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

/// The pods of v1 end when they are asked to, those of others when they are told: so a controller can be killed while the
/// old ones end.
const ENDS_WHEN_ASKED: &str = "trap '[ $VERSION != v1 ] || until [ -e log/end ]; do sleep 0.1; done; exit 0' TERM; \
                               sleep 2147483647 & wait";

/// They have this many seconds: more than a new controller takes to lead, on a busy machine. The namespace controller waits
/// for half of it.
const GRACE: i64 = 180;

/// Who is there when the hook ends whose stage the controller was killed in.
#[derive(Clone, Copy)]
enum Ends {
    WithASuccessor,
    WithNobody,
}

pub(crate) async fn killed_in_each_stage_of_a_recreate_each_hook_runs_once(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let mut controller = installation.controller(executor, &[]).await?;
    for ends in [Ends::WithASuccessor, Ends::WithNobody] {
        let name = ends.word();
        let slow = template(&ctx).command(["sh", "-c", ENDS_WHEN_ASKED]).grace(GRACE);
        let deployment = deployment(name, slow).replicas(2).recreate();
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": waits(), "mid": waits(), "post": waits()})).await?;
        web.roll_to("v2").await?;
        controller = killed_in(&web, Stage::Pre, ends, &installation, executor, controller).await?;
        web.until_phase(RolloutPhase::Mid).await?;
        let ending = |now: &Now| now.pods.values().filter(|pod| is_ending(pod)).map(ResourceExt::name_any).collect();
        let old: Vec<_> =
            web.until("both old pods end", |now| Some(ending(now)).filter(|old: &Vec<_>| old.len() == 2)).await?;
        controller = replace(&installation, executor, controller).await?;
        for pod in &old {
            ctx.ask_to_end(pod).await;
        }
        web.hook_runs(Stage::Mid).await?;
        web.discount_new_pods().await?;
        controller = killed_in(&web, Stage::Mid, ends, &installation, executor, controller).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        controller = replace(&installation, executor, controller).await?;
        web.count_new_pods().await?;
        controller = killed_in(&web, Stage::Post, ends, &installation, executor, controller).await?;
        web.completed().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "mid v2", "post v2"]);
    }
    end(&ctx, controller).await
}

pub(crate) async fn killed_in_each_stage_of_a_rolling_update_each_hook_runs_once(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let mut controller = installation.controller(executor, &[]).await?;
    for ends in [Ends::WithASuccessor, Ends::WithNobody] {
        let deployment = deployment(ends.word(), template(&ctx)).replicas(2).rolling(1, 0);
        let mut web = Web::adopted(&ctx, deployment, json!({"pre": waits(), "post": waits()})).await?;
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
        web.discount_new_pods().await?;
        controller = killed_in(&web, Stage::Pre, ends, &installation, executor, controller).await?;
        web.until_phase(RolloutPhase::Rolling).await?;
        controller = replace(&installation, executor, controller).await?;
        web.count_new_pods().await?;
        controller = killed_in(&web, Stage::Post, ends, &installation, executor, controller).await?;
        web.completed().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2"]);
    }
    end(&ctx, controller).await
}

pub(crate) async fn killed_while_a_hook_is_tried_again_it_runs_as_often_as_it_fails(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let mut web = Web::adopted(&ctx, web(&ctx), json!({"pre": succeeds_at_its_third_try()})).await?;
    web.roll_to("v2").await?;
    web.until("pre failed once", |now| {
        let containers = now.pods.values().filter(|pod| is_hook(pod)).filter_map(|pod| pod.status.as_ref());
        let mut containers = containers.flat_map(|status| status.container_statuses.iter().flatten());
        containers.any(|container| container.restart_count > 0 || has_ended_before(container)).then_some(())
    })
    .await?;
    let controller = replace(&installation, executor, controller).await?;
    web.completed().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"; 3]);
    end(&ctx, controller).await
}

/// Kills the controller while the hook of this stage runs, and lets the hook succeed.
async fn killed_in(
    web: &Web,
    stage: Stage,
    ends: Ends,
    installation: &Installation,
    executor: Executor,
    controller: Process,
) -> Result<Process> {
    web.hook_runs(stage).await?;
    match ends {
        Ends::WithASuccessor => {
            let successor = replace(installation, executor, controller).await?;
            web.release(stage).await?;
            Ok(successor)
        }
        Ends::WithNobody => {
            controller.kill().await?;
            web.release(stage).await?;
            web.until(&format!("the hook of {stage} has ended"), |now| {
                let mut hooks = now.pods.values().filter(|pod| hook_stage(pod) == Some(stage.as_str()));
                hooks.any(is_terminal).then_some(())
            })
            .await?;
            installation.bury_leader().await?;
            installation.controller(executor, &[]).await
        }
    }
}

/// Kills it, and starts another one that leads at once.
pub(crate) async fn replace(installation: &Installation, executor: Executor, killed: Process) -> Result<Process> {
    killed.kill().await?;
    installation.bury_leader().await?;
    installation.controller(executor, &[]).await
}

/// Deletes what only a controller lets go, then stops it.
pub(crate) async fn end(ctx: &Ctx, controller: Process) -> Result<()> {
    let_all_go(ctx).await?;
    controller.stop().await
}

/// Deletes every lifecycle, and waits until its Deployment was let go.
pub(crate) async fn let_all_go(ctx: &Ctx) -> Result<()> {
    for lifecycle in ctx.api::<DeploymentLifecycle>().list(&ListParams::default()).await? {
        ctx.delete_and_see_gone::<DeploymentLifecycle>(&lifecycle.name_any()).await?;
    }
    Ok(())
}

fn is_ending(pod: &Pod) -> bool {
    !is_hook(pod) && is_live(pod) && pod.metadata.deletion_timestamp.is_some()
}

impl Ends {
    fn word(self) -> &'static str {
        match self {
            Self::WithASuccessor => "with-a-successor",
            Self::WithNobody => "with-nobody",
        }
    }
}

fn has_ended_before(container: &ContainerStatus) -> bool {
    container.last_state.as_ref().is_some_and(|last| last.terminated.is_some())
}
