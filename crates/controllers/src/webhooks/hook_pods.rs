//! Hook pods are Boathook's to create and to change: by their labels it finds them again, and how such a pod ends decides
//! whether a rollout goes on. The API server asks only about other users: the conditions in `install` exclude Boathook itself,
//! and every write that changes neither a label of Boathook nor an image.

use boathook_api::words::HOOK_OF_LABEL;
use boathook_runtime::webhook::{Ask, refuse};
use kube::core::admission::{AdmissionResponse, Operation};

pub(super) fn review(ask: &Ask) -> AdmissionResponse {
    let what_to_do = match ask.operation {
        Operation::Update => "do not change labels, containers or images (to end a hook, delete its pod)",
        Operation::Create | Operation::Delete | Operation::Connect => "remove the label",
    };
    let message = format!("only Boathook creates and changes hook pods (label `{HOOK_OF_LABEL}`): {what_to_do}");
    refuse(ask, 403, "Forbidden", message)
}

#[cfg(test)]
mod tests {
    use boathook_api::words::{ROLLOUT_LABEL, STAGE_LABEL};
    use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
    use kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::test_asks::{ask, client, install_unanswered_validating, unanswered};

    fn read<K: serde::de::DeserializeOwned>(object: Value) -> K {
        serde_json::from_value(object).unwrap()
    }

    /// A pod with these labels, of two containers and an init container.
    fn pod(name: &str, labels: &Value) -> Pod {
        let container = |name: &str| json!({"name": name, "image": "web:1"});
        let spec = json!({"containers": [container("web"), container("injected")],
            "initContainers": [container("init")]});
        let metadata = json!({"name": name, "labels": labels, "finalizers": ["example.com/kept"]});
        read(json!({"metadata": metadata, "spec": spec}))
    }

    fn hook() -> Value {
        json!({HOOK_OF_LABEL: "web", STAGE_LABEL: "mid", ROLLOUT_LABEL: "1"})
    }

    /// The hook pod `hook` and the pod `web`, and webhooks for a Boathook of this user name. None of them answers, and the
    /// user is `admin`.
    async fn cluster(own: &str) -> Client {
        let client = client().await;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        accounts.create(&PostParams::default(), &read(json!({"metadata": {"name": "default"}}))).await.unwrap();
        let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
        for pod in [pod("hook", &hook()), pod("web", &json!({"app": "web"}))] {
            pods.create(&PostParams::default(), &pod).await.unwrap();
        }
        install_unanswered_validating(&client, own).await;
        client
    }

    /// Whether the API server asks about these changes of a pod.
    async fn is_asked(own: &str, name: &str, subresource: Option<&str>, change: &Value) -> bool {
        let pods: Api<Pod> = Api::namespaced(cluster(own).await, "default");
        let (params, patch) = (PatchParams::default(), Patch::Strategic(change));
        let written = match subresource {
            Some(subresource) => pods.patch_subresource(subresource, name, &params, &patch).await,
            None => pods.patch(name, &params, &patch).await,
        };
        is_refused(unanswered(written), "hook-pods")
    }

    fn is_refused(by: Option<String>, webhook: &str) -> bool {
        assert!(by.is_none() || by == Some(format!("{webhook}.boathook.dev")), "{by:?}");
        by.is_some()
    }

    #[tokio::test]
    async fn only_boathook_creates_hook_pods() {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        for (own, params, labels, expected) in [
            ("boathook", PostParams::default(), hook(), true),
            ("boathook", PostParams::default(), json!({HOOK_OF_LABEL: ""}), true),
            ("boathook", PostParams::default(), json!({"app": "web"}), false),
            ("boathook", dry, hook(), false),
            ("admin", PostParams::default(), hook(), false),
        ] {
            let pods: Api<Pod> = Api::namespaced(cluster(own).await, "default");
            let created = unanswered(pods.create(&params, &pod("forged", &labels)).await);
            assert_eq!(is_refused(created, "hook-pods"), expected, "{own}: {labels}, dry run: {}", params.dry_run);
        }
    }

    #[tokio::test]
    async fn only_boathook_changes_labels_and_images_of_a_hook_pod() {
        let labels = |labels: Value| json!({"metadata": {"labels": labels}});
        let image = |list: &str, name: &str| json!({"spec": {list: [{"name": name, "image": "web:2"}]}});
        for (name, subresource, change) in [
            ("hook", None, labels(json!({HOOK_OF_LABEL: null}))),
            ("hook", None, labels(json!({HOOK_OF_LABEL: "other"}))),
            ("hook", None, labels(json!({STAGE_LABEL: "pre"}))),
            ("hook", None, labels(json!({ROLLOUT_LABEL: null}))),
            ("hook", Some("status"), labels(json!({HOOK_OF_LABEL: null}))),
            ("hook", None, image("containers", "web")),
            ("hook", None, image("containers", "injected")),
            ("hook", None, image("initContainers", "init")),
            ("web", None, labels(hook())),
            ("web", Some("status"), labels(json!({HOOK_OF_LABEL: "web"}))),
        ] {
            assert!(is_asked("boathook", name, subresource, &change).await, "{name} {subresource:?}: {change}");
            assert!(!is_asked("admin", name, subresource, &change).await, "by Boathook: {change}");
        }
    }

    #[tokio::test]
    async fn other_writes_of_pods_need_no_webhook() {
        let ended = json!({"name": "web", "image": "web:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0}}});
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"});
        for (name, subresource, change) in [
            ("hook", Some("status"), json!({"status": {"phase": "Succeeded", "containerStatuses": [ended]}})),
            ("hook", None, json!({"metadata": {"finalizers": null}})),
            ("hook", None, json!({"metadata": {"ownerReferences": [owner]}})),
            ("hook", None, json!({"metadata": {"annotations": {"example.com/note": "a"}}})),
            ("hook", None, json!({"metadata": {"labels": {"app": "web"}}})),
            ("hook", None, json!({"spec": {"activeDeadlineSeconds": 1}})),
            ("web", None, json!({"spec": {"containers": [{"name": "web", "image": "web:2"}]}})),
            ("web", None, json!({"metadata": {"labels": {STAGE_LABEL: "mid"}}})),
        ] {
            assert!(!is_asked("boathook", name, subresource, &change).await, "{name} {subresource:?}: {change}");
        }
        let pods: Api<Pod> = Api::namespaced(cluster("boathook").await, "default");
        pods.delete("hook", &DeleteParams::default()).await.unwrap();
    }

    #[tokio::test]
    async fn binding_labels_no_hook_pod() {
        for (own, labels, expected) in [
            ("boathook", json!({HOOK_OF_LABEL: "web"}), true),
            ("boathook", json!({STAGE_LABEL: "mid"}), true),
            ("boathook", json!({"topology.kubernetes.io/zone": "a"}), false),
            ("admin", json!({HOOK_OF_LABEL: "web"}), false),
        ] {
            let pods: Api<Pod> = Api::namespaced(cluster(own).await, "default");
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web", "labels": labels},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "a"}});
            let bound = pods.create_subresource::<_, Value>("binding", "web", &PostParams::default(), &binding).await;
            let bound = unanswered(bound);
            assert_eq!(is_refused(bound, "hook-pods-by-binding"), expected, "{own}: {labels}");
        }
    }

    #[test]
    fn refusal_says_what_to_do() {
        for (operation, advice) in [("CREATE", "remove the label"), ("UPDATE", "delete its pod")] {
            let answer = review(&ask(operation, Some(json!({"metadata": {"name": "a"}})), None));
            let message = &answer.result.message;
            assert!(!answer.allowed && message.contains(HOOK_OF_LABEL) && message.contains(advice), "{answer:?}");
        }
    }
}
