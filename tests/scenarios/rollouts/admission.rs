//! Others have their say when the pod of a hook is made: a mesh adds a container, a quota refuses it.

use anyhow::{Result, ensure};
use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{Stage, StageState},
    pod_notification::Executor,
    words::{HOOK_OF_LABEL, condition, reason},
};
use boathook_tests::{
    Ctx, DEADLINE,
    boathook::{
        lifecycles::{fails, message_of, passes, policy, stage},
        rollouts::{Web, is_hook, short_progress_deadline, web},
    },
    pods::pod,
    poll::Look,
    webhook::{Ask, WebhookServer},
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta},
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
    core::admission::AdmissionResponse,
};
use serde_json::json;

/// The path at which every pod is refused, and how.
const FULL: &str = "/full";
const EXCEEDED: &str = "exceeded quota: hooks, requested: pods=1, used: pods=1, limited: pods=1";

/// What others inject into every pod never ends: the hook is judged by its own container.
pub(crate) async fn a_sidecar_that_never_ends_keeps_no_rollout_waiting(ctx: Ctx, _: Executor) -> Result<()> {
    let (server, path) = mesh(&ctx).await?;
    let mut web =
        Web::adopted(&ctx, web(&ctx).replicas(1).recreate(), json!({"pre": passes(), "mid": passes()})).await?;
    web.roll_to("v2").await?;
    web.completed().await?;
    web.serves("v2", 1).await?;
    let asked = server.asked(&path).into_iter().filter(|ask| !ask.dry_run).count();
    // A create whose answer was late is asked about again.
    ensure!(asked >= 2, "the sidecar was injected {asked} times");
    assert_eq!(web.finish().await?.runs(), ["pre v2", "mid v2"]);
    Ok(())
}

/// It is also its own container that is asked what it wrote.
pub(crate) async fn a_hook_that_fails_beside_a_sidecar_says_why(ctx: Ctx, _: Executor) -> Result<()> {
    let (_server, _) = mesh(&ctx).await?;
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": policy(fails(), "Abort")})).await?;
    web.roll_to("v2").await?;
    let record = stage(&web.aborted().await?, Stage::Pre)?;
    assert_eq!(record.log_tail.as_deref(), Some("no such table\n"), "{record:?}");
    web.until("the sidecar has gone with it", |now| (!now.pods.values().any(is_hook)).then_some(())).await?;
    web.serves("v1", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"]);
    Ok(())
}

/// Why is said at once, and when there is room the rollout goes on by itself.
pub(crate) async fn a_hook_whose_pod_is_refused_says_why_and_goes_on_when_it_is_not(
    ctx: Ctx,
    _: Executor,
) -> Result<()> {
    let server = WebhookServer::start(answer).await?;
    judges_hooks(&ctx, &server, FULL).await?;
    let mut web = Web::adopted(&ctx, web(&ctx).replicas(1), json!({"pre": passes()})).await?;
    web.roll_to("v2").await?;
    web.until_lifecycle("says why the pod was refused", |object| {
        let message = stage(object, Stage::Pre).ok().and_then(|record| record.message);
        message.is_some_and(|message| message.contains(EXCEEDED))
    })
    .await?;
    ctx.event_of::<DeploymentLifecycle>("web", reason::HOOK_POD_REFUSED).await?;
    web.serves("v1", 1).await?;
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(ctx.client());
    configurations.delete(ctx.namespace(), &DeleteParams::default()).await?;
    assert_eq!(stage(&web.completed().await?, Stage::Pre)?.state, StageState::Succeeded);
    web.serves("v2", 1).await?;
    assert_eq!(web.finish().await?.runs(), ["pre v2"]);
    Ok(())
}

pub(crate) async fn a_hook_whose_pod_is_refused_until_its_time_is_over_aborts(ctx: Ctx, _: Executor) -> Result<()> {
    let server = WebhookServer::start(answer).await?;
    judges_hooks(&ctx, &server, FULL).await?;
    let deployment = web(&ctx).replicas(1).progress_deadline(short_progress_deadline()?);
    let mut web = Web::adopted(&ctx, deployment, json!({"pre": passes()})).await?;
    web.roll_to("v2").await?;
    let message = message_of(&web.aborted().await?, condition::FAILED);
    ensure!(message.contains(EXCEEDED), "it does not say why: {message}");
    web.serves("v1", 1).await?;
    ensure!(web.finish().await?.runs().is_empty(), "a hook ran that was refused");
    Ok(())
}

/// A mesh that adds a container to the pods of hooks; and the path at which it is asked.
async fn mesh(ctx: &Ctx) -> Result<(WebhookServer, String)> {
    let (server, path) = (WebhookServer::start(answer).await?, format!("/{}", ctx.images().shell));
    judges_hooks(ctx, &server, &path).await?;
    Ok((server, path))
}

/// The path says which image the sidecar has, or that there is no room.
fn answer(path: &str, ask: &Ask) -> AdmissionResponse {
    if path == FULL {
        return AdmissionResponse::from(ask).deny(EXCEEDED);
    }
    let sidecar = json!({"name": "mesh", "image": path.trim_start_matches('/'), "imagePullPolicy": "Never",
        "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 2147483647 & wait"]});
    let patch = serde_json::from_value(json!([{"op": "add", "path": "/spec/containers/-", "value": sidecar}]));
    let answer = patch
        .map_err(|error| error.to_string())
        .and_then(|patch| AdmissionResponse::from(ask).with_patch(patch).map_err(|error| error.to_string()));
    answer.unwrap_or_else(AdmissionResponse::invalid)
}

/// Has the server asked at this path about every pod of a hook, and waits until it is.
async fn judges_hooks(ctx: &Ctx, server: &WebhookServer, path: &str) -> Result<()> {
    let own = [("kubernetes.io/metadata.name".to_owned(), ctx.namespace().to_owned())].into();
    let hooks = LabelSelectorRequirement { key: HOOK_OF_LABEL.to_owned(), operator: "Exists".to_owned(), values: None };
    let webhook = MutatingWebhook {
        name: "hooks.test.boathook.dev".to_owned(),
        client_config: server.client_config(path),
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec![String::new()]),
            api_versions: Some(vec!["v1".to_owned()]),
            resources: Some(vec!["pods".to_owned()]),
            operations: Some(vec!["CREATE".to_owned()]),
            scope: None,
        }]),
        namespace_selector: Some(LabelSelector { match_labels: Some(own), ..LabelSelector::default() }),
        object_selector: Some(LabelSelector { match_expressions: Some(vec![hooks]), ..LabelSelector::default() }),
        admission_review_versions: vec!["v1".to_owned()],
        side_effects: "None".to_owned(),
        timeout_seconds: Some(30),
        ..MutatingWebhook::default()
    };
    let metadata = ObjectMeta { name: Some(ctx.namespace().to_owned()), ..ObjectMeta::default() };
    ctx.create_cluster_scoped(MutatingWebhookConfiguration { metadata, webhooks: Some(vec![webhook]) }).await?;
    let probe = pod("probe", ctx.images().shell).label(HOOK_OF_LABEL, "probe").build();
    let (pods, dry): (Api<Pod>, _) = (ctx.api(), PostParams { dry_run: true, ..PostParams::default() });
    ctx.poll_until(DEADLINE, "the pods of hooks are judged", async || {
        // Refused, or changed: either was decided there.
        let _ = pods.create(&dry, &probe).await;
        let asked = server.asked(path).len();
        Ok(if asked > 0 { Look::Done(()) } else { Look::NotYet("a pod passed unseen".to_owned()) })
    })
    .await
}
