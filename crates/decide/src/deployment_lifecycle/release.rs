//! What Boathook removes from a Deployment that no lifecycle manages: the Deployment's annotation first, so that nothing new
//! is held, then the marks of its ReplicaSets, then its condition.
//!
//! Each write names the version that was read. A late one therefore cannot remove the marks of a newer lifecycle.

use super::{Deployment, ReplicaSet};

/// One write that removes a mark. It does nothing if the object is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// Removes the annotation of the Deployment, in the version that was read, or fails.
    Deployment { resource_version: String },
    /// Removes the annotation and the label of exactly this ReplicaSet, in the version that was read, or fails.
    ReplicaSet { name: String, uid: String, resource_version: String },
    /// Removes Boathook's condition from the Deployment. This also wakes the Deployment controller, which may have given up.
    Condition,
}

/// The writes that are still missing, in this order.
pub(super) fn release(deployment: Option<&Deployment>, replica_sets: &[ReplicaSet]) -> impl Iterator<Item = Release> {
    let annotated = deployment.filter(|deployment| deployment.lifecycle.is_some());
    let of_deployment = annotated
        .map(|deployment| Release::Deployment { resource_version: deployment.resource_version.clone() })
        .into_iter();
    let marked = replica_sets.iter().filter(|set| set.managed || set.gate.is_some());
    let of_sets = marked.map(|set| Release::ReplicaSet {
        name: set.name.clone(),
        uid: set.uid.clone(),
        resource_version: set.resource_version.clone(),
    });
    let condition = deployment.is_some_and(|deployment| deployment.ours.is_some()).then_some(Release::Condition);
    of_deployment.chain(of_sets).chain(condition)
}
