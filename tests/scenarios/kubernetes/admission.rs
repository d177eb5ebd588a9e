//! Admission webhooks on the host: called for what they select, believed in what they answer.
//!
//! The configurations are cluster-scoped but select the scenario's own namespace, so that no other scenario meets them.

use anyhow::{Context, Result, bail, ensure};
use boathook_tests::{
    Ctx, DEADLINE,
    poll::Look,
    webhook::{Ask, WebhookServer},
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
            ValidatingWebhookConfiguration,
        },
        core::v1::ConfigMap,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::{
    Api, ResourceExt,
    api::PostParams,
    core::admission::{AdmissionResponse, Operation},
};
use serde_json::json;

const PATH: &str = "/review";
const WEBHOOK: &str = "review.test.boathook.dev";

pub(crate) async fn a_mutating_webhook_on_the_host_changes_what_it_selects(ctx: Ctx) -> Result<()> {
    let server = WebhookServer::start(|_, ask| match paint(ask) {
        Ok(response) => response,
        Err(error) => AdmissionResponse::invalid(error),
    })
    .await?;
    let webhook = MutatingWebhook {
        name: WEBHOOK.to_owned(),
        client_config: server.client_config(PATH),
        rules: Some(vec![creation_of_config_maps()]),
        namespace_selector: Some(own_namespace(&ctx)),
        match_conditions: Some(vec![unless_anchored()]),
        admission_review_versions: vec!["v1".to_owned()],
        side_effects: "None".to_owned(),
        timeout_seconds: Some(30),
        ..MutatingWebhook::default()
    };
    let configuration = MutatingWebhookConfiguration { metadata: own_name(&ctx), webhooks: Some(vec![webhook]) };
    ctx.create_cluster_scoped(configuration).await?;

    let maps = ctx.api::<ConfigMap>();
    ctx.poll_until(DEADLINE, "the mutating webhook is in force", async || {
        Ok(match tried(&maps, &map("probe")).await? {
            Ok(map) if colour(&map).is_some() => Look::Done(()),
            Ok(_) => Look::NotYet("an object passed unchanged".to_owned()),
            Err(status) => Look::NotYet(status.message),
        })
    })
    .await?;

    let made = ctx.create(&map("buoy")).await?;
    assert_eq!(colour(&made), Some("red"));
    assert_eq!(colour(&maps.get("buoy").await?), Some("red"), "the change is stored");
    let asked = server.asked(PATH);
    let ask = asked.iter().find(|ask| ask.name == "buoy").context("the webhook was not asked about the object")?;
    assert_eq!(ask.operation, Operation::Create);
    assert_eq!(ask.namespace.as_deref(), Some(ctx.namespace()));
    ensure!(!ask.dry_run, "a create came as a dry run");

    // The condition is decided in the API server: the webhook is never asked.
    let anchored = ctx.create(&anchored(map("anchor"))).await?;
    assert_eq!(colour(&anchored), None);
    ensure!(
        server.asked(PATH).iter().all(|ask| ask.name != "anchor"),
        "the webhook was asked in spite of its condition"
    );
    Ok(())
}

pub(crate) async fn a_validating_webhook_on_the_host_denies_in_its_own_words(ctx: Ctx) -> Result<()> {
    let server = WebhookServer::start(|_, ask| deny_wrecks(ask)).await?;
    let webhook = ValidatingWebhook {
        name: WEBHOOK.to_owned(),
        client_config: server.client_config(PATH),
        rules: Some(vec![creation_of_config_maps()]),
        namespace_selector: Some(own_namespace(&ctx)),
        match_conditions: Some(vec![unless_anchored()]),
        admission_review_versions: vec!["v1".to_owned()],
        side_effects: "None".to_owned(),
        timeout_seconds: Some(30),
        ..ValidatingWebhook::default()
    };
    let configuration = ValidatingWebhookConfiguration { metadata: own_name(&ctx), webhooks: Some(vec![webhook]) };
    ctx.create_cluster_scoped(configuration).await?;

    let maps = ctx.api::<ConfigMap>();
    ctx.poll_until(DEADLINE, "the validating webhook is in force", async || {
        Ok(match tried(&maps, &map("wreck")).await? {
            Ok(_) => Look::NotYet("an object passed that is to be denied".to_owned()),
            Err(status) if status.message.contains("denied") => Look::Done(()),
            Err(status) => Look::NotYet(status.message),
        })
    })
    .await?;

    match maps.create(&PostParams::default(), &map("wreck")).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.message, format!("admission webhook \"{WEBHOOK}\" denied the request: no wrecks here"));
            assert_eq!((status.code, status.reason.as_str()), (422, "Shipwrecked"));
        }
        Err(error) => return Err(error).context("failed in another way than by being denied"),
        Ok(_) => bail!("an object was stored that the webhook denies"),
    }
    ensure!(maps.get_opt("wreck").await?.is_none(), "a denied object is there");

    ctx.create(&map("buoy")).await.context("an object was denied that the webhook allows")?;
    ctx.create(&anchored(map("wreck"))).await.context("an object was denied in spite of the condition")?;
    ensure!(server.asked(PATH).iter().any(|ask| ask.name == "buoy"), "an object passed without the webhook");
    Ok(())
}

fn paint(ask: &Ask) -> Result<AdmissionResponse> {
    let patch = json!([{"op": "add", "path": "/data", "value": {"colour": "red"}}]);
    Ok(AdmissionResponse::from(ask).with_patch(serde_json::from_value(patch)?)?)
}

fn deny_wrecks(ask: &Ask) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(ask);
    if ask.name == "wreck" {
        response = response.deny("no wrecks here");
        response.result.code = 422;
        response.result.reason = "Shipwrecked".to_owned();
    }
    response
}

/// What would come of creating it. Webhooks are asked in a dry run too.
async fn tried(maps: &Api<ConfigMap>, map: &ConfigMap) -> Result<Result<ConfigMap, kube::core::Status>> {
    match maps.create(&PostParams { dry_run: true, ..PostParams::default() }, map).await {
        Ok(map) => Ok(Ok(map)),
        Err(kube::Error::Api(status)) => Ok(Err(*status)),
        Err(error) => Err(error).context("a dry run got no answer"),
    }
}

fn map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

fn colour(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("colour").map(String::as_str)
}

fn anchored(mut map: ConfigMap) -> ConfigMap {
    map.labels_mut().insert("anchored".to_owned(), "yes".to_owned());
    map
}

fn unless_anchored() -> MatchCondition {
    let expression = "!has(object.metadata.labels) || !('anchored' in object.metadata.labels)";
    MatchCondition { name: "unless-anchored".to_owned(), expression: expression.to_owned() }
}

fn creation_of_config_maps() -> RuleWithOperations {
    RuleWithOperations {
        api_groups: Some(vec![String::new()]),
        api_versions: Some(vec!["v1".to_owned()]),
        resources: Some(vec!["configmaps".to_owned()]),
        operations: Some(vec!["CREATE".to_owned()]),
        scope: Some("Namespaced".to_owned()),
    }
}

fn own_namespace(ctx: &Ctx) -> LabelSelector {
    let label = ("kubernetes.io/metadata.name".to_owned(), ctx.namespace().to_owned());
    LabelSelector { match_labels: Some([label].into()), ..LabelSelector::default() }
}

fn own_name(ctx: &Ctx) -> ObjectMeta {
    ObjectMeta { name: Some(ctx.namespace().to_owned()), ..ObjectMeta::default() }
}
