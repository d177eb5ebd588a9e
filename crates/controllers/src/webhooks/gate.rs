//! The gate: holds ReplicaSets until their stage is open, whoever writes. It mutates and never denies.
//!
//! The rule is `boathook_decide::deployment_lifecycle::gate`; most of it was decided in the API server by the time that
//! this is asked. What the rule needs besides is read from the API server itself.

use boathook_api::{
    DeploymentLifecycle,
    words::{GATE, LIFECYCLE},
};
use boathook_decide::deployment_lifecycle::{
    gate::{DrainFor, Mark, Request, Update, Verdict, drain_is_valid, judge},
    record::lets_drain,
};
use boathook_runtime::{error_class::chain, in_time, webhook::Ask};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams},
    core::admission::{AdmissionResponse, Operation},
};
use serde_json::json;

use super::{patched, pointer};
use crate::deployment_lifecycle::seen;

/// Why it cannot be said what may be.
type Why = String;

pub(super) struct Gate {
    client: Client,
}

impl Gate {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// A ReplicaSet that is created or updated.
    pub(super) async fn review_replica_set(&self, ask: &Ask) -> AdmissionResponse {
        let Some(object) = &ask.object else { return AdmissionResponse::from(ask) };
        let request = match (&ask.operation, &ask.old_object) {
            (Operation::Update, Some(old)) => Request::Update(update(old, object)),
            _ => Request::Create { replicas: seen::replicas(object) },
        };
        let namespace = ask.namespace.as_deref().unwrap_or_default();
        self.answer(ask, &request, namespace, object).await
    }

    /// The replicas of a ReplicaSet that are written through `scale`.
    pub(super) async fn review_scale(&self, ask: &Ask) -> AdmissionResponse {
        let replicas = |scale: &Option<DynamicObject>| {
            let replicas = scale.as_ref().and_then(|scale| scale.data["spec"]["replicas"].as_i64()).unwrap_or(0);
            i32::try_from(replicas).unwrap_or(i32::MAX)
        };
        let namespace = ask.namespace.as_deref().unwrap_or_default();
        let sets: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &seen::replica_sets());
        let set = match in_time(sets.get_opt(&ask.name)).await {
            Ok(Some(set)) if set.annotations().contains_key(LIFECYCLE) => set,
            // None that is held.
            Ok(_) => return AdmissionResponse::from(ask),
            Err(error) => return held(ask, replicas(&ask.old_object), Some(chain(&error))),
        };
        let is_target = match self.deployment_of(namespace, &set).await {
            Ok(Some(deployment)) => seen::digest(&deployment) == seen::digest(&set),
            // Nobody rolls it out any more.
            Ok(None) => return AdmissionResponse::from(ask),
            Err(why) => return held(ask, replicas(&ask.old_object), Some(why)),
        };
        let request = Request::Scale {
            old: replicas(&ask.old_object),
            new: replicas(&ask.object),
            desired: set.annotations().get(seen::DESIRED_REPLICAS).cloned(),
            revision: set.annotations().get(seen::REVISION).cloned(),
            mark: mark(&set),
            is_target,
        };
        self.answer(ask, &request, namespace, &set).await
    }

    async fn answer(&self, ask: &Ask, request: &Request, namespace: &str, set: &DynamicObject) -> AdmissionResponse {
        let old = match request {
            Request::Create { .. } => 0,
            Request::Update(Update { old, .. }) | Request::Scale { old, .. } => *old,
        };
        let (replicas, why) = match judge(request) {
            Verdict::Pass => return AdmissionResponse::from(ask),
            Verdict::Replicas(replicas) => (replicas, None),
            Verdict::PassIf(target) => match self.may_drain(namespace, set, &target).await {
                Ok(true) => return AdmissionResponse::from(ask),
                Ok(false) => (old, None),
                Err(why) => (old, Some(why)),
            },
        };
        match (self.is_let_go(namespace, set).await, request) {
            (false, _) => held(ask, replicas, why),
            (true, Request::Scale { .. }) => AdmissionResponse::from(ask),
            // The write itself takes the annotation away.
            (true, Request::Create { .. } | Request::Update(_)) if !set.annotations().contains_key(LIFECYCLE) => {
                AdmissionResponse::from(ask)
            }
            (true, Request::Create { .. } | Request::Update(_)) => {
                let path = format!("/metadata/annotations/{}", pointer(LIFECYCLE));
                patched(ask, json!([{"op": "remove", "path": path}]))
            }
        }
    }

    /// The Deployment controller never takes an annotation from a ReplicaSet. So one may be left of a Deployment that is
    /// not looked after any more, and it is not held for that.
    async fn is_let_go(&self, namespace: &str, set: &DynamicObject) -> bool {
        match self.deployment_of(namespace, set).await {
            Ok(deployment) => deployment.is_some_and(|deployment| !deployment.annotations().contains_key(LIFECYCLE)),
            Err(why) => {
                tracing::warn!(why, set = set.name_any(), "ReplicaSet held: failed to get its Deployment");
                false
            }
        }
    }

    async fn may_drain(&self, namespace: &str, set: &DynamicObject, target: &DrainFor) -> Result<bool, Why> {
        let Some(deployment) = self.deployment_of(namespace, set).await? else { return Ok(false) };
        let lifecycles: Api<DeploymentLifecycle> = Api::namespaced(self.client.clone(), namespace);
        let lifecycle = in_time(lifecycles.get_opt(&deployment.name_any())).await.map_err(|error| chain(&error))?;
        let rollout = lifecycle.and_then(|lifecycle| lifecycle.status).and_then(|status| status.rollout);
        if !rollout.is_some_and(|rollout| lets_drain(&rollout, &seen::digest(&deployment))) {
            return Ok(false);
        }
        let sets: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &seen::replica_sets());
        let of_target = match target {
            DrainFor::Template { .. } => vec![],
            DrainFor::ReplicaSet { pod_template_hash, .. } => {
                let asked = ListParams::default().labels(&format!("pod-template-hash={pod_template_hash}"));
                in_time(sets.list(&asked)).await.map_err(|error| chain(&error))?.items
            }
        };
        let uid = deployment.uid();
        let owned =
            of_target.iter().filter(|set| set.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref()));
        let sets: Vec<_> = owned.map(seen::replica_set).collect();
        let facts = sets.iter().map(|set| {
            (set.pod_template_hash.as_str(), set.revision.as_deref().unwrap_or_default(), set.template.as_str())
        });
        Ok(drain_is_valid(target, &seen::digest(&deployment), facts))
    }

    async fn deployment_of(&self, namespace: &str, set: &DynamicObject) -> Result<Option<DynamicObject>, Why> {
        let owners = set.owner_references();
        let owner = owners.iter().find(|owner| owner.kind == "Deployment" && owner.controller == Some(true));
        let Some(owner) = owner else { return Ok(None) };
        let deployments: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &seen::deployments());
        let found = in_time(deployments.get_opt(&owner.name)).await.map_err(|error| chain(&error))?;
        Ok(found.filter(|found| found.uid().as_deref() == Some(&owner.uid)))
    }
}

fn update(old: &DynamicObject, new: &DynamicObject) -> Update {
    let annotation = |object: &DynamicObject, key| object.annotations().get(key).cloned();
    Update {
        old: seen::replicas(old),
        new: seen::replicas(new),
        old_desired: annotation(old, seen::DESIRED_REPLICAS),
        new_desired: annotation(new, seen::DESIRED_REPLICAS),
        revision: annotation(new, seen::REVISION),
        mark: mark(old),
    }
}

fn mark(set: &DynamicObject) -> Option<Mark> {
    set.labels().get(GATE).and_then(|gate| gate.parse().ok())
}

/// The replicas are written as these. `unknown`: why it could not be found out whether they may be others. Nobody is
/// denied for that: the Deployment controller is woken again, and a person is warned.
fn held(ask: &Ask, replicas: i32, unknown: Option<Why>) -> AdmissionResponse {
    let mut answer = patched(ask, json!([{"op": "add", "path": "/spec/replicas", "value": replicas}]));
    if let Some(why) = unknown {
        tracing::warn!(why, set = ask.name, "ReplicaSet held: failed to check the stage of its rollout");
        let warning = format!(
            "Boathook keeps the ReplicaSet at {replicas} replicas, because it failed to check the stage of the \
             rollout: try again later"
        );
        answer.warnings = Some(vec![warning]);
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use boathook_api::words::LIFECYCLE_REQUIRED;
    use boathook_decide::deployment_lifecycle::template;
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use kube::{
        api::{Patch, PatchParams, PostParams},
        client::Body,
    };
    use serde_json::Value;
    use tower::service_fn;

    use super::*;
    use crate::{
        test_world::answer,
        webhooks::test_asks::{ask, client, client_with_kinds},
    };

    #[tokio::test]
    async fn a_replica_set_is_let_go_with_its_deployment() {
        let client = client().await;
        let labels = json!({"app": "web"});
        let template =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}});
        let metadata = json!({"name": "web", "annotations": {LIFECYCLE: LIFECYCLE_REQUIRED}});
        let spec = json!({"selector": {"matchLabels": labels}, "template": template});
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
        let required = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        let uid = deployments.create(&PostParams::default(), &required).await.unwrap().uid();
        let set = |replicas: i32| {
            let owner =
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": true});
            let metadata = json!({"name": "web-1", "annotations": {LIFECYCLE: LIFECYCLE_REQUIRED},
                "ownerReferences": [owner]});
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {"replicas": replicas}})
        };
        let gate = Gate::new(client);
        let grows = ask("UPDATE", Some(set(3)), Some(set(0)));
        let made = ask("CREATE", Some(set(3)), None);
        let patch = async |ask| -> Value {
            let answer = gate.review_replica_set(ask).await;
            serde_json::from_slice(&answer.patch.unwrap()).unwrap()
        };
        let held = json!([{"op": "add", "path": "/spec/replicas", "value": 0}]);
        assert_eq!((patch(&grows).await, patch(&made).await), (held.clone(), held));

        let dropped = Patch::Merge(json!({"metadata": {"annotations": {LIFECYCLE: null}}}));
        deployments.patch("web", &PatchParams::default(), &dropped).await.unwrap();
        let let_go = json!([{"op": "remove", "path": "/metadata/annotations/boathook.dev~1lifecycle"}]);
        assert_eq!((patch(&grows).await, patch(&made).await), (let_go.clone(), let_go));
    }

    #[tokio::test]
    async fn what_cannot_be_looked_at_is_held_and_nobody_is_denied() {
        let broken = |_: http::Request<Body>| async { Ok::<_, Infallible>(answer(500, "InternalError", "no quorum")) };
        let gate = Gate::new(Client::new(service_fn(broken), "default"));
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true});
        let metadata = json!({"name": "web-1", "annotations": {LIFECYCLE: "managed"}, "ownerReferences": [owner],
            "labels": {GATE: "draining.2.hash"}});
        let set = |replicas: i32| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {"replicas": replicas}});
        let scale = |replicas: i32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web-1"}, "spec": {"replicas": replicas}});
        let answers = [
            gate.review_replica_set(&ask("UPDATE", Some(set(1)), Some(set(3)))).await,
            gate.review_scale(&ask("UPDATE", Some(scale(1)), Some(scale(3)))).await,
        ];
        for answer in answers {
            assert!(answer.allowed && answer.warnings.is_some(), "{answer:?}");
            let patch: Value = serde_json::from_slice(&answer.patch.unwrap()).unwrap();
            assert_eq!(patch, json!([{"op": "add", "path": "/spec/replicas", "value": 3}]));
        }
    }

    #[tokio::test]
    async fn replica_set_shrinks_only_for_the_version_that_is_rolled_out() {
        let client = client_with_kinds().await;
        let spec = |image: &str, replicas: i32| {
            let labels = json!({"app": "web"});
            let pod = json!({"containers": [{"name": "web", "image": image}]});
            let template = json!({"metadata": {"labels": labels}, "spec": pod});
            json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template})
        };
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
        let annotations = json!({LIFECYCLE: "managed"});
        let metadata = json!({"name": "web", "annotations": annotations});
        let web = serde_json::from_value(json!({"metadata": metadata, "spec": spec("web:2", 3)})).unwrap();
        let web = deployments.create(&PostParams::default(), &web).await.unwrap();
        let uid = web.uid();
        let digest = template::digest(&serde_json::to_value(&web).unwrap()["spec"]["template"]);
        let lifecycles: Api<DeploymentLifecycle> = Api::namespaced(client.clone(), "default");
        let pre = json!({"pre": {"execNewPod": {"containerName": "web"}}});
        let lifecycle = DeploymentLifecycle::new("web", serde_json::from_value(pre).unwrap());
        lifecycles.create(&PostParams::default(), &lifecycle).await.unwrap();
        let record = async |phase: &str| {
            let rollout = json!({"target": digest, "phase": phase, "startTime": "2026-01-01T00:00:00.000000Z"});
            let patch = Patch::Merge(json!({"status": {"rollout": rollout}}));
            lifecycles.patch_status("web", &PatchParams::default(), &patch).await.unwrap();
        };
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": true});
        let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), "default");
        let new = json!({"name": "web-2", "labels": {"app": "web", "pod-template-hash": "hash"},
            "annotations": {LIFECYCLE: "managed", seen::REVISION: "2"}, "ownerReferences": [owner]});
        let new = serde_json::from_value(json!({"metadata": new, "spec": spec("web:2", 0)})).unwrap();
        sets.create(&PostParams::default(), &new).await.unwrap();
        let old = json!({"name": "web-1", "labels": {"app": "web", GATE: "draining.2.hash"},
            "annotations": annotations, "ownerReferences": [owner]});
        let of_old = |replicas: i32| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": old, "spec": spec("web:1", replicas)});
        sets.create(&PostParams::default(), &serde_json::from_value(of_old(3)).unwrap()).await.unwrap();
        let scale = |replicas: i32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web-1"}, "spec": {"replicas": replicas}});
        let gate = Gate::new(client);
        let shrink = async || {
            let mut scaled = ask("UPDATE", Some(scale(1)), Some(scale(3)));
            scaled.name = "web-1".to_owned();
            let updated = gate.review_replica_set(&ask("UPDATE", Some(of_old(1)), Some(of_old(3)))).await;
            [updated, gate.review_scale(&scaled).await].map(|answer| {
                assert!(answer.allowed && answer.warnings.is_none(), "{answer:?}");
                answer.patch.map(|patch| serde_json::from_slice::<Value>(&patch).unwrap())
            })
        };
        let held = Some(json!([{"op": "add", "path": "/spec/replicas", "value": 3}]));
        assert_eq!(shrink().await, [held.clone(), held.clone()], "no rollout is recorded");
        record("Pre").await;
        assert_eq!(shrink().await, [held.clone(), held.clone()], "the record holds the new version");
        record("Rolling").await;
        assert_eq!(shrink().await, [None, None], "it is let go for the version that is rolled out");
        let image = Patch::Merge(json!({"spec": spec("web:3", 3)}));
        deployments.patch("web", &PatchParams::default(), &image).await.unwrap();
        assert_eq!(shrink().await, [held.clone(), held], "another version is wanted by now");
    }
}
