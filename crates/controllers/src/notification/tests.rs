//! A Notification of two pods in an API server of its own.

use boathook_decide::notification::Effect;
use futures::StreamExt;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{Pod, ServiceAccount},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        reflector::{self, ObjectRef},
        watcher,
    },
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;
use crate::{
    test_world::{World, world, world_losing_lease},
    webhooks::test_asks::webhooks_answered,
};

const DEADLINE: Duration = Duration::from_secs(600);

fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

async fn create_pod(client: &Client, name: &str) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let metadata = json!({"name": name, "labels": {"app": "web"}});
    let spec = json!({"containers": [{"name": "main", "image": "web"}]});
    pods.create(&PostParams::default(), &read(json!({"metadata": metadata, "spec": spec}))).await.unwrap();
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    pods.patch_status(name, &PatchParams::default(), &running).await.unwrap();
}

/// The Notification `reload` of the pods `web-0` and `web-1`, whose watch tells nothing.
async fn two_pods(world: World) -> (Controller, Api<Notification>) {
    webhooks_answered(&world.client).await;
    two_pods_without_webhooks(world).await
}

async fn two_pods_without_webhooks(World { client, lease, reporter }: World) -> (Controller, Api<Notification>) {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    accounts.create(&PostParams::default(), &read(json!({"metadata": {"name": "default"}}))).await.unwrap();
    for name in ["web-0", "web-1"] {
        create_pod(&client, name).await;
    }
    let api: Api<Notification> = Api::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &reload()).await.unwrap();
    let children = reflector::store().0;
    (Controller { client, lease, enabled: true, children, reporter, made: Made::default() }, api)
}

fn reload() -> Notification {
    Notification::new("reload", read(json!({"selector": {"matchLabels": {"app": "web"}}, "notifier": "reload"})))
}

async fn children(controller: &Controller) -> Vec<PodNotification> {
    let api: Api<PodNotification> = Api::namespaced(controller.client.clone(), "default");
    api.list(&ListParams::default()).await.unwrap().items
}

#[tokio::test]
async fn each_pod_is_notified_once() {
    let (controller, api) = two_pods(world("nothing-is-refused").await).await;
    for _ in 0..2 {
        controller.reconcile(Arc::new(api.get("reload").await.unwrap())).await.unwrap();
    }
    let mut pods: Vec<_> = children(&controller).await.into_iter().map(|child| child.spec.pod_name).collect();
    pods.sort();
    assert_eq!(pods, ["web-0", "web-1"]);
}

#[tokio::test]
async fn notification_of_an_unchecked_author_notifies_no_pod() {
    let (controller, api) = two_pods_without_webhooks(world("nothing-is-refused").await).await;
    controller.reconcile(Arc::new(api.get("reload").await.unwrap())).await.unwrap();
    assert!(children(&controller).await.is_empty());
    let refused = api.get("reload").await.unwrap().status.unwrap();
    let accepted = refused.conditions.iter().find(|one| one.type_ == "Accepted").unwrap();
    assert_eq!((accepted.status.as_str(), accepted.reason.as_str()), ("False", "Refused"));
}

#[tokio::test]
async fn accepted_notification_goes_on_without_its_webhooks() {
    let (controller, api) = two_pods(world("nothing-is-refused").await).await;
    controller.reconcile(Arc::new(api.get("reload").await.unwrap())).await.unwrap();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(controller.client.clone());
    configurations.delete("boathook", &DeleteParams::default()).await.unwrap();
    create_pod(&controller.client, "web-2").await;
    controller.reconcile(Arc::new(api.get("reload").await.unwrap())).await.unwrap();
    assert_eq!(children(&controller).await.len(), 3);
}

#[tokio::test]
async fn lease_lost_at_one_effect_stops_the_next() {
    let (controller, api) = two_pods(world_losing_lease("/podnotifications").await).await;
    let child = |name: &str| {
        let mut child = PodNotification::new(name, read(json!({"podName": name, "notifier": "reload"})));
        child.metadata.namespace = Some("default".to_owned());
        Effect::CreateChild(Box::new(child))
    };
    let object = api.get("reload").await.unwrap();
    let lost = act::act(&controller, &object, vec![child("web-0"), child("web-1")]).await;
    assert!(matches!(lost, Err(act::ActError::LeaseLost)), "{lost:?}");
    assert_eq!(children(&controller).await.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["web-0"]);
}

#[tokio::test]
async fn changed_pod_wakes_the_open_notifications_of_its_namespace() {
    let (controller, _) = two_pods(world("nothing-is-refused").await).await;
    let (store, mut writer) = reflector::store();
    let named = |name: &str, namespace: &str| {
        let mut notification = reload();
        notification.metadata.name = Some(name.to_owned());
        notification.metadata.namespace = Some(namespace.to_owned());
        notification
    };
    let mut complete = named("complete", "default");
    let said = json!({"type": "Complete", "status": "True", "reason": "", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    complete.status = read(json!({"conditions": [said]}));
    for notification in [named("reload", "default"), named("elsewhere", "other"), complete] {
        writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(notification))));
    }
    let mut woken = std::pin::pin!(triggers(controller.client.clone(), store, &Default::default()));
    for _ in ["web-0", "web-1"] {
        let next = timeout(DEADLINE, woken.next()).await.unwrap();
        assert_eq!(next, Some(ObjectRef::new("reload").within("default")));
    }
    create_pod(&controller.client, "web-2").await;
    let next = timeout(DEADLINE, woken.next()).await.unwrap();
    assert_eq!(next, Some(ObjectRef::new("reload").within("default")));
}
