//! Which writes of a rollout are Boathook's, and not the user's, the Deployment controller's or a node's.

use anyhow::Result;
use boathook_api::{
    DeploymentLifecycle,
    words::{GATE, GROUP, HOOK_OF_LABEL, condition},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
    events::v1::Event,
};
use kube::{Client, Resource, ResourceExt, core::DynamicObject, discovery::ApiResource};
use serde_json::Value;

use crate::counted::{Counted, IsOurs, Write};

/// What is written, in the order in which it is counted.
pub(super) const KINDS: [&str; 5] = ["status", "marks", "conditions", "pods", "Events"];

pub(super) async fn begin(client: &Client, namespace: &str) -> Result<Counted> {
    let kinds: Vec<(ApiResource, IsOurs)> = vec![
        (ApiResource::erase::<DeploymentLifecycle>(&()), |_| true),
        (ApiResource::erase::<ReplicaSet>(&()), marks),
        (ApiResource::erase::<Deployment>(&()), says),
        (ApiResource::erase::<Pod>(&()), makes_owns_or_deletes),
        (ApiResource::erase::<Event>(&()), |write| reported_by(write.now)),
    ];
    Counted::begin(client, namespace, kinds).await
}

/// Labels of a ReplicaSet are copied by nobody.
fn marks(write: &Write<'_>) -> bool {
    let mark = |object: &DynamicObject| object.labels().get(GATE).cloned();
    !write.is_gone && write.before.and_then(mark) != mark(write.now)
}

/// Others keep the condition as it is.
fn says(write: &Write<'_>) -> bool {
    let ours = |object: &DynamicObject| {
        let all = object.data.pointer("/status/conditions").and_then(Value::as_array)?;
        all.iter().find(|one| one["type"] == condition::LIFECYCLE).cloned()
    };
    !write.is_gone && write.before.and_then(ours) != ours(write.now)
}

/// Of a hook's pod; what it says of itself is its node's to write.
fn makes_owns_or_deletes(write: &Write<'_>) -> bool {
    let Write { before, now, is_gone } = write;
    if !now.labels().contains_key(HOOK_OF_LABEL) {
        return false;
    }
    before.is_none_or(|before| {
        let was_deleted = before.meta().deletion_timestamp.is_some();
        let is_deleted = *is_gone || now.meta().deletion_timestamp.is_some();
        before.owner_references() != now.owner_references() || was_deleted != is_deleted
    })
}

fn reported_by(event: &DynamicObject) -> bool {
    event.data["reportingController"].as_str().is_some_and(|by| by.starts_with(GROUP))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn is(ours: IsOurs, before: Option<Value>, now: Value, is_gone: bool) -> bool {
        ours(&Write { before: before.map(object).as_ref(), now: &object(now), is_gone })
    }

    #[test]
    fn a_replica_set_is_marked_by_its_label_alone() {
        let held = json!({"metadata": {"annotations": {GATE: "1"}}, "spec": {"replicas": 1}});
        let open = json!({"metadata": {"labels": {GATE: "open.1"}}});
        assert!(is(marks, Some(held.clone()), open.clone(), false));
        assert!(is(marks, Some(open.clone()), held.clone(), false));
        assert!(!is(marks, None, held, false), "the Deployment controller makes it");
        assert!(!is(marks, Some(open.clone()), open, false));
    }

    #[test]
    fn a_deployment_is_written_when_our_condition_changes() {
        let of = |reason: &str, progress: &str| {
            json!({"metadata": {}, "status": {"conditions": [{"type": "Progressing", "reason": progress},
                {"type": condition::LIFECYCLE, "reason": reason}]}})
        };
        assert!(is(says, Some(of("Pre", "a")), of("Rolling", "a"), false));
        assert!(!is(says, Some(of("Pre", "a")), of("Pre", "b"), false), "it is not ours that changes");
    }

    #[test]
    fn a_hook_pod_is_made_owned_and_deleted_each_once() {
        let ours = makes_owns_or_deletes;
        let pod = |more: Value| {
            let mut pod = json!({"metadata": {"labels": {HOOK_OF_LABEL: "web"}}});
            pod["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            pod
        };
        let (plain, going) = (pod(json!({})), pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})));
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1"}]);
        assert!(is(ours, None, plain.clone(), false));
        assert!(is(ours, Some(plain.clone()), pod(json!({"ownerReferences": owner})), false));
        assert!(!is(ours, Some(plain.clone()), plain.clone(), false), "its node writes its status");
        assert!(is(ours, Some(plain.clone()), going.clone(), false));
        assert!(!is(ours, Some(going.clone()), going.clone(), true), "its node lets it go");
        assert!(is(ours, Some(plain), going, true), "one that has ended goes at once");
        assert!(!is(ours, None, json!({"metadata": {}}), false), "a pod of the Deployment");
    }
}
