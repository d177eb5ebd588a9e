use std::{net::Ipv4Addr, sync::LazyLock, time::Duration};

use boathook_api::{PodNotification, pod_notification::PodNotificationSpec};
use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration,
    },
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::admission::AdmissionResponse,
};
use serde_json::json;
use tokio::{sync::Notify, task::JoinSet};

use super::*;
use crate::{Clock, lease, test_cluster::client_with_kinds};

const DEADLINE: Duration = Duration::from_secs(60);

fn wanted(reach: &Reach) -> Wanted {
    let webhook = ValidatingWebhook {
        name: "actions.boathook.dev".to_owned(),
        client_config: reach.client_config("/actions"),
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec!["boathook.dev".to_owned()]),
            api_versions: Some(vec!["*".to_owned()]),
            resources: Some(vec!["podnotifications".to_owned()]),
            operations: Some(vec!["CREATE".to_owned()]),
            scope: Some("Namespaced".to_owned()),
        }]),
        admission_review_versions: vec!["v1".to_owned()],
        failure_policy: Some("Fail".to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(10),
        namespace_selector: Some(Default::default()),
        object_selector: Some(Default::default()),
        match_conditions: None,
    };
    let metadata = ObjectMeta { name: Some("boathook".to_owned()), ..ObjectMeta::default() };
    let mutating = MutatingWebhookConfiguration { metadata: metadata.clone(), webhooks: None };
    Wanted { validating: ValidatingWebhookConfiguration { metadata, webhooks: Some(vec![webhook]) }, mutating }
}

/// Refuses what is named so, and breaks if that is the name.
async fn review(ask: Ask) -> AdmissionResponse {
    match ask.name.as_str() {
        "refused" => refuse(&ask, 403, "Forbidden", "not this one"),
        "breaks" => panic!("as the name says"),
        "held" => {
            let _told = TellWhenDropped;
            HELD.send_replace(Held::Asked);
            std::future::pending().await
        }
        _ => AdmissionResponse::from(&ask),
    }
}

/// What became of the one request that is held until who asked has gone.
static HELD: LazyLock<watch::Sender<Held>> = LazyLock::new(|| watch::Sender::new(Held::NotYet));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    NotYet,
    Asked,
    Dropped,
}

struct TellWhenDropped;

impl Drop for TellWhenDropped {
    fn drop(&mut self) {
        HELD.send_replace(Held::Dropped);
    }
}

/// A replica that is ready. It runs for the lease until it is notified.
struct Replica {
    readiness: Readiness,
    address: SocketAddr,
    give_way: Arc<Notify>,
}

async fn replica(client: &Client, identity: &str, tasks: &mut JoinSet<()>) -> Replica {
    let options = Options {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        reach: None,
        identity: identity.to_owned(),
        namespace: "default".to_owned(),
    };
    let reviews = Reviews::default().on("/actions", review);
    let webhooks = Webhooks::bind(client.clone(), options, reviews, Arc::default(), wanted).await.unwrap();
    let (candidate, lease) =
        lease::candidate(client.clone(), lease::Options::new("default", identity), Clock::of_the_machine());
    let give_way = Arc::<Notify>::default();
    let told = Arc::clone(&give_way);
    tasks.spawn(candidate.run(async move { told.notified().await }));
    let (readiness, address) = (webhooks.readiness(), webhooks.listener.local_addr().unwrap());
    tasks.spawn(webhooks.run(lease));
    tokio::time::timeout(DEADLINE, readiness.ready()).await.expect("the webhooks do not become ready");
    Replica { readiness, address, give_way }
}

fn notification(name: &str) -> PodNotification {
    let spec: PodNotificationSpec = serde_json::from_value(json!({"podName": "a", "notifier": "b"})).unwrap();
    PodNotification::new(name, spec)
}

async fn create(client: &Client, name: &str) -> kube::Result<PodNotification> {
    Api::namespaced(client.clone(), "default").create(&PostParams::default(), &notification(name)).await
}

#[tokio::test]
async fn a_ready_webhook_is_asked_and_its_words_reach_the_person() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    let Replica { readiness, address, .. } = replica(&client, "a", &mut tasks).await;
    assert!(readiness.is_ready());
    create(&client, "fine").await.unwrap();
    let Err(kube::Error::Api(status)) = create(&client, "refused").await else { panic!("was not refused") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert!(status.message.ends_with("denied the request: not this one"), "{}", status.message);
    // A panic is a failed call, and harms nobody else; nor does one who connects and says nothing.
    let Err(kube::Error::Api(status)) = create(&client, "breaks").await else { panic!("was not refused") };
    assert!(status.message.contains("the webhook panicked"), "{}", status.message);
    let silent = tokio::net::TcpStream::connect(address).await.unwrap();
    create(&client, "fine-too").await.unwrap();
    drop(silent);
    let probes = Api::<PodNotification>::namespaced(client, "default").list(&Default::default()).await.unwrap();
    assert_eq!(probes.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["fine", "fine-too"]);
}

#[tokio::test]
async fn a_review_ends_with_the_request_that_it_is_about() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    replica(&client, "a", &mut tasks).await;
    let mut held = HELD.subscribe();
    let request = tokio::spawn(async move { create(&client, "held").await });
    let asked = tokio::time::timeout(DEADLINE, held.wait_for(|held| *held == Held::Asked)).await;
    drop(asked.expect("the webhook is not asked").unwrap());
    request.abort();
    let dropped = tokio::time::timeout(DEADLINE, held.wait_for(|held| *held == Held::Dropped)).await;
    drop(dropped.expect("the review goes on though nobody waits for it").unwrap());
}

#[tokio::test]
async fn what_someone_deletes_or_changes_is_mended() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    replica(&client, "a", &mut tasks).await;
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let mended = async |change: &str| {
        let condition = kube::runtime::wait::await_condition(
            api.clone(),
            "boathook",
            |found: Option<&ValidatingWebhookConfiguration>| {
                let webhook = found.and_then(|found| found.webhooks.as_ref()).and_then(|all| all.first());
                webhook.is_some_and(|webhook| {
                    let ByteString(bundle) = webhook.client_config.ca_bundle.clone().unwrap_or_default();
                    bundle.starts_with(b"-----BEGIN") && webhook.failure_policy.as_deref() == Some("Fail")
                })
            },
        );
        tokio::time::timeout(DEADLINE, condition).await.unwrap_or_else(|_| panic!("not mended: {change}")).unwrap();
    };
    api.delete("boathook", &DeleteParams::default()).await.unwrap();
    mended("deleted").await;
    for (change, patch) in [
        ("weakened", json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}])),
        ("without a CA", json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}])),
        ("emptied", json!([{"op": "replace", "path": "/webhooks", "value": []}])),
    ] {
        let patch = Patch::<()>::Json(serde_json::from_value(patch).unwrap());
        api.patch("boathook", &PatchParams::default(), &patch).await.unwrap();
        mended(change).await;
    }
    let Err(kube::Error::Api(status)) = create(&client, "refused").await else { panic!("was not refused") };
    assert_eq!(status.code, 403);
}

#[tokio::test]
async fn a_second_replica_adds_its_ca_and_takes_over_when_it_leads() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    let first = replica(&client, "a", &mut tasks).await;
    let second = replica(&client, "b", &mut tasks).await;
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let stored = api.get("boathook").await.unwrap().webhooks.unwrap().remove(0).client_config;
    let ByteString(bundle) = stored.ca_bundle.unwrap();
    assert_eq!(std::str::from_utf8(&bundle).unwrap().matches("BEGIN CERTIFICATE").count(), 2);
    assert_eq!(stored.url.unwrap(), format!("https://{}/actions", first.address), "the leader's");
    first.give_way.notify_one();
    let url = format!("https://{}/actions", second.address);
    let taken_over =
        kube::runtime::wait::await_condition(api, "boathook", move |found: Option<&ValidatingWebhookConfiguration>| {
            let webhooks = found.and_then(|found| found.webhooks.as_ref());
            webhooks.is_some_and(|webhooks| webhooks[0].client_config.url.as_deref() == Some(&url))
        });
    tokio::time::timeout(DEADLINE, taken_over).await.expect("the new leader's address is not there").unwrap();
    create(&client, "fine").await.unwrap();
}
