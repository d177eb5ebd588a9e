//! What of a pod notifications look at.

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;

use crate::{Declarations, Mistake};

/// The containers that may declare notifiers and run actions: ordinary ones and native sidecars.
pub fn containers(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.as_ref();
    let ordinary = spec.iter().flat_map(|spec| &spec.containers);
    let init = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars = init.filter(|container| is_sidecar(container));
    ordinary.chain(sidecars).map(|container| container.name.clone()).collect()
}

/// An init container that runs beside the others.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

impl Declarations {
    /// What the pod's author declared, as the pod carries it now.
    pub fn of_pod(pod: &Pod) -> Result<Self, Mistake> {
        Self::parse(pod.annotations(), &containers(pod))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(declaring: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"annotations": {
                format!("notifiers.boathook.dev/{declaring}"): "[{name: reload, handler: {signal: HUP}}]"}},
            "spec": {
                "containers": [{"name": "main"}],
                "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}, {"name": "setup"}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn ordinary_containers_and_sidecars_declare() {
        assert_eq!(containers(&pod("main")), ["main", "sidecar"]);
        for declaring in ["main", "sidecar"] {
            let declared = Declarations::of_pod(&pod(declaring)).unwrap();
            assert_eq!(declared.of("reload").next().map(|(container, _)| container), Some(declaring));
        }
        assert_eq!(Declarations::of_pod(&pod("setup")).unwrap_err().container, "setup");
    }
}
