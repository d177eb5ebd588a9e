//! What is installed, as files for `deploy/`: for whoever installs with kubectl.

use serde::Serialize;
use serde_json::Value;

use crate::{
    NAMESPACE,
    apply::namespace_named,
    network_policy::{EXAMPLE_OF_API_SERVERS, only_api_servers},
    roles,
};

/// A file below `deploy/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub path: String,
    pub text: String,
}

/// All of them.
pub fn manifests() -> Vec<Manifest> {
    let crds = boathook_api::crds::all().into_iter().map(|crd| {
        let path = format!("crds/{}.yaml", crd.spec.names.plural);
        manifest(&path, "A kind of boathook.dev.", &[document(&crd)])
    });
    let controller = |name: &str, rules| {
        [
            document(&roles::account(name, NAMESPACE)),
            document(&roles::cluster_role(name, rules)),
            document(&roles::cluster_binding(name, NAMESPACE)),
            document(&roles::lease_role(NAMESPACE)),
            document(&roles::lease_binding(name, NAMESPACE)),
        ]
    };
    let others = [
        manifest("namespace.yaml", "Where Boathook's own objects live.", &[document(&namespace_named(NAMESPACE))]),
        manifest(
            "network-policy.yaml",
            &format!(
                "For a controller that runs in a pod: only the API servers reach it. Replace {EXAMPLE_OF_API_SERVERS} with their \
                 addresses."
            ),
            &[document(&only_api_servers("boathook", NAMESPACE))],
        ),
        manifest(
            "rbac/controller.yaml",
            "For `boathook controller`, which runs handlers through pods/exec.",
            &controller(roles::CONTROLLER, roles::controller()),
        ),
        manifest(
            "rbac/controller-agent.yaml",
            "For `boathook controller --executor agent`, which cannot exec: node agents run the handlers.",
            &controller(roles::CONTROLLER_WITH_AGENTS, roles::controller_with_agents()),
        ),
        manifest(
            "rbac/agent.yaml",
            "For `boathook agent`, on each node.",
            &[
                document(&roles::account(roles::AGENT, NAMESPACE)),
                document(&roles::cluster_role(roles::AGENT, roles::agent())),
                document(&roles::cluster_binding(roles::AGENT, NAMESPACE)),
            ],
        ),
        manifest(
            "rbac/notifier.yaml",
            "For people who notify pods: bind it to them in their namespaces.",
            &[document(&roles::cluster_role(roles::NOTIFIER, roles::notifier()))],
        ),
        manifest(
            "rbac/snapshotter.yaml",
            "For people who take snapshots: bind it to them in their namespaces.",
            &[document(&roles::cluster_role(roles::SNAPSHOTTER, roles::snapshotter()))],
        ),
        manifest(
            "rbac/deployer.yaml",
            "For people who follow rollouts, help them along, write and delete lifecycles: bind it to them in their namespaces.",
            &[document(&roles::cluster_role(roles::DEPLOYER, roles::deployer()))],
        ),
    ];
    crds.chain(others).collect()
}

fn document(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("an object made of our own types is JSON")
}

fn manifest(path: &str, about: &str, documents: &[Value]) -> Manifest {
    let yaml = documents
        .iter()
        .map(|document| serde_saphyr::to_string(document).expect("what is JSON is YAML").trim_end().to_owned() + "\n");
    let text = yaml.collect::<Vec<_>>().join("---\n");
    let head = "Made by `cargo xtask generate` from crates/install: edit it there.";
    Manifest { path: path.to_owned(), text: format!("# {about}\n# {head}\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rendered_is_read_as_what_was_meant() {
        let crds = boathook_api::crds::all();
        for crd in crds {
            let path = format!("crds/{}.yaml", crd.spec.names.plural);
            let found = manifests().into_iter().find(|manifest| manifest.path == path).unwrap();
            let read: Value = serde_saphyr::from_str(&found.text).unwrap();
            assert_eq!(read, document(&crd));
        }
    }
}
