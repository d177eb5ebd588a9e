//! A story that is over: every change in the API server's order, and what is read from it.

use std::collections::BTreeMap;

use boathook_api::words::{LIFECYCLE, STAGE_LABEL};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{ContainerState, ContainerStatus, Pod, PodTemplateSpec},
};
use kube::{Resource, ResourceExt};

use super::story::{Moment, Now, Thing};
use crate::{deployments::TEMPLATE_HASH_LABEL, pods::is_terminal};

pub struct History {
    moments: Vec<Moment>,
}

impl History {
    /// Each kind is watched by itself: only the versions say in which order all of it was.
    pub(super) fn of(mut moments: Vec<Moment>) -> Self {
        moments.sort_by_key(|moment| moment.version);
        Self { moments }
    }

    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Each change with what there was before it.
    pub fn steps(&self) -> impl Iterator<Item = (Now, &Moment)> {
        let mut now = Now::default();
        self.moments.iter().map(move |moment| {
            let before = now.clone();
            now.take(moment);
            (before, moment)
        })
    }

    /// Every hook that was run, as `pre v2`: the stage and the version whose hook it was, once for each time that its
    /// command was started, in the order of the pods.
    pub fn runs(&self) -> Vec<String> {
        let mut pods: BTreeMap<String, (u64, String, i32)> = BTreeMap::new();
        for Moment { version, thing, .. } in &self.moments {
            let Thing::Pod(pod) = thing else { continue };
            let Some(stage) = hook_stage(pod) else { continue };
            let words = format!("{stage} {}", version_of_pod(pod));
            let known = pods.entry(pod.uid().unwrap_or_default()).or_insert((*version, words, 0));
            known.2 = known.2.max(main(pod).map_or(0, starts));
        }
        let mut pods: Vec<_> = pods.into_values().collect();
        pods.sort();
        pods.into_iter().flat_map(|(_, words, starts)| (0..starts).map(move |_| words.clone())).collect()
    }
}

/// How often the container was started.
fn starts(container: &ContainerStatus) -> i32 {
    let state = container.state.as_ref();
    // One that never was has ended all the same when its pod's time is over.
    let ended = |state: &ContainerState| state.terminated.as_ref().is_some_and(|ended| ended.started_at.is_some());
    let now = state.is_some_and(|state| state.running.is_some() || ended(state));
    container.restart_count + i32::from(now)
}

/// What the pod says of its container `main`.
pub(super) fn main(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.iter().find(|container| container.name == "main")
}

/// The exit code of its container `main`, if that has ended.
pub(super) fn exit_code(pod: &Pod) -> Option<i32> {
    Some(main(pod)?.state.as_ref()?.terminated.as_ref()?.exit_code)
}

/// The stage whose hook this pod runs.
pub fn hook_stage(pod: &Pod) -> Option<&str> {
    pod.labels().get(STAGE_LABEL).map(String::as_str)
}

pub fn is_hook(pod: &Pod) -> bool {
    hook_stage(pod).is_some()
}

/// Something in it may run.
pub fn is_live(pod: &Pod) -> bool {
    !is_terminal(pod)
}

/// Whether its rollouts are held.
pub fn is_managed<K: Resource>(object: &K) -> bool {
    object.annotations().contains_key(LIFECYCLE)
}

/// The template of a ReplicaSet as its Deployment has it.
pub fn template_of(set: &ReplicaSet) -> Option<PodTemplateSpec> {
    let mut template = set.spec.as_ref()?.template.clone()?;
    let labels = template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut());
    labels.map(|labels| labels.remove(TEMPLATE_HASH_LABEL));
    Some(template)
}

/// The version that a Deployment is to have.
pub fn version_of(deployment: &Deployment) -> String {
    let template = deployment.spec.as_ref().map(|spec| &spec.template);
    template.and_then(|template| template.spec.as_ref()).map(version_in).unwrap_or_default()
}

/// The version that a pod is of, or whose hook it runs.
pub fn version_of_pod(pod: &Pod) -> String {
    pod.spec.as_ref().map(version_in).unwrap_or_default()
}

fn version_in(spec: &k8s_openapi::api::core::v1::PodSpec) -> String {
    let variables = spec.containers.iter().flat_map(|container| container.env.iter().flatten());
    let version = variables.into_iter().find(|variable| variable.name == "VERSION");
    version.and_then(|variable| variable.value.clone()).unwrap_or_default()
}
