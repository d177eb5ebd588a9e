//! A pod as its runtime knows it: a sandbox, and the containers in it.

use std::collections::{BTreeMap, HashMap};

use boathook_api::pod_notification::ErrorType;
use boathook_cri::{
    Container, ContainerFilter, ContainerState, ListContainersRequest, ListPodSandboxRequest, PodSandboxFilter,
    PodSandboxState, PodSandboxStateValue, PodSandboxStatusRequest, labels,
};
use k8s_openapi::api::core::v1::ContainerPort;

use super::{Runtime, RuntimeError};
use crate::{Failure, Target, instance::Instance};

/// Under this name a kubelet keeps a container's ports, as JSON.
const PORTS: &str = "io.kubernetes.container.ports";

/// A pod's sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    pub id: String,
    /// The pod's, as they were when the sandbox was made: later changes are not in it.
    pub annotations: BTreeMap<String, String>,
    /// The pod's, unless it uses the node's network.
    pub address: Option<String>,
    /// The latest instance of each, by name.
    pub containers: Vec<SandboxContainer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxContainer {
    pub name: String,
    pub id: String,
    pub running: bool,
    ports: Vec<(String, u16)>,
}

impl Runtime {
    /// The sandbox of a pod; the latest, if it was made again. `None`: the pod does not run here.
    pub async fn sandbox(&self, pod_uid: &str) -> Result<Option<Sandbox>, RuntimeError> {
        let request = sandboxes(pod_uid, Some(PodSandboxState::SandboxReady));
        let listed = self.call("list sandboxes", async |mut client| client.list_pod_sandbox(request).await).await?;
        let Some(latest) = listed.items.into_iter().max_by_key(|sandbox| sandbox.created_at) else { return Ok(None) };

        let request = PodSandboxStatusRequest { pod_sandbox_id: latest.id.clone(), verbose: false };
        let told = self
            .call("return the status of a sandbox", async |mut client| client.pod_sandbox_status(request).await)
            .await?;
        let network = told.status.and_then(|status| status.network);
        let address = network.map(|network| network.ip).filter(|address| !address.is_empty());

        let filter = ContainerFilter { pod_sandbox_id: latest.id.clone(), ..ContainerFilter::default() };
        let request = ListContainersRequest { filter: Some(filter) };
        let listed = self.call("list containers", async |mut client| client.list_containers(request).await).await?;
        let containers = latest_of_each(listed.containers);
        Ok(Some(Sandbox { id: latest.id, annotations: latest.annotations.into_iter().collect(), address, containers }))
    }

    /// Whether it has a sandbox of the pod in any state. After the node's reboot none is ready, until it is made again.
    pub async fn knows(&self, pod_uid: &str) -> Result<bool, RuntimeError> {
        let request = sandboxes(pod_uid, None);
        let listed = self.call("list sandboxes", async |mut client| client.list_pod_sandbox(request).await).await?;
        Ok(!listed.items.is_empty())
    }

    pub(in crate::place) async fn find(&self, target: &Target) -> Result<Instance, Failure> {
        let Target { pod, pod_uid, container, .. } = target;
        let sandbox = self.sandbox(pod_uid).await?.ok_or_else(|| {
            let message = format!("pod `{pod}` (UID {pod_uid}) does not run on this node");
            Failure::new(ErrorType::PodNotFound, message)
        })?;
        let found = sandbox.containers.into_iter().find(|one| one.running && one.name == *container);
        let SandboxContainer { id, ports, .. } = found.ok_or_else(|| {
            let message = format!("container `{container}` of pod `{pod}` is not running");
            Failure::new(ErrorType::ContainerNotRunning, message)
        })?;
        let container_id = format!("{}://{id}", self.name().await?);
        Ok(Instance { container_id, address: sandbox.address, ports })
    }
}

/// Asks for the sandboxes of a pod in this state, or in any.
fn sandboxes(pod_uid: &str, state: Option<PodSandboxState>) -> ListPodSandboxRequest {
    let of_pod: HashMap<String, String> = [(labels::POD_UID.to_owned(), pod_uid.to_owned())].into();
    let state = state.map(|state| PodSandboxStateValue { state: state.into() });
    ListPodSandboxRequest { filter: Some(PodSandboxFilter { id: String::new(), state, label_selector: of_pod }) }
}

impl From<Container> for SandboxContainer {
    fn from(container: Container) -> Self {
        let running = container.state() == ContainerState::ContainerRunning;
        let Container { id, metadata, annotations, .. } = container;
        let ports = annotations.get(PORTS).map(|ports| named_ports(ports)).unwrap_or_default();
        Self { name: metadata.unwrap_or_default().name, id, running, ports }
    }
}

/// A runtime keeps containers that have ended for a while.
fn latest_of_each(mut all: Vec<Container>) -> Vec<SandboxContainer> {
    all.sort_by_key(|container| container.created_at);
    let by_name = all.into_iter().map(SandboxContainer::from).map(|container| (container.name.clone(), container));
    by_name.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// What cannot be read has no names: a number is always understood.
fn named_ports(json: &str) -> Vec<(String, u16)> {
    let ports: Vec<ContainerPort> = serde_json::from_str(json).unwrap_or_default();
    let named = ports.into_iter().filter_map(|port| Some((port.name?, u16::try_from(port.container_port).ok()?)));
    named.collect()
}

#[cfg(test)]
mod tests {
    use boathook_cri::ContainerMetadata;

    use super::*;

    #[test]
    fn of_a_restarted_container_the_latest_instance_is_told() {
        let container = |name: &str, id: &str, created_at, state: ContainerState| Container {
            id: id.to_owned(),
            metadata: Some(ContainerMetadata { name: name.to_owned(), attempt: 0 }),
            created_at,
            state: state.into(),
            ..Container::default()
        };
        let told = latest_of_each(vec![
            container("main", "new", 2, ContainerState::ContainerRunning),
            container("main", "old", 1, ContainerState::ContainerExited),
            container("a", "1", 3, ContainerState::ContainerCreated),
        ]);
        let told: Vec<_> = told.iter().map(|one| (one.name.as_str(), one.id.as_str(), one.running)).collect();
        assert_eq!(told, [("a", "1", false), ("main", "new", true)]);
    }

    #[test]
    fn ports_are_read_as_a_kubelet_writes_them() {
        let json = r#"[{"name":"web","containerPort":8080,"protocol":"TCP"},{"containerPort":9,"protocol":"TCP"}]"#;
        assert_eq!(named_ports(json), [("web".to_owned(), 8080)]);
        assert_eq!(named_ports("{"), []);
    }
}
