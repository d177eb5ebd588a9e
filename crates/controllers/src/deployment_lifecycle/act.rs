//! The effects of a decision, one after the other.

use boathook_api::{
    DeploymentLifecycle,
    words::{GATE, LIFECYCLE, LIFECYCLE_FINALIZER, LIFECYCLE_MANAGED, condition},
};
use boathook_decide::deployment_lifecycle::{Annotate, DeploymentCondition, Effect, Release};
use boathook_runtime::{Classified, ErrorClass};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use snafu::ensure;

use super::{Controller, Error, LeaseLostSnafu};
use crate::writes::{self, WriteError};

/// How far it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Done {
    All,
    /// The pod of a hook cannot be made, and nothing after it was done: the next look is to come at once.
    PodRefused,
}

pub(super) async fn act(
    controller: &Controller,
    object: &DeploymentLifecycle,
    effects: Vec<Effect>,
) -> Result<Done, Error> {
    let client = &controller.client;
    let (namespace, deployment) = (object.namespace().unwrap_or_default(), object.name_any());
    let mut object = object.clone();
    for effect in effects {
        // Asked again before each: the writes before may have taken long.
        ensure!(controller.lease.leads(), LeaseLostSnafu);
        match effect {
            Effect::AddFinalizer => object = writes::hold(client, &object, LIFECYCLE_FINALIZER, true).await?,
            Effect::RemoveFinalizer => object = writes::hold(client, &object, LIFECYCLE_FINALIZER, false).await?,
            Effect::WriteStatus(status) => {
                let next = DeploymentLifecycle { status: Some(*status), ..object };
                object = writes::write_status(client, &next).await?;
            }
            Effect::MarkReplicaSet { name, uid, annotate, mark } => {
                let mut metadata = json!({"uid": uid, "labels": {GATE: mark.map(|mark| mark.to_string())}});
                match annotate {
                    Annotate::Keep => {}
                    Annotate::Write(value) => metadata["annotations"] = json!({LIFECYCLE: value}),
                }
                let patch = json!({"metadata": metadata});
                writes::patch::<ReplicaSet>(client, &namespace, &name, "mark", patch).await?;
            }
            Effect::AnnotateDeployment { resource_version } => {
                let metadata =
                    json!({"resourceVersion": resource_version, "annotations": {LIFECYCLE: LIFECYCLE_MANAGED}});
                let patch = json!({"metadata": metadata});
                writes::patch::<Deployment>(client, &namespace, &deployment, "annotate", patch).await?;
            }
            Effect::Release(one) => release(client, &namespace, &deployment, one).await?,
            Effect::SetCondition(condition) => {
                let api: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
                writes::merge_status(&api, &deployment, conditions(&written(&condition))).await?;
            }
            Effect::CreatePod(pod) => {
                if create_pod(controller, &object, &pod).await? == Done::PodRefused {
                    return Ok(Done::PodRefused);
                }
            }
            Effect::DeletePod { name, uid } => writes::delete::<Pod>(client, &namespace, &name, &uid).await?,
            Effect::OwnPod { name, uid, replica_set: (owner, owner_uid) } => {
                let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner_uid,
                    "controller": false});
                let patch = json!({"metadata": {"uid": uid, "ownerReferences": [owner]}});
                writes::patch::<Pod>(client, &namespace, &name, "own", patch).await?;
            }
            Effect::Tell(report) => controller.reporter.report(&object, vec![report]),
        }
    }
    Ok(Done::All)
}

/// Removes a mark from a Deployment or from one of its ReplicaSets.
pub(super) async fn release(
    client: &Client,
    namespace: &str,
    deployment: &str,
    release: Release,
) -> Result<(), WriteError> {
    match release {
        Release::Deployment { resource_version } => {
            let metadata = json!({"resourceVersion": resource_version, "annotations": {LIFECYCLE: null}});
            let patch = json!({"metadata": metadata});
            writes::patch::<Deployment>(client, namespace, deployment, "release", patch).await
        }
        Release::ReplicaSet { name, uid, resource_version } => {
            let metadata = json!({"uid": uid, "resourceVersion": resource_version,
                "annotations": {LIFECYCLE: null}, "labels": {GATE: null}});
            let patch = json!({"metadata": metadata});
            writes::patch::<ReplicaSet>(client, namespace, &name, "release", patch).await
        }
        Release::Condition => {
            let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
            let removed = json!({"$patch": "delete", "type": condition::LIFECYCLE});
            writes::merge_status(&api, deployment, conditions(&removed)).await
        }
    }
}

async fn create_pod(controller: &Controller, object: &DeploymentLifecycle, pod: &Pod) -> Result<Done, Error> {
    match writes::create_new(&controller.client, pod).await {
        Err(error) if error.class() == ErrorClass::AlreadyExists => {
            // If it is ours, that of a call whose answer was lost, the next look knows.
            let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
            let why = format!(
                "pod `{name}` already exists, and Boathook did not create it for this rollout: check it, and delete it \
                 (`kubectl delete pod {name} -n {namespace}`)"
            );
            controller.refusals.note_in_the_way(object, why);
            Ok(Done::PodRefused)
        }
        // Somebody's admission that does not answer is in the way as much as one that forbids.
        Err(error) if error.is_answer() => {
            controller.refusals.note_in_the_way(object, error.in_words());
            Ok(Done::PodRefused)
        }
        made => Ok(made.map(|()| Done::All)?),
    }
}

fn conditions(one: &Value) -> Value {
    json!({"status": {"conditions": [one]}})
}

fn written(condition: &DeploymentCondition) -> Value {
    let DeploymentCondition { kind, status, reason, message, last_update, last_transition } = condition;
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": Time(*last_update), "lastTransitionTime": Time(*last_transition)})
}
