//! What is there and what would be: the API server is asked to check everything, and does nothing.

use anyhow::Result;
use boathook_api::{DeploymentLifecycle, words::LIFECYCLE};
use boathook_controllers::webhooks::Right;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Map, Value, json};

use super::{
    super::deployment::{RawDeployment, without_lifecycle},
    documents::Documents,
    rehearsed::{Change, Pair},
};
use crate::{
    objects::{self, Kind, resource},
    pods::Scope,
    rights::{self, Answer},
};

/// What `kubectl rollout restart` writes: who applies a file keeps it.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// What the file would change of this Deployment and its lifecycle.
pub(super) async fn change(
    client: &Client,
    documents: &Documents,
    default_namespace: &str,
    namespace: &str,
    name: &str,
) -> Result<Change> {
    let scope = Scope::Namespace(namespace.to_owned());
    let mut change = Change {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        deployment: Pair { now: None, then: None },
        lifecycle: Pair { now: None, then: None },
        rights: vec![],
        refusals: vec![],
    };
    let lifecycle: Option<DeploymentLifecycle> = objects::find(client, &scope, name).await?;
    let written = mine(&documents.lifecycles, default_namespace, namespace, name);
    let stored = Asking { client, scope: &scope, namespace }.stored(lifecycle.clone(), written, &mut change).await?;
    if written.is_some() {
        let right = Right::RunPods;
        change.rights.push(rights::answer(client, right.name().to_owned(), right.attributes(namespace)).await?);
    }
    change.lifecycle = Pair { now: lifecycle, then: stored };

    let deployment: Option<RawDeployment> = objects::find(client, &scope, name).await?;
    let written = mine(&documents.deployments, default_namespace, namespace, name);
    let written = written.map(|written| as_applied(written.clone(), deployment.as_ref()));
    let asking = Asking { client, scope: &scope, namespace };
    let stored = asking.stored(deployment.clone(), written.as_ref(), &mut change).await?;
    let seen = |object: Option<RawDeployment>| object.map(|object| object.seen()).transpose();
    change.deployment = Pair { now: seen(deployment)?, then: seen(stored)? };
    if let (Some(then), Some(written)) = (&mut change.deployment.then, &written) {
        // Of one that is there, no more than the spec was tried.
        then.lifecycle = written.annotations().get(LIFECYCLE).cloned().or(then.lifecycle.take());
    }

    if change.lifecycle.then.is_none() && change.refusals.is_empty() {
        change.refusals.push(without_lifecycle(client, &scope, name).await?);
    }
    if change.deployment.then.is_none() && change.refusals.is_empty() {
        change.refusals.push(objects::missing::<RawDeployment>(client, &scope, name).await?);
    }
    Ok(change)
}

/// The document of this name and namespace.
fn mine<'a, K: Kind>(all: &'a [K], default_namespace: &str, namespace: &str, name: &str) -> Option<&'a K> {
    let is_here = |object: &&K| object.namespace().as_deref().unwrap_or(default_namespace) == namespace;
    all.iter().filter(is_here).find(|object| object.name_any() == name)
}

/// What `kubectl apply` would keep of what the file does not mention: the number of replicas, and the last restart.
fn as_applied(mut written: RawDeployment, now: Option<&RawDeployment>) -> RawDeployment {
    let Some(now) = now.map(|now| &now.0.data["spec"]) else { return written };
    let Some(spec) = written.0.data.get_mut("spec").and_then(Value::as_object_mut) else { return written };
    if let Some(replicas) = now.get("replicas") {
        keep(spec, "replicas", replicas);
    }
    let restarted = now.pointer("/template/metadata/annotations").and_then(|all| all.get(RESTARTED_AT));
    if let (Some(restarted), Some(template)) = (restarted, spec.get_mut("template").and_then(Value::as_object_mut))
        && let Some(metadata) = inner(template, "metadata")
        && let Some(annotations) = inner(metadata, "annotations")
    {
        keep(annotations, RESTARTED_AT, restarted);
    }
    written
}

/// What is there stays, unless something else is written.
fn keep(fields: &mut Map<String, Value>, name: &str, value: &Value) {
    let written = fields.entry(name).or_insert(Value::Null);
    if written.is_null() {
        *written = value.clone();
    }
}

/// The fields of this field, which is made if it is missing; none if it is something else.
fn inner<'a>(fields: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    keep(fields, name, &json!({}));
    fields.get_mut(name)?.as_object_mut()
}

struct Asking<'a> {
    client: &'a Client,
    scope: &'a Scope,
    namespace: &'a str,
}

impl Asking<'_> {
    /// As the API server would store it: with its defaults, and past its checks. What is not in the file stays.
    async fn stored<K: Kind>(&self, now: Option<K>, written: Option<&K>, change: &mut Change) -> Result<Option<K>> {
        let Some(written) = written else { return Ok(now) };
        let verb = if now.is_some() { "patch" } else { "create" };
        let may = self.may::<K>(verb).await?;
        let granted = may.granted;
        change.rights.push(may);
        if !granted {
            return Ok(None);
        }
        let api: Api<K> = self.scope.api(self.client);
        let asked = match now {
            None => {
                let mut written = written.clone();
                written.meta_mut().namespace = Some(self.namespace.to_owned());
                let params = PostParams { dry_run: true, ..PostParams::default() };
                objects::answer(api.create(&params, &written)).await?
            }
            Some(_) => {
                let params = PatchParams { dry_run: true, ..PatchParams::default() };
                let spec = serde_json::to_value(written)?["spec"].clone();
                let patch = serde_json::from_value(json!([{"op": "replace", "path": "/spec", "value": spec}]))?;
                objects::answer(api.patch(&written.name_any(), &params, &Patch::<()>::Json(patch))).await?
            }
        };
        match asked {
            Ok(stored) => Ok(Some(stored)),
            Err(kube::Error::Api(status)) => {
                change.refusals.push(status.message);
                Ok(None)
            }
            Err(error) => Err(anyhow::Error::new(error).context(format!("failed to {verb} {}", resource::<K>()))),
        }
    }

    async fn may<K: Kind>(&self, verb: &str) -> Result<Answer> {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(K::group(&()).into_owned()),
            version: Some(K::version(&()).into_owned()),
            resource: Some(K::plural(&()).into_owned()),
            namespace: Some(self.namespace.to_owned()),
            ..ResourceAttributes::default()
        };
        rights::answer(self.client, format!("{verb} {}", K::plural(&())), attributes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(spec: Value) -> RawDeployment {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_the_file_does_not_mention_is_kept() {
        let restarted = |at: &str| json!({"metadata": {"annotations": {RESTARTED_AT: at}}});
        let now = deployment(json!({"replicas": 3, "template": restarted("monday")}));
        for (written, applied) in [
            (json!({"template": {}}), json!({"replicas": 3, "template": restarted("monday")})),
            (
                json!({"replicas": 1, "template": {"metadata": null}}),
                json!({"replicas": 1, "template": restarted("monday")}),
            ),
            (json!({"template": restarted("friday")}), json!({"replicas": 3, "template": restarted("friday")})),
        ] {
            assert_eq!(as_applied(deployment(written), Some(&now)).0.data["spec"], applied);
        }
    }

    #[test]
    fn what_is_no_deployment_at_all_is_left_to_the_api_server() {
        let restarted = json!({"metadata": {"annotations": {RESTARTED_AT: "monday"}}});
        let now = deployment(json!({"template": restarted}));
        for written in [
            json!("hello"),
            json!({"template": "hello"}),
            json!({"template": {"metadata": "hello"}}),
            json!({"template": {"metadata": {"annotations": ["hello"]}}}),
        ] {
            assert_eq!(as_applied(deployment(written.clone()), Some(&now)).0.data["spec"], written);
        }
    }
}
