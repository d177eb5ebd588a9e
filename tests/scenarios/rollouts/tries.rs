//! Hooks that fail before they succeed, or never do; and what a person can do about it.

use anyhow::{Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Stage, StageState},
    pod_notification::Executor,
    words::{GROUP, ROLLOUT_REQUEST, ROLLOUT_REQUESTED_BY, condition, reason},
};
use boathook_tests::{
    Ctx,
    boathook::{
        lifecycles::{
            FAILS_OR_PASSES, condition_of, fails, hook, message_of, passes, policy, stage, stages,
            succeeds_at_its_third_try, vetoes,
        },
        people::Person,
        rollouts::{Thing, Web, short_progress_deadline, web},
    },
};
use kube::ResourceExt;
use serde_json::json;

pub(crate) async fn a_hook_is_retried_until_it_succeeds(ctx: Ctx, _: Executor) -> Result<()> {
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": succeeds_at_its_third_try()})).await?;
    web.roll_to("v2").await?;
    let record = stage(&web.completed().await?, Stage::Pre)?;
    assert_eq!((record.state, record.failures, record.pods), (StageState::Succeeded, 2, 1), "{record:?}");
    ctx.event_of::<DeploymentLifecycle>("web", reason::HOOK_RUN_FAILED).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "pre v2", "pre v2"]);
    Ok(())
}

/// The failure of the version before is over as soon as there is another.
pub(crate) async fn after_an_abort_a_fixed_template_rolls_out(ctx: Ctx, _: Executor) -> Result<()> {
    for recreate in [false, true] {
        let deployment = web(&ctx).replicas(2).recreate_if(recreate);
        let hooks = json!({"pre": policy(vetoes("v2"), "Abort"), "post": passes()});
        let mut web = Web::adopted(&ctx, deployment, hooks).await?;
        web.roll_to("v2").await?;
        web.aborted().await?;
        web.serves("v1", 2).await?;
        web.roll_to("v3").await?;
        let completed = web.completed().await?;
        assert_eq!(condition_of(&completed, condition::FAILED).unwrap_or_default().0, "False");
        web.serves("v3", 2).await?;
        web.says_nothing_of_an_abort().await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "pre v3", "post v3"], "recreate: {recreate}");
    }
    Ok(())
}

/// No version runs after an abort in mid, until there is one whose hooks pass.
pub(crate) async fn after_an_abort_in_mid_a_fixed_template_rolls_out(ctx: Ctx, _: Executor) -> Result<()> {
    let hooks = json!({"pre": passes(), "mid": policy(vetoes("v2"), "Abort"), "post": passes()});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2).recreate(), hooks).await?;
    web.roll_to("v2").await?;
    web.aborted().await?;
    web.serves("none", 0).await?;
    web.roll_to("v3").await?;
    web.completed().await?;
    web.serves("v3", 2).await?;
    web.says_nothing_of_an_abort().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "mid v2", "pre v3", "mid v3", "post v3"]);
    Ok(())
}

pub(crate) async fn a_hook_whose_image_is_missing_says_so_until_its_time_is_over(ctx: Ctx, _: Executor) -> Result<()> {
    let deployment = web(&ctx).replicas(1).progress_deadline(short_progress_deadline()?);
    let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes()})).await?;
    let container =
        json!({"name": "main", "image": "localhost/nowhere:1", "env": [{"name": "VERSION", "value": "v2"}]});
    web.write(json!({"spec": {"template": {"spec": {"containers": [container]}}}})).await?;
    let says = |object: &DeploymentLifecycle| {
        let message = stage(object, Stage::Pre).ok().and_then(|record| record.message);
        message.is_some_and(|message| message.contains("localhost/nowhere:1"))
    };
    web.until_lifecycle("names the image that is missing", says).await?;
    let aborted = web.aborted().await?;
    let message = message_of(&aborted, condition::FAILED);
    ensure!(message.contains("localhost/nowhere:1"), "{message}");
    web.serves("v1", 1).await?;
    ensure!(web.finish().await?.runs().is_empty(), "a hook ran without an image");
    Ok(())
}

/// It is ended with its pod, and what it wrote is read before that.
pub(crate) async fn a_hook_that_hangs_says_what_it_wrote_when_its_time_is_over(ctx: Ctx, _: Executor) -> Result<()> {
    let deployment = web(&ctx).replicas(1).progress_deadline(short_progress_deadline()?);
    let hangs = policy(hook("echo waiting for the lock; sleep 2147483647"), "Abort");
    let mut web = Web::adopted(&ctx, deployment, json!({"pre": hangs})).await?;
    web.roll_to("v2").await?;
    let record = stage(&web.aborted().await?, Stage::Pre)?;
    ensure!(record.log_tail.as_deref().is_some_and(|tail| tail.contains("waiting for the lock")), "{record:?}");
    web.serves("v1", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"]);
    Ok(())
}

pub(crate) async fn a_hook_of_a_container_that_is_not_there_fails_at_once(ctx: Ctx, _: Executor) -> Result<()> {
    let unknown = json!({"execNewPod": {"containerName": "nobody", "command": ["true"]}});
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": unknown})).await?;
    web.roll_to("v2").await?;
    let message = message_of(&web.aborted().await?, condition::FAILED);
    ensure!(message.contains("`nobody`") && message.contains("containerName"), "{message}");
    web.serves("v1", 1).await?;
    ensure!(web.finish().await?.runs().is_empty(), "a hook ran without a container");
    Ok(())
}

/// Though mid would come when the old version is gone: it is known before.
pub(crate) async fn a_mid_of_a_container_that_is_not_there_fails_while_the_old_version_serves(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    let unknown = json!({"execNewPod": {"containerName": "nobody", "command": ["true"]}});
    let mut web =
        Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), json!({"pre": passes(), "mid": unknown})).await?;
    web.roll_to("v2").await?;
    let aborted = web.aborted().await?;
    let message = message_of(&aborted, condition::FAILED);
    ensure!(message.starts_with("mid ") && message.contains("`nobody` (it has `main`)"), "{message}");
    assert_eq!(stages(&aborted), [(Stage::Mid, StageState::Failed)]);
    web.serves("v1", 1).await?;
    let history = web.finish().await?;
    ensure!(history.runs().is_empty(), "a hook ran: {:?}", history.runs());
    let ended = history.moments().iter().any(|moment| matches!(&moment.thing, Thing::Pod(_)) && moment.gone);
    ensure!(!ended, "a pod of the old version was ended");
    Ok(())
}

/// Who asks is known to admission alone; nobody writes another's name.
async fn asks(person: &Person, what: &str, at: Stage) -> Result<()> {
    let request = json!({"id": format!("{what}-{at}"), "stage": at, "do": what}).to_string();
    let annotations = json!({ROLLOUT_REQUEST: request, ROLLOUT_REQUESTED_BY: "somebody else"});
    let asked: DeploymentLifecycle =
        person.in_force(async || person.patch("web", json!({"metadata": {"annotations": annotations}})).await).await?;
    assert_eq!(asked.annotations().get(ROLLOUT_REQUESTED_BY).map(String::as_str), Some("ahab"));
    Ok(())
}

pub(crate) async fn a_person_has_a_failed_stage_retried(ctx: Ctx, _: Executor) -> Result<()> {
    let ahab = ctx.person("ahab")?;
    ahab.may("lifecycles", GROUP, "deploymentlifecycles", &["patch"]).await?;
    for at in [Stage::Pre, Stage::Mid, Stage::Post] {
        let told = policy(hook(FAILS_OR_PASSES), "Abort");
        let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), json!({at.as_str(): told})).await?;
        web.roll_to("v2").await?;
        web.refuse(at).await?;
        web.aborted().await?;
        asks(&ahab, "Retry", at).await?;
        web.release(at).await?;
        let record = stage(&web.completed().await?, at)?;
        assert_eq!((record.state, record.pods), (StageState::Succeeded, 2), "{record:?}");
        assert_eq!(record.requested_by.as_deref(), Some("ahab"));
        ctx.event_of::<DeploymentLifecycle>("web", reason::RETRIED).await?;
        web.serves("v2", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), [format!("{at} v2"), format!("{at} v2")]);
    }
    Ok(())
}

pub(crate) async fn a_person_has_a_failed_stage_skipped(ctx: Ctx, _: Executor) -> Result<()> {
    let ahab = ctx.person("ahab")?;
    ahab.may("lifecycles", GROUP, "deploymentlifecycles", &["patch"]).await?;
    for at in [Stage::Pre, Stage::Mid, Stage::Post] {
        let hooks = json!({at.as_str(): policy(fails(), "Abort")});
        let mut web = Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), hooks).await?;
        web.roll_to("v2").await?;
        web.aborted().await?;
        asks(&ahab, "Skip", at).await?;
        let record = stage(&web.completed().await?, at)?;
        assert_eq!((record.state, record.requested_by.as_deref()), (StageState::Skipped, Some("ahab")), "{record:?}");
        ctx.event_of::<DeploymentLifecycle>("web", reason::SKIPPED).await?;
        web.serves("v2", 1).await?;
        web.delete_all().await?;
        assert_eq!(web.finish().await?.runs(), [format!("{at} v2")]);
    }
    Ok(())
}
