//! What pods declare: read when a pod is created, so that its author learns of a mistake at once; and never changed
//! afterwards, so that the right to patch a pod is never the right to run commands in it.

use std::collections::{BTreeMap, BTreeSet};

use boathook_api::{
    Declarations,
    declaration::{Mistake, of_annotations},
    words::NOTIFIERS_PREFIX,
};
use boathook_runtime::webhook::{Ask, refuse};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DynamicObject, ObjectMeta},
    core::admission::AdmissionResponse,
};

/// Refuses a new pod with a mistake in its declarations. A controller would only create such a pod again and again, so
/// its pods get a warning: a template that ran before stays able to run.
pub(super) fn review_new_pod(ask: &Ask) -> AdmissionResponse {
    let pod = match ask.object.clone().map(DynamicObject::try_parse::<Pod>) {
        Some(Ok(pod)) => pod,
        // The API server has read it, so it is a pod: newer than we know. Whoever runs its notifiers reads it again.
        Some(Err(_)) | None => return AdmissionResponse::from(ask),
    };
    match Declarations::of_pod(&pod) {
        Ok(_) => AdmissionResponse::from(ask),
        Err(mistake) if is_controlled(&pod.metadata) => warn(ask, &mistake),
        Err(mistake) => refuse(ask, 422, "Invalid", mistake),
    }
}

pub(super) fn is_controlled(metadata: &ObjectMeta) -> bool {
    metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true))
}

/// Yes, with a warning that these declarations cannot be used.
pub(super) fn warn(ask: &Ask, mistake: &Mistake) -> AdmissionResponse {
    let warning = format!("{mistake}: notifications to the pod fail until you fix its template");
    let mut answer = AdmissionResponse::from(ask);
    answer.warnings = Some(vec![warning]);
    answer
}

/// An update, or a binding to a node, leaves the declarations as they are.
pub(super) fn review_change(ask: &Ask) -> AdmissionResponse {
    let declared = |object: &Option<DynamicObject>| -> BTreeMap<String, String> {
        let declared = object.iter().flat_map(|object| of_annotations(object.annotations()));
        declared.map(|(container, text)| (container.to_owned(), text.to_owned())).collect()
    };
    let (before, after) = (declared(&ask.old_object), declared(&ask.object));
    let changed: BTreeSet<&String> =
        before.keys().chain(after.keys()).filter(|container| before.get(*container) != after.get(*container)).collect();
    let Some(container) = changed.first() else { return AdmissionResponse::from(ask) };
    refuse(
        ask,
        403,
        "Forbidden",
        format!(
            "annotation `{NOTIFIERS_PREFIX}{container}` of an existing pod is immutable: change it in the pod's \
             template, or create the pod again"
        ),
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{admissionregistration::v1::WebhookClientConfig, core::v1::ServiceAccount};
    use kube::{Api, api::PostParams};
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::test_asks::{ask, client, unanswered as unanswered_webhook};

    fn pod(annotations: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "annotations": annotations},
            "spec": {"containers": [{"name": "main"}], "initContainers":
                [{"name": "sidecar", "restartPolicy": "Always"}, {"name": "setup"}]}})
    }

    fn created(container: &str, text: &str) -> AdmissionResponse {
        let key = format!("{NOTIFIERS_PREFIX}{container}");
        review_new_pod(&ask("CREATE", Some(pod(json!({key: text}))), None))
    }

    #[tokio::test]
    async fn binding_that_declares_is_asked_about() {
        let client = client().await;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let account = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
        let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
        let bind = async |name: &str, annotations: Value| {
            let mut pod = pod(json!({}));
            pod["metadata"]["name"] = name.into();
            pod["spec"] = json!({"containers": [{"name": "main", "image": "db"}]});
            pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "node"},
                "metadata": {"name": name, "annotations": annotations}});
            pods.create_subresource::<Value, Value>("binding", name, &PostParams::default(), &binding).await
        };
        let declares = || json!({"notifiers.boathook.dev/main": RELOAD});
        bind("before", declares()).await.unwrap();
        assert_eq!(json!(pods.get("before").await.unwrap().metadata.annotations), declares());
        let unanswered = |path: &str| WebhookClientConfig {
            url: Some(format!("https://127.0.0.1:1{path}")),
            ..WebhookClientConfig::default()
        };
        let configuration = boathook_install::webhooks::validating("boathook", unanswered);
        Api::all(client).create(&PostParams::default(), &configuration).await.unwrap();
        let webhook = unanswered_webhook(bind("declares", declares()).await);
        assert_eq!(webhook.as_deref(), Some("declarations-by-binding.boathook.dev"));
        assert_eq!(unanswered_webhook(bind("plain", json!({"note": "a"})).await), None);
    }

    const RELOAD: &str = "[{name: reload, handler: {signal: HUP}}]";

    #[test]
    fn containers_and_sidecars_may_declare_and_others_may_not() {
        assert!(created("main", RELOAD).allowed && created("sidecar", RELOAD).allowed);
        for container in ["setup", "unknown"] {
            let refused = created(container, RELOAD);
            assert!(!refused.allowed && refused.result.message.contains(container), "{}", refused.result.message);
        }
    }

    #[test]
    fn a_mistake_is_told_at_its_place() {
        let refused = created("main", "[{name: reload, handler: {signal: 1}}]");
        assert_eq!((refused.allowed, refused.result.code), (false, 422));
        let message = refused.result.message;
        for words in ["`notifiers.boathook.dev/main`", "entry 0 (`reload`)", "handler.signal"] {
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn broken_pod_of_a_controller_gets_a_warning() {
        let mut broken = pod(json!({"notifiers.boathook.dev/main": "[{name: reload, handler: {signal: 1}}]"}));
        let owner = |controller: bool| json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "db", "uid": "1", "controller": controller}]);
        broken["metadata"]["ownerReferences"] = owner(true);
        let answer = review_new_pod(&ask("CREATE", Some(broken.clone()), None));
        let warnings = answer.warnings.unwrap_or_default();
        assert!(answer.allowed && warnings.len() == 1 && warnings[0].contains("handler.signal"), "{warnings:?}");
        broken["metadata"]["ownerReferences"] = owner(false);
        assert!(!review_new_pod(&ask("CREATE", Some(broken), None)).allowed);
    }

    #[test]
    fn what_is_declared_is_never_changed() {
        let key = "notifiers.boathook.dev/main";
        let changed = |before: Value, after: Value| {
            review_change(&ask("UPDATE", Some(pod(after)), Some(pod(before)))).result.code == 403
        };
        assert!(changed(json!({}), json!({key: RELOAD})), "added");
        assert!(changed(json!({key: RELOAD}), json!({})), "removed");
        assert!(changed(json!({key: RELOAD}), json!({key: "[]"})), "changed");
        assert!(!changed(json!({key: RELOAD, "a": "b"}), json!({key: RELOAD, "a": "c"})), "another one");
        let binding = json!({"metadata": {"name": "db-0", "annotations": {key: RELOAD}}, "target": {"name": "node"}});
        let refused = review_change(&ask("CREATE", Some(binding), None));
        assert!(!refused.allowed && refused.result.message.contains("is immutable"), "{}", refused.result.message);
    }
}
