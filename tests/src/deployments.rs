//! A builder for Deployments, and what is asked of them while they roll.

use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, ReplicaSet, RollingUpdateDeployment},
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::{Resource, ResourceExt};

use crate::pods::PodBuilder;

/// Added by the Deployment controller to the pods and the selector of each ReplicaSet.
pub const TEMPLATE_HASH_LABEL: &str = "pod-template-hash";

const REVISION_ANNOTATION: &str = "deployment.kubernetes.io/revision";

/// A Deployment of this template; its pods are labelled `app=NAME`.
pub fn deployment(name: &str, template: PodBuilder) -> DeploymentBuilder {
    let selector = LabelSelector { match_labels: Some([app_label(name)].into()), ..LabelSelector::default() };
    let (key, value) = app_label(name);
    let spec =
        DeploymentSpec { selector, template: template.label(&key, &value).template(), ..DeploymentSpec::default() };
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    DeploymentBuilder { metadata, spec }
}

pub struct DeploymentBuilder {
    metadata: ObjectMeta,
    spec: DeploymentSpec,
}

impl DeploymentBuilder {
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.spec.replicas = Some(replicas);
        self
    }

    /// Replaces pods one after the other: at most `surge` more, at most `unavailable` fewer than wanted.
    pub fn rolling(mut self, surge: i32, unavailable: i32) -> Self {
        let bounds = RollingUpdateDeployment {
            max_surge: Some(IntOrString::Int(surge)),
            max_unavailable: Some(IntOrString::Int(unavailable)),
        };
        self.spec.strategy =
            Some(DeploymentStrategy { type_: Some("RollingUpdate".to_owned()), rolling_update: Some(bounds) });
        self
    }

    /// Ends every old pod before the first new one is made.
    pub fn recreate(mut self) -> Self {
        self.spec.strategy = Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None });
        self
    }

    /// For what holds under both strategies.
    pub fn recreate_if(self, recreate: bool) -> Self {
        if recreate { self.recreate() } else { self }
    }

    /// How long a rollout, and each stage of it, may go without progress.
    pub fn progress_deadline(mut self, seconds: i32) -> Self {
        self.spec.progress_deadline_seconds = Some(seconds);
        self
    }

    /// How many old ReplicaSets are kept.
    pub fn history_limit(mut self, sets: i32) -> Self {
        self.spec.revision_history_limit = Some(sets);
        self
    }

    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        self
    }

    pub fn build(self) -> Deployment {
        Deployment { metadata: self.metadata, spec: Some(self.spec), status: None }
    }
}

/// What `kubectl rollout status` waits for: the controller has seen the latest spec, and every pod is of the latest
/// template and available.
pub fn is_rolled_out(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let wanted = spec.replicas.unwrap_or(1);
    status.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0)
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
}

/// The revision that the Deployment controller gave to a ReplicaSet, or saw last in a Deployment.
pub fn revision<K: Resource>(object: &K) -> Option<i64> {
    object.annotations().get(REVISION_ANNOTATION)?.parse().ok()
}

/// The ReplicaSet of the Deployment's latest revision.
pub fn newest<'a>(sets: impl IntoIterator<Item = &'a ReplicaSet>) -> Option<&'a ReplicaSet> {
    sets.into_iter().max_by_key(|set| revision(*set))
}

fn app_label(name: &str) -> (String, String) {
    ("app".to_owned(), name.to_owned())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::DeploymentStatus;

    use super::*;
    use crate::pods::pod;

    #[test]
    fn the_selector_is_a_label_of_the_template() {
        let spec = deployment("web", pod("web", "image")).build().spec.unwrap();
        let labels = spec.template.metadata.unwrap().labels.unwrap();
        assert_eq!(spec.selector.match_labels.unwrap(), labels);
    }

    #[test]
    fn a_rollout_is_not_over_while_an_old_pod_is_there_or_the_spec_is_unseen() {
        let mut deployment = deployment("web", pod("web", "image")).replicas(2).build();
        deployment.metadata.generation = Some(2);
        let done = DeploymentStatus {
            observed_generation: Some(2),
            replicas: Some(2),
            updated_replicas: Some(2),
            available_replicas: Some(2),
            ..DeploymentStatus::default()
        };
        let mut with = |status: DeploymentStatus| {
            deployment.status = Some(status);
            is_rolled_out(&deployment)
        };
        assert!(with(done.clone()));
        assert!(!with(DeploymentStatus { replicas: Some(3), ..done.clone() }));
        assert!(!with(DeploymentStatus { available_replicas: Some(1), ..done.clone() }));
        assert!(!with(DeploymentStatus { observed_generation: Some(1), ..done }));
    }
}
