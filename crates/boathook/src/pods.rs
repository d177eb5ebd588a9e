//! The pods that a person means: found by name, by label, by node.

use anyhow::{Result, anyhow};
use boathook_api::{Declarations, Mistake, action::Deed};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt, api::ListParams};

use crate::objects;

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespace(String),
    AllNamespaces,
}

/// Which pods are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Named(String),
    /// All of which both hold, as far as they are said.
    Matching {
        labels: Option<String>,
        node: Option<String>,
    },
}

/// A pod that may be notified.
#[derive(Clone, Debug)]
pub(crate) struct FoundPod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) node: Option<String>,
    /// Its phase, or `Terminating`, as kubectl says.
    pub(crate) phase: String,
    pub(crate) declared: Result<Declarations, Mistake>,
}

impl Scope {
    pub(crate) fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        match self {
            Self::Namespace(namespace) => Api::namespaced(client.clone(), namespace),
            Self::AllNamespaces => Api::all(client.clone()),
        }
    }

    /// For a sentence: `in namespace NAME`.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Namespace(namespace) => format!("in namespace `{namespace}`"),
            Self::AllNamespaces => "in any namespace".to_owned(),
        }
    }
}

impl Choice {
    /// For a sentence: which pods.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Named(name) => format!("pod `{name}`"),
            Self::Matching { labels: None, node: None } => "pods".to_owned(),
            Self::Matching { labels: Some(labels), node: None } => format!("pods with `{labels}`"),
            Self::Matching { labels: None, node: Some(node) } => format!("pods on node `{node}`"),
            Self::Matching { labels: Some(labels), node: Some(node) } => {
                format!("pods with `{labels}` on node `{node}`")
            }
        }
    }
}

impl FoundPod {
    pub(crate) fn is_running(&self) -> bool {
        self.phase == "Running"
    }

    /// The containers that declare this notifier. None of a pod whose declaration is broken.
    pub(crate) fn declaring(&self, notifier: &str) -> Vec<&str> {
        let declared = self.declared.as_ref().ok();
        declared.into_iter().flat_map(|declared| declared.of(notifier)).map(|(container, _)| container).collect()
    }
}

impl FoundPod {
    /// Whether this notifier sends a signal in some container.
    pub(crate) fn sends_signal(&self, notifier: &str) -> bool {
        let declared = self.declared.as_ref().into_iter();
        let mut of = declared.flat_map(|declared| declared.of(notifier));
        of.any(|(_, notifier)| matches!(notifier.action.deed, Deed::Signal(_)))
    }
}

impl From<Pod> for FoundPod {
    fn from(pod: Pod) -> Self {
        let declared = Declarations::of_pod(&pod);
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        let terminating = pod.metadata.deletion_timestamp.is_some();
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            phase: if terminating { "Terminating".to_owned() } else { phase.unwrap_or_else(|| "Unknown".to_owned()) },
            node: pod.spec.and_then(|spec| spec.node_name),
            declared,
        }
    }
}

/// The pods, in the order of their namespaces and names. A named one that is not there is an error.
pub(crate) async fn find(client: &Client, scope: &Scope, choice: &Choice) -> Result<Vec<FoundPod>> {
    match choice {
        Choice::Named(name) => {
            let found = objects::find::<Pod>(client, scope, name).await?;
            let pod = found.ok_or_else(|| anyhow!("there is no pod `{name}` {}", scope.place()))?;
            Ok(vec![pod.into()])
        }
        Choice::Matching { labels, node } => {
            let mut params = ListParams::default();
            params.label_selector.clone_from(labels);
            params.field_selector = node.as_ref().map(|node| format!("spec.nodeName={node}"));
            let found: Vec<Pod> = objects::list(client, scope, params).await?;
            Ok(found.into_iter().map(FoundPod::from).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(phase: &str, deleted: Option<&str>) -> FoundPod {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "deletionTimestamp": deleted, "annotations": {
                "notifiers.boathook.dev/main": "[{name: reload, handler: {signal: HUP}}]"}},
            "spec": {"containers": [{"name": "main"}, {"name": "other"}]},
            "status": {"phase": phase},
        }))
        .unwrap();
        pod.into()
    }

    #[test]
    fn a_pod_that_ends_does_not_run() {
        assert!(found("Running", None).is_running());
        assert!(!found("Pending", None).is_running());
        let ending = found("Running", Some("2026-01-01T00:00:00Z"));
        assert_eq!((ending.is_running(), ending.phase.as_str()), (false, "Terminating"));
    }

    #[test]
    fn only_the_containers_that_declare_it_are_meant() {
        assert_eq!(found("Running", None).declaring("reload"), ["main"]);
        assert!(found("Running", None).declaring("rotate").is_empty());
    }

    #[test]
    fn a_choice_can_be_said() {
        let choice = |labels: Option<&str>, node: Option<&str>| {
            Choice::Matching { labels: labels.map(str::to_owned), node: node.map(str::to_owned) }.words()
        };
        assert_eq!(choice(Some("app=web"), Some("n1")), "pods with `app=web` on node `n1`");
        assert_eq!(choice(None, None), "pods");
        assert_eq!(Scope::Namespace("default".to_owned()).place(), "in namespace `default`");
    }
}
