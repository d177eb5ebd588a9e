//! The gate's marks on a ReplicaSet, its label and its annotation, are Boathook's to write. Another user's change of them
//! is taken back, with a warning: the rest of the request may be the Deployment controller's.

use boathook_api::words::{GATE, LIFECYCLE};
use boathook_runtime::webhook::Ask;
use kube::{ResourceExt, core::admission::AdmissionResponse};
use serde_json::{Value, json};

use super::{deployments::annotated, patched, pointer};

const WARNING: &str = "only Boathook writes the label `boathook.dev/gate` and removes the annotation \
                       `boathook.dev/lifecycle` of a ReplicaSet, so both keep their values: use `boathook rollout` to \
                       retry or skip a stage";

pub(super) fn review(ask: &Ask) -> AdmissionResponse {
    let Some(object) = &ask.object else { return AdmissionResponse::from(ask) };
    let old = ask.old_object.as_ref();
    let mut patch = vec![];
    let path = format!("/metadata/labels/{}", pointer(GATE));
    match (old.and_then(|old| old.labels().get(GATE)), object.labels().get(GATE)) {
        (Some(was), is) if is != Some(was) => {
            if object.metadata.labels.is_none() {
                patch.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
            }
            patch.push(json!({"op": "add", "path": path, "value": was}));
        }
        (None, Some(_)) => patch.push(json!({"op": "remove", "path": path})),
        (Some(_), _) | (None, None) => {}
    }
    let dropped = old.and_then(|old| old.annotations().get(LIFECYCLE));
    if let Some(was) = dropped.filter(|_| !object.annotations().contains_key(LIFECYCLE)) {
        patch.extend(annotated(object, LIFECYCLE, was).as_array().cloned().unwrap_or_default());
    }
    if patch.is_empty() {
        return AdmissionResponse::from(ask);
    }
    let mut answer = patched(ask, Value::Array(patch));
    answer.warnings = Some(vec![WARNING.to_owned()]);
    answer
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{admissionregistration::v1::WebhookClientConfig, apps::v1::ReplicaSet};
    use kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    };

    use super::*;
    use crate::webhooks::test_asks::{ask, client};

    /// The webhook that the API server asks about this change of a held ReplicaSet, where the user `admin` makes it and
    /// no webhook answers.
    async fn asked_about(own: &str, change: Value, subresource: Option<&str>) -> Option<String> {
        let client = client().await;
        let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), "default");
        let (labels, pod) = (json!({"app": "web"}), json!({"containers": [{"name": "web", "image": "web"}]}));
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true});
        let metadata = json!({"name": "web-2", "labels": labels, "annotations": {LIFECYCLE: "managed"},
            "ownerReferences": [owner]});
        let template = json!({"metadata": {"labels": labels}, "spec": pod});
        let spec = json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": template});
        let held = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        sets.create(&PostParams::default(), &held).await.unwrap();
        let unanswered = |path: &str| WebhookClientConfig {
            url: Some(format!("https://127.0.0.1:1{path}")),
            ..WebhookClientConfig::default()
        };
        let configuration = boathook_install::webhooks::mutating(own, unanswered);
        Api::all(client).create(&PostParams::default(), &configuration).await.unwrap();
        let (params, patch) = (PatchParams::default(), Patch::Merge(&change));
        let patched = match subresource {
            Some("status") => sets.patch_status("web-2", &params, &patch).await,
            _ => sets.patch("web-2", &params, &patch).await,
        };
        let error = patched.err()?.to_string();
        let name = error.split('"').find(|part| part.trim_end_matches('\\').ends_with(".boathook.dev"));
        Some(name.unwrap_or_else(|| panic!("{error}")).trim_end_matches('\\').to_owned())
    }

    #[tokio::test]
    async fn only_boathook_writes_marks_without_being_asked() {
        let label = json!({"metadata": {"labels": {GATE: "open.2"}}});
        let annotation = json!({"metadata": {"annotations": {LIFECYCLE: null}}});
        let orphan = json!({"metadata": {"ownerReferences": []}, "spec": {"replicas": 3}});
        for (own, change, expected) in [
            ("boathook", &label, Some("gate-marks")),
            ("boathook", &annotation, Some("gate-marks")),
            ("boathook", &orphan, Some("replica-sets")),
            ("boathook", &json!({"metadata": {"labels": {"team": "db"}}}), None),
            ("admin", &label, None),
            ("admin", &annotation, None),
        ] {
            let asked = asked_about(own, change.clone(), None).await;
            assert_eq!(asked, expected.map(|name| format!("{name}.boathook.dev")), "{own}: {change}");
        }
    }

    /// A write of a ReplicaSet's status stores its labels and annotations too.
    #[tokio::test]
    async fn status_write_is_asked_about_marks() {
        let label = json!({"metadata": {"labels": {GATE: "open.2"}}});
        let annotation = json!({"metadata": {"annotations": {LIFECYCLE: null}}});
        for change in [label, annotation] {
            let asked = asked_about("boathook", change.clone(), Some("status")).await;
            assert_eq!(asked.as_deref(), Some("gate-marks.boathook.dev"), "{change}");
            assert_eq!(asked_about("admin", change, Some("status")).await, None);
        }
        let status = json!({"status": {"replicas": 1}});
        assert_eq!(asked_about("boathook", status, Some("status")).await, None, "the ReplicaSet controller's own");
    }

    fn set(labels: &Value, annotations: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-2", "labels": labels,
            "annotations": annotations}})
    }

    /// The ReplicaSet as it is stored.
    fn stored(new: &Value, old: Option<&Value>) -> Value {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let answer = review(&ask(operation, Some(new.clone()), old.cloned()));
        assert!(answer.allowed);
        let mut stored = new.clone();
        if let Some(patch) = answer.patch {
            assert!(answer.warnings.is_some());
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            json_patch::patch(&mut stored, &patch).unwrap();
        }
        stored["metadata"].clone()
    }

    #[test]
    fn forged_gate_label_is_taken_back() {
        let managed = json!({LIFECYCLE: "managed"});
        let (held, open) = (json!({"app": "web"}), json!({"app": "web", GATE: "open.2"}));
        let (held, open) = (set(&held, &managed), set(&open, &managed));
        assert_eq!(stored(&open, Some(&held)), held["metadata"], "added");
        assert_eq!(stored(&held, Some(&open)), open["metadata"], "removed");
        assert_eq!(stored(&open, None), held["metadata"], "copied from the template of the Deployment");
        let done = set(&json!({"app": "web", GATE: "done.2"}), &managed);
        assert_eq!(stored(&done, Some(&open)), open["metadata"], "changed");
        let bare = json!({"metadata": {"name": "web-2"}, "apiVersion": "apps/v1", "kind": "ReplicaSet"});
        assert_eq!(stored(&bare, Some(&set(&json!({GATE: "done.2"}), &managed)))["labels"], json!({GATE: "done.2"}));
    }

    #[test]
    fn dropped_lifecycle_annotation_is_put_back() {
        let (managed, free) = (set(&json!({}), &json!({LIFECYCLE: "managed"})), set(&json!({}), &json!({})));
        assert_eq!(stored(&free, Some(&managed)), managed["metadata"]);
    }
}
