//! A builder for pods, and what is asked of them while waiting.
//!
//! A built pod uses only images that are on the node, mounts no API token unless a scenario says so, and ends within a
//! second of its deletion, so that a namespace goes quickly.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        Container, EmptyDirVolumeSource, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector,
        PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodTemplateSpec, Probe, Volume, VolumeMount,
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

/// A shell script that does nothing until it is told to end, and then ends at once: pid 1 gets no default signal
/// handlers, so a plain `sleep` would stay until it is killed.
const IDLE: &str = "trap 'exit 0' TERM; sleep 2147483647 & wait";

/// A pod of one container, which is named `main`.
pub fn pod(name: &str, image: &str) -> PodBuilder {
    let container = Container {
        name: "main".to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("Never".to_owned()),
        ..Container::default()
    };
    let spec = PodSpec {
        automount_service_account_token: Some(false),
        // No test cluster has a DNS service. Saying so keeps the node's warnings about it out of the Events.
        dns_policy: Some("Default".to_owned()),
        termination_grace_period_seconds: Some(1),
        ..PodSpec::default()
    };
    PodBuilder { name: name.to_owned(), labels: BTreeMap::new(), annotations: BTreeMap::new(), container, spec }
}

#[derive(Clone)]
pub struct PodBuilder {
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    container: Container,
    spec: PodSpec,
}

impl PodBuilder {
    /// Instead of the image's own command.
    pub fn command<const N: usize>(mut self, command: [&str; N]) -> Self {
        self.container.command = Some(command.map(str::to_owned).into());
        self
    }

    /// Runs, does nothing, and ends at once when told to. Needs an image with a shell.
    pub fn idle(self) -> Self {
        self.command(["sh", "-c", IDLE])
    }

    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn annotation_of(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// How long it is given to end when it is deleted, instead of a second.
    pub fn grace(mut self, seconds: i64) -> Self {
        self.spec.termination_grace_period_seconds = Some(seconds);
        self
    }

    /// An empty volume that lives as long as the pod, in every container from now on.
    pub fn scratch(mut self, name: &str, path: &str) -> Self {
        let volume =
            Volume { name: name.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() };
        let mount = VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() };
        self.spec.volumes.get_or_insert_default().push(volume);
        self.container.volume_mounts.get_or_insert_default().push(mount);
        self
    }

    /// No scratch volume that it has so far may take more than this; its node ends it if one does.
    pub fn scratch_at_most(mut self, size: &str) -> Self {
        for scratch in self.spec.volumes.iter_mut().flatten().filter_map(|volume| volume.empty_dir.as_mut()) {
            scratch.size_limit = Some(Quantity(size.to_owned()));
        }
        self
    }

    /// Another container beside it, like the first one as it is so far.
    pub fn also(mut self, name: &str) -> Self {
        self.spec.containers.push(Container { name: name.to_owned(), ..self.container.clone() });
        self
    }

    /// A sidecar, like the first container as it is so far.
    pub fn sidecar(mut self, name: &str) -> Self {
        let (name, restart_policy) = (name.to_owned(), Some("Always".to_owned()));
        let sidecar = Container { name, restart_policy, ..self.container.clone() };
        self.spec.init_containers.get_or_insert_default().push(sidecar);
        self
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    pub fn env(self, name: &str, value: &str) -> Self {
        self.add_env(EnvVar { name: name.to_owned(), value: Some(value.to_owned()), ..EnvVar::default() })
    }

    /// An environment variable with a field of the pod, as `status.podIP`.
    pub fn env_from_field(self, name: &str, field: &str) -> Self {
        let field_ref = ObjectFieldSelector { field_path: field.to_owned(), ..ObjectFieldSelector::default() };
        let source = EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() };
        self.add_env(EnvVar { name: name.to_owned(), value_from: Some(source), ..EnvVar::default() })
    }

    /// Every container that it has so far finds its own name in `$CONTAINER`.
    pub fn containers_know_their_names(mut self) -> Self {
        for container in std::iter::once(&mut self.container).chain(&mut self.spec.containers) {
            let (name, value) = ("CONTAINER".to_owned(), Some(container.name.clone()));
            container.env.get_or_insert_default().push(EnvVar { name, value, ..EnvVar::default() });
        }
        self
    }

    pub fn mount_claim(mut self, claim: &str, path: &str) -> Self {
        let source = PersistentVolumeClaimVolumeSource { claim_name: claim.to_owned(), ..Default::default() };
        let volume = Volume { name: claim.to_owned(), persistent_volume_claim: Some(source), ..Volume::default() };
        let mount = VolumeMount { name: claim.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() };
        self.spec.volumes.get_or_insert_default().push(volume);
        self.container.volume_mounts.get_or_insert_default().push(mount);
        self
    }

    /// Ready only while a GET of this path on the pod's own address answers.
    pub fn ready_when_http_answers(mut self, path: &str, port: i32) -> Self {
        let get =
            HTTPGetAction { path: Some(path.to_owned()), port: IntOrString::Int(port), ..HTTPGetAction::default() };
        // The default timeout of one second is too short on a busy machine.
        self.container.readiness_probe =
            Some(Probe { http_get: Some(get), period_seconds: Some(1), timeout_seconds: Some(30), ..Probe::default() });
        self
    }

    pub fn build(self) -> Pod {
        let PodTemplateSpec { metadata, spec } = self.clone().template();
        let metadata = ObjectMeta { name: Some(self.name), ..metadata.unwrap_or_default() };
        Pod { metadata, spec, status: None }
    }

    /// The same pod as the template of a workload, which names its pods itself.
    pub fn template(mut self) -> PodTemplateSpec {
        self.spec.containers.insert(0, self.container);
        let labels = Some(self.labels).filter(|labels| !labels.is_empty());
        let annotations = Some(self.annotations).filter(|annotations| !annotations.is_empty());
        let metadata = ObjectMeta { labels, annotations, ..ObjectMeta::default() };
        PodTemplateSpec { metadata: Some(metadata), spec: Some(self.spec) }
    }

    fn add_env(mut self, variable: EnvVar) -> Self {
        self.container.env.get_or_insert_default().push(variable);
        self
    }
}

/// The pod's condition `Ready` is true.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The pod's containers have ended for good.
pub fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_mounted_under_its_own_name() {
        let spec = pod("writer", "image").mount_claim("data", "/data").build().spec.unwrap();
        let volume = &spec.volumes.unwrap()[0];
        assert_eq!(volume.persistent_volume_claim.as_ref().unwrap().claim_name, "data");
        let mount = &spec.containers[0].volume_mounts.as_ref().unwrap()[0];
        assert_eq!((mount.name.as_str(), mount.mount_path.as_str()), (volume.name.as_str(), "/data"));
    }

    #[test]
    fn nothing_is_pulled_and_no_token_is_mounted() {
        let spec = pod("box", "image").idle().build().spec.unwrap();
        assert_eq!(spec.containers[0].image_pull_policy.as_deref(), Some("Never"));
        assert_eq!(spec.automount_service_account_token, Some(false));
    }

    #[test]
    fn a_template_has_labels_and_no_name() {
        let metadata = pod("box", "image").label("app", "web").template().metadata.unwrap();
        assert_eq!(metadata.labels.unwrap()["app"], "web");
        assert_eq!(metadata.name, None);
    }
}
