//! Deployments whose rollouts have hooks: their annotation stays, and a new rollout does not begin as a failed one.

use boathook_api::{
    DeploymentLifecycle,
    words::{ABORT_PREFIX, HOLDS, LIFECYCLE, condition, reason},
};
use boathook_runtime::{
    error_class::chain,
    in_time,
    webhook::{Ask, refuse},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client, ResourceExt, core::admission::AdmissionResponse};
use serde_json::{Value, json};

use super::{patched, pointer};

/// Puts the annotation back that somebody dropped: only a lifecycle that is deleted lets its Deployment go. If there is
/// none, nobody else would, and whoever had it held takes that back so.
pub(super) async fn review(client: &Client, ask: &Ask) -> AdmissionResponse {
    let dropped = ask.old_object.as_ref().and_then(|old| old.annotations().get(LIFECYCLE));
    let (Some(value), Some(object)) = (dropped, &ask.object) else { return AdmissionResponse::from(ask) };
    let namespace = ask.namespace.as_deref().unwrap_or_default();
    let lifecycles: Api<DeploymentLifecycle> = Api::namespaced(client.clone(), namespace);
    match in_time(lifecycles.get_metadata_opt(&object.name_any())).await {
        Ok(Some(_)) => patched(ask, annotated(object, LIFECYCLE, value)),
        Ok(None) => AdmissionResponse::from(ask),
        Err(error) => {
            let message =
                format!("failed to check whether the Deployment has a DeploymentLifecycle: {}", chain(&error));
            refuse(ask, 500, "InternalError", message)
        }
    }
}

/// The patch that writes an annotation.
pub(super) fn annotated(object: &impl ResourceExt, key: &str, value: &str) -> Value {
    let mut patch = vec![];
    if object.meta().annotations.is_none() {
        patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    patch.push(json!({"op": "add", "path": format!("/metadata/annotations/{}", pointer(key)), "value": value}));
    Value::Array(patch)
}

/// A template has been seen that is not the one whose rollout was aborted: that one's failure is over.
pub(super) fn review_status(ask: &Ask) -> AdmissionResponse {
    let Some(object) = &ask.object else { return AdmissionResponse::from(ask) };
    let conditions = object.data["status"]["conditions"].as_array();
    let ours = |one: &Value| {
        let message = one["message"].as_str().unwrap_or_default();
        one["type"] == condition::PROGRESSING && message.starts_with(ABORT_PREFIX)
    };
    let Some(place) = conditions.and_then(|conditions| conditions.iter().position(ours)) else {
        return AdmissionResponse::from(ask);
    };
    let at = format!("/status/conditions/{place}");
    let now = Time(Timestamp::now());
    patched(
        ask,
        json!([
            {"op": "add", "path": format!("{at}/status"), "value": "True"},
            {"op": "add", "path": format!("{at}/reason"), "value": reason::REPLICA_SET_UPDATED},
            {"op": "add", "path": format!("{at}/message"), "value": HOLDS},
            // By the times of the abort the Deployment controller would take its deadline for missed.
            {"op": "add", "path": format!("{at}/lastUpdateTime"), "value": now},
            {"op": "add", "path": format!("{at}/lastTransitionTime"), "value": now},
        ]),
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::api::{Patch, PatchParams, PostParams};

    use super::*;
    use crate::webhooks::test_asks::{ask, client, client_with_kinds, install_unanswered, unanswered};

    /// A write of a Deployment's status stores its annotations too.
    #[tokio::test]
    async fn every_write_that_drops_the_annotation_is_asked_about() {
        for (own, expected) in [("boathook", Some("deployments.boathook.dev")), ("admin", None)] {
            for is_status in [false, true] {
                let client = client().await;
                let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
                let labels = json!({"app": "web"});
                let pod =
                    json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
                let web = json!({"metadata": {"name": "web", "annotations": {LIFECYCLE: "required"}},
                    "spec": {"selector": {"matchLabels": labels}, "template": pod}});
                deployments.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
                install_unanswered(&client, own).await;
                let (params, drop) = (PatchParams::default(), json!({"metadata": {"annotations": {LIFECYCLE: null}}}));
                let written = match is_status {
                    true => deployments.patch_status("web", &params, &Patch::Merge(&drop)).await,
                    false => deployments.patch("web", &params, &Patch::Merge(&drop)).await,
                };
                assert_eq!(unanswered(written).as_deref(), expected, "as {own}, status: {is_status}");
            }
        }
    }

    #[tokio::test]
    async fn the_annotation_stays_while_there_is_a_lifecycle_and_can_be_taken_back_when_there_is_none() {
        let client = client_with_kinds().await;
        let deployment = |annotations: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "annotations": annotations}});
        let drop = ask("UPDATE", Some(deployment(json!({}))), Some(deployment(json!({LIFECYCLE: "required"}))));
        let answer = review(&client, &drop).await;
        assert!(answer.allowed && answer.patch.is_none(), "{answer:?}");

        let hook = json!({"execNewPod": {"containerName": "web"}});
        let lifecycle = DeploymentLifecycle::new("web", serde_json::from_value(json!({"pre": hook})).unwrap());
        let lifecycles: Api<DeploymentLifecycle> = Api::namespaced(client.clone(), "default");
        lifecycles.create(&PostParams::default(), &lifecycle).await.unwrap();
        let answer = review(&client, &drop).await;
        let patch: Value = serde_json::from_slice(&answer.patch.unwrap()).unwrap();
        assert_eq!((answer.allowed, &patch[0]["value"]), (true, &json!("required")));
    }

    #[test]
    fn an_abort_of_the_template_before_is_over_and_so_is_its_time() {
        let old = "2026-01-01T00:00:00Z";
        let condition = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
            "message": "boathook: pre has failed", "lastUpdateTime": old, "lastTransitionTime": old});
        let status = json!({"conditions": [{"type": "Available"}, condition]});
        let deployment =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": status});
        let answer = review_status(&ask("UPDATE", Some(deployment.clone()), Some(deployment)));
        let patch: Vec<Value> = serde_json::from_slice(&answer.patch.unwrap()).unwrap();
        let value = |field: &str| {
            let path = format!("/status/conditions/1/{field}");
            patch.iter().find(|one| one["path"] == path.as_str()).unwrap()["value"].clone()
        };
        assert_eq!((value("status"), value("reason")), (json!("True"), json!("ReplicaSetUpdated")));
        for field in ["lastUpdateTime", "lastTransitionTime"] {
            assert!(value(field).as_str().unwrap() > old, "{field}");
        }
    }
}
