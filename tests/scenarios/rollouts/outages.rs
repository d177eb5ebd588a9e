//! Nobody answers for the webhooks, or whoever leads is stopped: what is held stays held and the old version serves, scaling
//! and deleting go on. When somebody is there again, everything completes by itself, with each hook run once.

use std::{fmt::Debug, time::Duration};

use anyhow::{Result, bail, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{RolloutPhase, Stage},
    pod_notification::Executor,
    words::{LIFECYCLE, LIFECYCLE_MANAGED, condition, reason},
};
use boathook_install::webhooks::NAME;
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        api_proxy::{Cut, Fate},
        installation::Installation,
        lifecycles::{condition_of, hook, message_of, passes, waits},
        rollouts::{Now, Web, is_hook, template, version_of_pod, web},
    },
    deployments::deployment,
    measure::Measure,
    pods::is_ready,
    poll::Look,
};
use k8s_openapi::{
    ClusterResourceScope,
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::rollouts::faults::end;

/// What a controller still had to do when it was stopped, it has done by then.
const QUIET: Duration = Duration::from_secs(1);

pub(crate) async fn with_boathook_down_rollouts_hold_and_then_complete_by_themselves(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let (mut idle, mut held) = (adopted(&ctx, "idle").await?, adopted(&ctx, "held").await?);
    let (mut rolls, mut deleted) = (adopted(&ctx, "rolls").await?, adopted(&ctx, "deleted").await?);
    for web in [&mut held, &mut deleted, &mut rolls] {
        web.roll_to("v2").await?;
        web.hook_runs(Stage::Pre).await?;
    }
    // No new pod counts before nobody answers any more: then the first old one is to go.
    rolls.discount_new_pods().await?;
    rolls.release(Stage::Pre).await?;
    rolls.until_phase(RolloutPhase::Rolling).await?;
    let recreate = deployment("recreates", template(&ctx)).replicas(2).recreate();
    let mut recreates = Web::adopted(&ctx, recreate, json!({"mid": waits(), "post": passes()})).await?;
    recreates.roll_to("v2").await?;
    recreates.hook_runs(Stage::Mid).await?;
    controller.kill().await?;

    idle.roll_to("v2").await?;
    held.release(Stage::Pre).await?;
    for web in [&mut idle, &mut held] {
        web.scale(3).await?;
        web.serves("v1", 3).await?;
    }
    rolls.scale(3).await?;
    rolls.count_new_pods().await?;
    ctx.api::<Deployment>().delete(deleted.name(), &DeleteParams::default()).await?;
    deleted.until("it is gone with its pods", |now| now.pods.is_empty().then_some(())).await?;
    recreates.release(Stage::Mid).await?;
    recreates.scale(3).await?;
    let moves = |now: &Now| ready_pods(now, "v1") < 3 || ready_pods(now, "v2") > 0;
    tokio::select! {
        // Nothing is waited for: this is how long nobody answers.
        () = tokio::time::sleep(Measure::from_environment()?.outage()) => {}
        moved = happens(&idle, "the old version goes, or the new one comes", moves) => return moved,
        moved = happens(&held, "the old version goes, or the new one comes", moves) => return moved,
        moved = happens(&recreates, "a version comes", |now| now.pods.values().any(|pod| !is_hook(pod))) => return moved,
        moved = happens(&rolls, "the old version goes", |now| ready_pods(now, "v1") < 2) => return moved,
    }

    installation.bury_leader().await?;
    let controller = installation.controller(executor, &[]).await?;
    idle.release(Stage::Pre).await?;
    for web in [idle, held, rolls] {
        web.completed().await?;
        web.serves("v2", 3).await?;
        assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2"]);
    }
    recreates.completed().await?;
    recreates.serves("v2", 3).await?;
    assert_eq!(recreates.finish().await?.runs(), ["mid v2", "post v2"]);
    assert_eq!(deleted.finish().await?.runs(), ["pre v2"]);
    end(&ctx, controller).await
}

/// Each of two leads until it is stopped past its lease. What the first was about to write then arrives when the other one
/// has written the same.
pub(crate) async fn a_leader_stopped_during_pre_comes_back_and_runs_no_second_hook(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let (first, proxy) = installation.controller_behind_proxy(executor).await?;
    let mut web = Web::adopted(&ctx, web(&ctx), json!({"pre": waits(), "post": passes()})).await?;
    proxy.cut(Cut { of: "POST pods", at: 1, fate: Fate::Late });
    web.roll_to("v2").await?;
    proxy.cut_made().await?;
    first.pause()?;
    let second = installation.controller(executor, &[]).await?;
    web.hook_runs(Stage::Pre).await?;
    proxy.release();
    first.resume()?;
    proxy.quiet_for(QUIET).await?;
    web.release(Stage::Pre).await?;
    web.completed().await?;

    web.roll_to("v3").await?;
    web.hook_runs(Stage::Pre).await?;
    second.pause()?;
    web.release(Stage::Pre).await?;
    web.completed().await?;
    second.resume()?;
    web.roll_to("v4").await?;
    web.release(Stage::Pre).await?;
    web.completed().await?;
    let expected = ["v2", "v3", "v4"].map(|version| [format!("pre {version}"), format!("post {version}")]);
    assert_eq!(web.finish().await?.runs(), expected.concat());
    end(&ctx, first).await?;
    second.stop().await
}

/// Whoever deletes the webhooks' configurations gets them back; and what was accepted before stays accepted, until it is
/// changed.
pub(crate) async fn with_the_webhooks_made_anew_rollouts_go_on_with_their_hooks(
    ctx: Ctx,
    installation: Installation,
    executor: Executor,
) -> Result<()> {
    let controller = installation.controller(executor, &[]).await?;
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(2), json!({"pre": passes(), "post": passes()})).await?;
    made_anew::<ValidatingWebhookConfiguration>(&ctx).await?;
    made_anew::<MutatingWebhookConfiguration>(&ctx).await?;
    the_gate_holds(&ctx).await?;
    web.roll_to("v2").await?;
    web.completed().await?;
    // Hooks that were changed since are another matter: nobody knows any more that their author was checked. What would
    // run them is held until they were written anew.
    web.write_lifecycle(json!({"spec": {"pre": hook("exit 3")}})).await?;
    let is_refused = |object: &DeploymentLifecycle| {
        condition_of(object, condition::ACCEPTED) == Some(("False".to_owned(), reason::REFUSED.to_owned()))
    };
    let refused = web.until_lifecycle("is refused", is_refused).await?;
    let message = message_of(&refused, condition::ACCEPTED);
    ensure!(message.contains("kubectl replace --force"), "it does not say what to do: {message}");
    web.roll_to("v3").await?;
    web.until("the Deployment says why it is held", |now| {
        let conditions = now.deployment.as_ref()?.status.as_ref()?.conditions.as_ref()?;
        let ours = conditions.iter().find(|one| one.type_ == condition::LIFECYCLE)?;
        (ours.reason.as_deref() == Some(reason::REFUSED)).then_some(())
    })
    .await?;
    web.serves("v2", 2).await?;
    web.roll_to("v2").await?;
    web.let_go().await?;
    web.adopt(json!({"pre": passes()})).await?;
    web.roll_to("v3").await?;
    web.completed().await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2", "post v2", "pre v3"]);
    end(&ctx, controller).await
}

/// Deletes Boathook's, until there is another one that was made after the lifecycle. Times of making have whole seconds, and
/// what was made in the same one may have been checked.
async fn made_anew<K>(ctx: &Ctx) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
{
    let all: Api<K> = Api::all(ctx.client());
    let written = ctx.api::<DeploymentLifecycle>().get("web").await?.creation_timestamp();
    ctx.poll_until(DEADLINE, "the webhooks' configuration is made anew", async || {
        let made = all.get_opt(NAME).await?.map(|found| found.creation_timestamp());
        if made.as_ref().is_some_and(|made| *made <= written) {
            all.delete(NAME, &DeleteParams::default()).await?;
        }
        Ok(if made > Some(written.clone()) { Look::Done(()) } else { Look::NotYet(format!("{made:?}")) })
    })
    .await
}

/// Waits until the API server knows of the gate again: a ReplicaSet that would be made has no pods then.
async fn the_gate_holds(ctx: &Ctx) -> Result<()> {
    let labels = json!({"app": "probe"});
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "probe", "uid": "1", "controller": true});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}});
    let probe: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": "probe", "annotations": {LIFECYCLE: LIFECYCLE_MANAGED}, "ownerReferences": [owner]},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }))?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    ctx.poll_until(DEADLINE, "the gate holds", async || {
        let made = ctx.api::<ReplicaSet>().create(&dry_run, &probe).await?;
        let replicas = made.spec.and_then(|spec| spec.replicas);
        Ok(if replicas == Some(0) { Look::Done(()) } else { Look::NotYet(format!("{replicas:?}")) })
    })
    .await
}

async fn adopted(ctx: &Ctx, name: &str) -> Result<Web> {
    let deployment = deployment(name, template(ctx)).replicas(2).rolling(1, 0);
    Web::adopted(ctx, deployment, json!({"pre": waits(), "post": passes()})).await
}

/// Ends only with an error: that this has happened, while nobody answered.
async fn happens(web: &Web, what: &str, holds: impl Fn(&Now) -> bool) -> Result<()> {
    web.story().find(|now| holds(now).then_some(())).await?;
    bail!("`{}`: {what}, while nobody answered", web.name())
}

fn ready_pods(now: &Now, version: &str) -> usize {
    let is_of = |pod: &&Pod| !is_hook(pod) && is_ready(pod) && version_of_pod(pod) == version;
    now.pods.values().filter(is_of).count()
}
