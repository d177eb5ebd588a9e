//! Short words for what is asked of a pod object all the time.

use std::time::Duration;

use boathook_workloads::pod;
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod, PodSpec};
use kube::{Resource, ResourceExt};

pub(super) trait PodExt {
    fn namespaced_name(&self) -> (String, String);
    fn pod_spec(&self) -> &PodSpec;
    fn uid_text(&self) -> &str;
    /// `name_namespace(uid)`, as the kubelet names a pod in messages.
    fn described(&self) -> String;
    fn all_containers(&self) -> impl Iterator<Item = &Container>;
    /// One of its containers, as events name it.
    fn part(&self, container: &str) -> ObjectReference;
    fn is_ended(&self) -> bool;
    fn grace(&self) -> Duration;
}

impl PodExt for Pod {
    fn namespaced_name(&self) -> (String, String) {
        (self.namespace().unwrap_or_default(), self.name_any())
    }

    fn pod_spec(&self) -> &PodSpec {
        self.spec.as_ref().expect("a pod from the API server has a spec")
    }

    fn uid_text(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn described(&self) -> String {
        format!("{}_{}({})", self.name_any(), self.namespace().unwrap_or_default(), self.uid_text())
    }

    fn all_containers(&self) -> impl Iterator<Item = &Container> {
        let spec = self.pod_spec();
        spec.init_containers.iter().flatten().chain(&spec.containers)
    }

    fn part(&self, container: &str) -> ObjectReference {
        let main = self.pod_spec().containers.iter().any(|main| main.name == container);
        let list = if main { "containers" } else { "initContainers" };
        let field_path = Some(format!("spec.{list}{{{container}}}"));
        ObjectReference { resource_version: self.resource_version(), field_path, ..self.object_ref(&()) }
    }

    fn is_ended(&self) -> bool {
        pod::is_finished(self)
    }

    fn grace(&self) -> Duration {
        let asked = self.metadata.deletion_grace_period_seconds;
        let seconds = asked.or(self.pod_spec().termination_grace_period_seconds).unwrap_or(30);
        Duration::from_secs(seconds.max(0).unsigned_abs())
    }
}
