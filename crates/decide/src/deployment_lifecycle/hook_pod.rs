//! The pod of a hook: from the named container of the new template, with nothing gained.

use std::collections::BTreeMap;

use boathook_api::{
    deployment_lifecycle::{FailurePolicy, LifecycleHook, Rollout, Stage},
    words::{HOOK_OF_LABEL, ROLLOUT_LABEL, STAGE_LABEL},
};
use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{ResourceExt, core::ObjectMeta};

use super::{Deployment, ReplicaSet};
use crate::naming;

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;

/// kubectl's own: which container is meant if none is named.
pub const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// By this value of [`HOOK_OF_LABEL`] the hook pods of a Deployment are found.
pub fn label_of(deployment: &str) -> String {
    match deployment.len() <= LONGEST_LABEL {
        true => deployment.to_owned(),
        false => format!("{:016x}", naming::digest(&[deployment])),
    }
}

/// Which rollout, among those of a Deployment.
pub(super) fn rollout_id(rollout: &Rollout) -> String {
    rollout.start_time.0.as_microsecond().to_string()
}

/// The same for every process that makes it.
pub(super) fn name(deployment: &Deployment, rollout: &Rollout, stage: Stage, place: i32) -> String {
    let place = place.to_string();
    let maker = maker(&deployment.name, stage);
    naming::derived(&maker, &[&deployment.uid, &rollout_id(rollout), stage.as_str(), &place])
}

fn maker(deployment: &str, stage: Stage) -> String {
    format!("{deployment}-{stage}")
}

/// The stage that a hook pod runs.
pub fn stage_of(pod: &Pod) -> Option<Stage> {
    let label = pod.labels().get(STAGE_LABEL)?;
    Stage::ALL.into_iter().find(|stage| stage.as_str() == label)
}

/// Whether a pod is one that was made here for this Deployment: it is named so, and owned by one of these UIDs. Every user
/// who may create pods could write both, so admission refuses the label [`HOOK_OF_LABEL`] from other users.
pub fn is_ours(pod: &Pod, deployment: &str, owners: &[String]) -> bool {
    let named = stage_of(pod).is_some_and(|stage| naming::is_derived(&pod.name_any(), &maker(deployment, stage)));
    named && pod.owner_references().iter().any(|owner| owners.contains(&owner.uid))
}

/// What one hook's pod is made of.
#[derive(Clone, Debug)]
pub struct Making<'a> {
    pub name: String,
    pub namespace: Option<String>,
    pub deployment: &'a Deployment,
    pub target: Option<&'a ReplicaSet>,
    pub rollout: String,
    pub stage: Stage,
    pub hook: &'a LifecycleHook,
    /// What is left of the stage's time.
    pub seconds_left: i64,
}

/// The pod; nothing if the template has no container of that name.
pub fn build(making: &Making<'_>) -> Option<Pod> {
    let Making { name, namespace, deployment, target, rollout, stage, hook, seconds_left } = making;
    let labels = BTreeMap::from([
        (HOOK_OF_LABEL.to_owned(), label_of(&deployment.name)),
        (STAGE_LABEL.to_owned(), stage.as_str().to_owned()),
        (ROLLOUT_LABEL.to_owned(), rollout.clone()),
    ]);
    let owner = match target {
        Some(target) => owner("ReplicaSet", &target.name, &target.uid),
        None => owner("Deployment", &deployment.name, &deployment.uid),
    };
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: namespace.clone(),
        labels: Some(labels),
        // So that `kubectl logs` shows the hook, whatever is injected beside it.
        annotations: Some([(DEFAULT_CONTAINER.to_owned(), hook.exec_new_pod.container_name.clone())].into()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let mut spec = spec(&deployment.pod_template, hook)?;
    spec.active_deadline_seconds = Some((*seconds_left).max(1));
    let restart = match hook.failure_policy {
        FailurePolicy::Retry => "OnFailure",
        FailurePolicy::Abort | FailurePolicy::Ignore => "Never",
    };
    spec.restart_policy = Some(restart.to_owned());
    Some(Pod { metadata, spec: Some(spec), status: None })
}

/// Why no pod can be made for a hook: the template has no container of that name.
pub fn mistake(deployment: &Deployment, stage: Stage, hook: &LifecycleHook) -> Option<String> {
    let named = &hook.exec_new_pod.container_name;
    let containers = deployment.pod_template.spec.iter().flat_map(|spec| &spec.containers);
    let known: Vec<_> = containers.map(|container| container.name.as_str()).collect();
    (!known.contains(&named.as_str())).then(|| {
        format!(
            "the Deployment's pod template has no container `{named}` (it has `{}`): fix \
             spec.{stage}.execNewPod.containerName, which applies from the next rollout on",
            known.join("`, `")
        )
    })
}

/// It owns the pod, and does not control it: the pod is not one of its replicas.
pub(super) fn owner(kind: &str, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(false),
        block_owner_deletion: None,
    }
}

fn spec(template: &PodTemplateSpec, hook: &LifecycleHook) -> Option<PodSpec> {
    let template = template.spec.as_ref()?;
    let run = &hook.exec_new_pod;
    let from = template.containers.iter().find(|container| container.name == run.container_name)?;
    let wanted = |name: &str| run.volumes.iter().any(|volume| volume == name);
    let words = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
    let container = Container {
        name: from.name.clone(),
        image: from.image.clone(),
        image_pull_policy: from.image_pull_policy.clone(),
        command: words(&run.command),
        args: words(&run.args),
        env: Some(from.env.iter().flatten().chain(&run.env).cloned().collect()),
        env_from: from.env_from.clone(),
        working_dir: from.working_dir.clone(),
        resources: from.resources.clone(),
        security_context: from.security_context.clone(),
        volume_mounts: from
            .volume_mounts
            .as_ref()
            .map(|mounts| mounts.iter().filter(|mount| wanted(&mount.name)).cloned().collect()),
        volume_devices: from
            .volume_devices
            .as_ref()
            .map(|devices| devices.iter().filter(|device| wanted(&device.name)).cloned().collect()),
        ..Container::default()
    };
    let volumes = template.volumes.as_ref();
    // The API server takes no pod whose container names a claim that its pod has not.
    let claims: Vec<_> = from.resources.iter().flat_map(|resources| resources.claims.iter().flatten()).collect();
    let claimed = |name: &str| claims.iter().any(|claim| claim.name == name);
    let resource_claims = template.resource_claims.as_ref();
    Some(PodSpec {
        containers: vec![container],
        volumes: volumes.map(|volumes| volumes.iter().filter(|volume| wanted(&volume.name)).cloned().collect()),
        resource_claims: resource_claims
            .map(|all| all.iter().filter(|claim| claimed(&claim.name)).cloned().collect::<Vec<_>>())
            .filter(|taken| !taken.is_empty()),
        service_account_name: template.service_account_name.clone(),
        automount_service_account_token: template.automount_service_account_token,
        security_context: template.security_context.clone(),
        host_users: template.host_users,
        image_pull_secrets: template.image_pull_secrets.clone(),
        tolerations: template.tolerations.clone(),
        node_selector: template.node_selector.clone(),
        affinity: template.affinity.clone(),
        runtime_class_name: template.runtime_class_name.clone(),
        dns_policy: template.dns_policy.clone(),
        dns_config: template.dns_config.clone(),
        ..PodSpec::default()
    })
}
