//! Deployments and ReplicaSets as decisions see them. They are read raw: a field of a template that is not known here
//! makes a difference too.

use boathook_api::words::{GATE, LIFECYCLE, condition};
use boathook_decide::deployment_lifecycle::{Deployment, DeploymentCondition, ReplicaSet, Strategy, template};
use jiff::Timestamp;
use k8s_openapi::{
    api::{apps::v1, core::v1::PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    ResourceExt,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;

/// What the Deployment controller writes on ReplicaSets.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Kubernetes' default of `progressDeadlineSeconds`.
const DEFAULT_PROGRESS_DEADLINE: i64 = 600;

pub(crate) fn deployments() -> ApiResource {
    ApiResource::erase::<v1::Deployment>(&())
}

pub(crate) fn replica_sets() -> ApiResource {
    ApiResource::erase::<v1::ReplicaSet>(&())
}

/// The digest of the template of a Deployment or ReplicaSet.
pub(crate) fn digest(object: &DynamicObject) -> String {
    template::digest(&object.data["spec"]["template"])
}

/// As a decision sees it.
pub fn deployment(object: &DynamicObject) -> Result<Deployment, serde_json::Error> {
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let pod_template: PodTemplateSpec = serde_json::from_value(spec["template"].clone())?;
    Ok(Deployment {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        generation: object.metadata.generation.unwrap_or(0),
        observed_generation: status["observedGeneration"].as_i64().unwrap_or(0),
        deleted: object.metadata.deletion_timestamp.is_some(),
        lifecycle: object.annotations().get(LIFECYCLE).cloned(),
        paused: spec["paused"].as_bool().unwrap_or(false),
        strategy: match spec["strategy"]["type"].as_str() {
            Some("Recreate") => Strategy::Recreate,
            Some(_) | None => Strategy::RollingUpdate,
        },
        progress_deadline_seconds: whole(&spec["progressDeadlineSeconds"], DEFAULT_PROGRESS_DEADLINE),
        template: digest(object),
        pod_template,
        replicas: replicas(object),
        status_replicas: whole(&status["replicas"], 0),
        updated_replicas: whole(&status["updatedReplicas"], 0),
        available_replicas: whole(&status["availableReplicas"], 0),
        progressing: find(&status["conditions"], condition::PROGRESSING),
        ours: find(&status["conditions"], condition::LIFECYCLE),
    })
}

pub(crate) fn replica_set(object: &DynamicObject) -> ReplicaSet {
    ReplicaSet {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        created: object.creation_timestamp().map(|Time(time)| time).unwrap_or_default(),
        template: digest(object),
        pod_template_hash: object.labels().get(POD_TEMPLATE_HASH).cloned().unwrap_or_default(),
        revision: object.annotations().get(REVISION).cloned(),
        managed: object.annotations().contains_key(LIFECYCLE),
        gate: object.labels().get(GATE).cloned(),
        replicas: replicas(object),
        status_replicas: whole(&object.data["status"]["replicas"], 0),
        available_replicas: whole(&object.data["status"]["availableReplicas"], 0),
        observed: object.data["status"]["observedGeneration"].as_i64() >= object.metadata.generation,
    }
}

/// Those that it asks for.
pub(crate) fn replicas(object: &DynamicObject) -> i32 {
    whole(&object.data["spec"]["replicas"], 1)
}

fn whole(value: &Value, or: i64) -> i32 {
    i32::try_from(value.as_i64().unwrap_or(or)).unwrap_or(i32::MAX)
}

fn find(conditions: &Value, kind: &'static str) -> Option<DeploymentCondition> {
    let found = conditions.as_array()?.iter().find(|condition| condition["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    let time = |field: &str| text(field).parse().unwrap_or(Timestamp::UNIX_EPOCH);
    Some(DeploymentCondition {
        kind,
        status: match found["status"].as_str() {
            Some("True") => "True",
            Some("False") => "False",
            Some(_) | None => "Unknown",
        },
        reason: text("reason"),
        message: text("message"),
        last_update: time("lastUpdateTime"),
        last_transition: time("lastTransitionTime"),
    })
}
