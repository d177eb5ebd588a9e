//! What people have hooks for: a migration while nothing runs, a test suite that vetoes, a call to somebody else's API
//! once for each rollout.

use anyhow::{Context, Result, ensure};
use boathook_api::{
    deployment_lifecycle::{Stage, StageState},
    pod_notification::Executor,
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        lifecycles::{hook, policy, stage},
        recording::recorder_on,
        rollouts::Web,
    },
    claims::claim,
    deployments::deployment,
    exec::exec,
    images::LANTERN,
    pods::pod,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use serde_json::json;
use tokio::sync::watch;

/// So many ask the version that serves, each again as soon as it has its answer.
const ASKERS: usize = 4;

/// A pod of either version writes down on the data when it begins and when it ends, which takes it this long; the
/// migration writes there too.
async fn migrates(ctx: Ctx, seconds: u32) -> Result<()> {
    let serves = format!(
        "echo begin $VERSION >> log/lines; \
         trap 'sleep {seconds}; echo end $VERSION >> log/lines; exit 0' TERM; while true; do sleep 0.1; done"
    );
    ctx.create(&claim("log").build()).await?;
    let template = pod("web", ctx.images().shell).command(["sh", "-c", &serves]).grace(120).env("VERSION", "v1");
    let database = deployment("web", template.mount_claim("log", "/log")).replicas(2).recreate();
    let migration = hook("echo begin migration >> log/lines; sleep 1; echo end migration >> log/lines");
    let mut web = Web::adopted(&ctx, database, json!({"mid": migration})).await?;
    web.roll_to("v2").await?;
    web.completed().await?;
    ctx.run_pod(recorder_on(&ctx, "log", "reader").build()).await?;
    let lines = ctx.recorded("reader").await?;
    let places = |wanted: &str| {
        let found = lines.iter().enumerate().filter(|(_, line)| *line == wanted).map(|(place, _)| place);
        found.collect::<Vec<_>>()
    };
    assert_eq!(places("end v1").len(), 2, "{lines:?}");
    assert_eq!(places("begin v2").len(), 2, "{lines:?}");
    let (began, ended) = (places("begin migration"), places("end migration"));
    assert_eq!((began.len(), ended.len()), (1, 1), "{lines:?}");
    let alone = places("end v1").iter().all(|place| *place < began[0]) && ended[0] == began[0] + 1;
    ensure!(alone && places("begin v2").iter().all(|place| *place > ended[0]), "something ran meanwhile: {lines:?}");
    assert_eq!(web.finish().await?.runs(), ["mid v2"]);
    Ok(())
}

pub(crate) async fn a_migration_runs_when_old_pods_that_take_15_seconds_to_end_have_ended(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    migrates(ctx, 15).await
}

pub(crate) async fn a_migration_runs_while_no_pod_of_either_version_does(ctx: Ctx, _: Executor) -> Result<()> {
    migrates(ctx, 2).await
}

/// The old version answers throughout: before, while its successor is tried, and after that was found wanting.
pub(crate) async fn a_test_suite_vetoes_a_bad_version_while_the_old_one_answers(ctx: Ctx, _: Executor) -> Result<()> {
    const PORT: i32 = 8080;
    let server = pod("web", ctx.images().lantern)
        // On its own address only: on a cluster whose pods share a network, servers must not take each other's port.
        .env_from_field("POD_IP", "status.podIP")
        .env("VERSION", "v1")
        .env("RESULT", "0")
        .command([LANTERN, "serve", &format!("$(POD_IP):{PORT}"), "$(VERSION)"])
        .ready_when_http_answers("/", PORT);
    let suite = json!({"execNewPod": {"containerName": "main", "command": [LANTERN, "exit", "$(RESULT)"]}});
    let hooks = json!({"pre": policy(suite, "Abort")});
    let mut web = Web::adopted(&ctx, deployment("web", server).replicas(1), hooks).await?;
    ctx.run_pod(pod("guest", ctx.images().lantern).build()).await?;
    let address = web.until("its pod has an address", |now| now.pods.values().next()?.status.clone()?.pod_ip).await?;
    let url = format!("http://{address}:{PORT}/");
    let (answered, mut answers) = watch::channel([0; ASKERS]);
    let (over, is_over) = watch::channel(false);
    let asking = try_join_all((0..ASKERS).map(|asker| {
        let (ctx, url, answered, is_over) = (&ctx, &url, &answered, &is_over);
        async move {
            while !*is_over.borrow() {
                let outcome = exec([LANTERN, "get", url]).in_pod(ctx, "guest").await?;
                assert_eq!(outcome.success().context("a request was lost")?.trim_end(), "v1");
                answered.send_modify(|answers| answers[asker] += 1);
            }
            anyhow::Ok(())
        }
    }));
    let rolling = async {
        // All of them ask from before until after it.
        answers.wait_for(|answers| answers.iter().all(|count| *count > 0)).await?;
        let bad = json!([{"name": "VERSION", "value": "bad"}, {"name": "RESULT", "value": "3"}]);
        web.write(json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "env": bad}]}}}})).await?;
        let aborted = web.aborted().await?;
        let record = stage(&aborted, Stage::Pre)?;
        ensure!(
            record.state == StageState::Failed && record.message.is_some_and(|why| why.contains('3')),
            "{aborted:?}"
        );
        web.serves("v1", 1).await?;
        let so_far = *answers.borrow_and_update();
        let each_again = |now: &[usize; ASKERS]| now.iter().zip(so_far).all(|(now, before)| *now > before + 1);
        answers.wait_for(each_again).await?;
        over.send_replace(true);
        Ok(())
    };
    tokio::try_join!(asking, rolling)?;
    web.serves("v1", 1).await?;

    let good = json!([{"name": "VERSION", "value": "v2"}, {"name": "RESULT", "value": "0"}]);
    web.write(json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "env": good}]}}}})).await?;
    web.completed().await?;
    web.serves("v2", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["pre bad", "pre v2"]);
    Ok(())
}

/// The API counts who asks it.
pub(crate) async fn post_calls_an_api_once_for_each_rollout_and_not_when_it_is_scaled(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    const PORT: i32 = 8081;
    let api = pod("api", ctx.images().lantern)
        .env_from_field("POD_IP", "status.podIP")
        .command([LANTERN, "serve", &format!("$(POD_IP):{PORT}"), "noted"])
        .ready_when_http_answers("/", PORT);
    let address = ctx.run_pod(api.build()).await?.status.and_then(|status| status.pod_ip).context("no address")?;
    for strategy in ["rolling", "recreate"] {
        let url = format!("http://{address}:{PORT}/{strategy}/$(VERSION)");
        let calls = json!({"execNewPod": {"containerName": "main", "command": [LANTERN, "get", url]}});
        let template = pod("web", ctx.images().lantern).env("VERSION", "v1");
        let deployment = deployment("web", template).replicas(10).recreate_if(strategy == "recreate");
        let mut web = Web::adopted(&ctx, deployment, json!({"post": calls})).await?;
        web.roll_to("v2").await?;
        web.completed().await?;
        web.scale(15).await?;
        web.serves("v2", 15).await?;
        web.roll_to("v3").await?;
        web.completed().await?;
        ctx.follow_log_until(DEADLINE, "api", &format!("asked for /{strategy}/v3")).await?;
        let log = ctx.api::<Pod>().logs("api", &LogParams::default()).await?;
        let calls: Vec<_> = log.lines().filter(|line| line.contains(strategy)).collect();
        assert_eq!(calls, ["v2", "v3"].map(|version| format!("asked for /{strategy}/{version}")));
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["post v2", "post v3"], "{strategy}");
    }
    Ok(())
}
