use std::{
    net::Ipv4Addr,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use boathook_api::{PodNotification, pod_notification::PodNotificationSpec};
use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook, ValidatingWebhookConfiguration,
        WebhookClientConfig,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::admission::AdmissionResponse,
};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
    task::JoinSet,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring},
};

use super::*;
use crate::{Clock, lease, test_cluster::client_with_kinds};

const DEADLINE: Duration = Duration::from_secs(600);

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
        "forged" => {
            FORGED.fetch_add(1, Ordering::SeqCst);
            AdmissionResponse::from(&ask)
        }
        "held" => {
            let _told = TellWhenDropped;
            HELD.send_replace(Held::Asked);
            std::future::pending().await
        }
        _ => AdmissionResponse::from(&ask),
    }
}

/// How many reviews of the object `forged` had an effect.
static FORGED: AtomicUsize = AtomicUsize::new(0);

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
    replica_with(client, identity, |_| (), tasks).await
}

async fn replica_with(
    client: &Client,
    identity: &str,
    change: impl FnOnce(&mut Webhooks),
    tasks: &mut JoinSet<()>,
) -> Replica {
    let options = Options {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        reach: None,
        identity: identity.to_owned(),
        namespace: "default".to_owned(),
        watches: Watches::default(),
    };
    let reviews = Reviews::default().on("/actions", review);
    let mut webhooks = Webhooks::bind(client.clone(), options, reviews, Arc::default(), wanted).await.unwrap();
    change(&mut webhooks);
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

/// A user who may create PodNotifications in this namespace may use any name.
#[tokio::test]
async fn object_named_like_a_probe_blocks_no_probe() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    create(&client, "webhook-probe").await.unwrap();
    // Fails at once; a replica tries again until the deadline.
    Probe::new(client.clone(), "default", "a".to_owned()).time().await.unwrap();
    replica(&client, "a", &mut tasks).await;
}

#[tokio::test]
async fn leader_replaces_the_token_again_and_again() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    let often = Duration::from_millis(100);
    replica_with(&client, "a", |webhooks| webhooks.keeper.replace_token_every = often, &mut tasks).await;
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    for name in ["fine", "fine-too"] {
        let url = stored(&client).await.url;
        let is_replaced = move |found: Option<&ValidatingWebhookConfiguration>| {
            let webhooks = found.and_then(|found| found.webhooks.as_ref());
            webhooks.is_some_and(|webhooks| webhooks[0].client_config.url != url)
        };
        let replaced = kube::runtime::wait::await_condition(api.clone(), "boathook", is_replaced);
        tokio::time::timeout(DEADLINE, replaced).await.expect("the token is not replaced").unwrap();
        create(&client, name).await.unwrap();
    }
}

/// How the cluster asks the webhook.
async fn stored(client: &Client) -> WebhookClientConfig {
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    api.get("boathook").await.unwrap().webhooks.unwrap().remove(0).client_config
}

/// The path that the API server asks at.
async fn stored_path(client: &Client, address: SocketAddr) -> String {
    let url = stored(client).await.url.unwrap();
    url.strip_prefix(&format!("https://{address}")).unwrap().to_owned()
}

/// The answer to a request that another client than the API server sends, with this path and body.
async fn sent(client: &Client, address: SocketAddr, path: &str, body: &str, length: usize) -> String {
    let ByteString(bundle) = stored(client).await.ca_bundle.unwrap();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&bundle).map(Result::unwrap));
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let exchange = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::from(address.ip());
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all((head + body).as_bytes()).await.unwrap();
        let mut answer = vec![];
        // The end may come without a goodbye.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    };
    tokio::time::timeout(DEADLINE, exchange).await.expect("the server does not answer")
}

fn review_of(name: &str) -> String {
    let ask = json!({"uid": "1", "kind": {"group": "", "version": "v1", "kind": "Any"}, "resource": {"group": "",
        "version": "v1", "resource": "any"}, "name": name, "operation": "CREATE", "userInfo": {}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": ask}).to_string()
}

#[tokio::test]
async fn request_without_the_token_has_no_effect() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    let Replica { address, .. } = replica(&client, "a", &mut tasks).await;
    let (path, body) = (stored_path(&client, address).await, review_of("forged"));
    let wrong = format!("/token-{}/actions", "0".repeat(64));
    let other_webhook = path.replace("/actions", "/others");
    for unproven in ["/actions", "/x/actions", &wrong, "/", &other_webhook] {
        let answer = sent(&client, address, unproven, &body, body.len()).await;
        assert!(answer.starts_with("HTTP/1.1 404") && answer.ends_with("\r\n\r\n"), "{unproven}: {answer}");
    }
    assert_eq!(FORGED.load(Ordering::SeqCst), 0);
    // The answer does not wait for a body.
    let answer = sent(&client, address, "/actions", "", 1 << 20).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let answer = sent(&client, address, &path, &body, body.len()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(FORGED.load(Ordering::SeqCst), 1);
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
async fn object_counts_as_checked_when_the_webhooks_are_ready() {
    let (client, mut tasks) = (client_with_kinds().await, JoinSet::new());
    replica(&client, "a", &mut tasks).await;
    let api = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let configuration = api.get("boathook").await.unwrap();
    let Time(created) = create(&client, "fine").await.unwrap().creation_timestamp().unwrap();
    let Time(installed) = configuration.creation_timestamp().unwrap();
    assert!(was_checked(&configuration, created) && !was_checked(&configuration, installed));
    api.delete("boathook", &DeleteParams::default()).await.unwrap();
    let marked =
        kube::runtime::wait::await_condition(api, "boathook", |found: Option<&ValidatingWebhookConfiguration>| {
            found.is_some_and(|found| since::of(found).is_some())
        });
    let anew = tokio::time::timeout(DEADLINE, marked).await.expect("it is not marked anew").unwrap().unwrap();
    assert!(!was_checked(&anew, created));
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
    assert!(stored.url.unwrap().starts_with(&format!("https://{}/", first.address)), "the leader's");
    let before = stored_path(&client, first.address).await;
    first.give_way.notify_one();
    let url = format!("https://{}/", second.address);
    let taken_over =
        kube::runtime::wait::await_condition(api, "boathook", move |found: Option<&ValidatingWebhookConfiguration>| {
            let webhooks = found.and_then(|found| found.webhooks.as_ref());
            webhooks.is_some_and(|webhooks| webhooks[0].client_config.url.as_ref().unwrap().starts_with(&url))
        });
    tokio::time::timeout(DEADLINE, taken_over).await.expect("the new leader's address is not there").unwrap();
    // The new leader has replaced the token, and both replicas accept both for a while.
    let (after, body) = (stored_path(&client, second.address).await, review_of("fine"));
    assert_ne!(before, after);
    for address in [first.address, second.address] {
        for path in [&before, &after] {
            let answer = sent(&client, address, path, &body, body.len()).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    create(&client, "fine").await.unwrap();
}
