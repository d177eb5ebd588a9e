//! One stage of a rehearsal: what is held meanwhile, and the pod that would run.

use std::time::Duration;

use boathook_api::{
    DeploymentLifecycle,
    deployment_lifecycle::{FailurePolicy, LifecycleHook, Stage},
};
use boathook_decide::deployment_lifecycle::{Deployment, Making, hook_pod};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use serde::Serialize;

use super::super::stages::command_text;
use crate::output::{duration::shown, plain::names};

/// Stands in a name for what is known only when the pod is made.
const NOT_YET: &str = "XXXXX";

/// A stage that has a hook.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Staged {
    pub(super) stage: Stage,
    pub(super) failure_policy: FailurePolicy,
    /// As a person would say it.
    pub(super) held: &'static str,
    pub(super) what: String,
    pub(super) timeout_seconds: i32,
    /// Named by the hook, and not in the template.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unknown_volumes: Vec<String>,
    /// Named by the hook and in the template, but the container does not mount them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unmounted_volumes: Vec<String>,
    /// All of it, as it would be made. Absent if the template has no such container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<Pod>,
}

/// The stages of a lifecycle that have hooks, for a Deployment that would be new or not.
pub(super) fn staged(lifecycle: &DeploymentLifecycle, deployment: &Deployment, is_new: bool) -> Vec<Staged> {
    let of = |stage| lifecycle.spec.hook(stage).map(|hook| one(stage, hook, lifecycle, deployment, is_new));
    Stage::ALL.into_iter().filter_map(of).collect()
}

fn one(
    stage: Stage,
    hook: &LifecycleHook,
    lifecycle: &DeploymentLifecycle,
    deployment: &Deployment,
    is_new: bool,
) -> Staged {
    let pod = hook_pod(&Making {
        name: format!("{}-{stage}-{NOT_YET}", deployment.name),
        namespace: lifecycle.metadata.namespace.clone(),
        deployment,
        target: None,
        rollout: NOT_YET.to_owned(),
        stage,
        hook,
        seconds_left: deployment.progress_deadline_seconds.into(),
    });
    let wanted = &hook.exec_new_pod.volumes;
    let there: Vec<_> = deployment.pod_template.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()).collect();
    let is_there = |name: &&String| there.iter().any(|volume| volume.name == **name);
    let mounted = pod.as_ref().and_then(container).map(mounts).unwrap_or_default();
    Staged {
        stage,
        failure_policy: hook.failure_policy,
        held: held(stage, is_new),
        what: command_text(hook),
        timeout_seconds: deployment.progress_deadline_seconds,
        unknown_volumes: wanted.iter().filter(|name| !is_there(name)).cloned().collect(),
        unmounted_volumes: wanted.iter().filter(is_there).filter(|name| !mounted.contains(name)).cloned().collect(),
        // Who owns it is known when it is made.
        pod: pod.map(|mut pod| {
            pod.metadata.owner_references = None;
            pod
        }),
    }
}

fn held(stage: Stage, is_new: bool) -> &'static str {
    match stage {
        Stage::Pre if is_new => "the first version is held, nothing serves yet",
        Stage::Pre => "the new version is held, the old one serves",
        Stage::Mid => "no version runs, the new one is held",
        Stage::Post => "the new version serves everywhere",
    }
}

fn container(pod: &Pod) -> Option<&Container> {
    pod.spec.as_ref()?.containers.first()
}

fn mounts(container: &Container) -> Vec<String> {
    let mounts = container.volume_mounts.iter().flatten().map(|mount| mount.name.clone());
    mounts.chain(container.volume_devices.iter().flatten().map(|device| device.name.clone())).collect()
}

impl Staged {
    /// How long it may take, and what becomes of a failure.
    pub(super) fn policy_text(&self) -> String {
        let longest = shown(Duration::from_secs(u64::try_from(self.timeout_seconds).unwrap_or_default()));
        match self.failure_policy {
            FailurePolicy::Retry => format!("Retry, at most {longest}"),
            FailurePolicy::Abort => format!("Abort, at most {longest}"),
            FailurePolicy::Ignore => format!("Ignore, at most {longest}"),
        }
    }

    /// What its pod is made of.
    pub(super) fn pod_text(&self) -> Option<String> {
        let spec: &PodSpec = self.pod.as_ref()?.spec.as_ref()?;
        let container = spec.containers.first()?;
        let mut text = format!("container {} of image {}", container.name, container.image.as_deref().unwrap_or("-"));
        let mut and = |what: &str, all: Vec<&str>| {
            if !all.is_empty() {
                text += &format!(", {what} {}", names(all));
            }
        };
        and("env", container.env.iter().flatten().map(|variable| variable.name.as_str()).collect());
        and("volumes", spec.volumes.iter().flatten().map(|volume| volume.name.as_str()).collect());
        and("service account", spec.service_account_name.iter().map(String::as_str).collect());
        Some(text)
    }
}
