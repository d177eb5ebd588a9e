//! Controller references: who controls what, and what a controller takes in or lets go by its selector.

use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::api::{Patch, PatchParams};
use kube::core::{Selector, SelectorExt};
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::cache::{Cache, Kept};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::write::gone_is_fine;

/// What lives in a namespace.
pub(crate) trait Object: Kept + Resource<DynamicType = (), Scope = NamespaceResourceScope> {}

impl<K: Kept + Resource<DynamicType = (), Scope = NamespaceResourceScope>> Object for K {}

/// What takes in others by their labels.
pub(crate) trait Owner: Object {
    fn label_selector(&self) -> Option<&LabelSelector>;

    fn selector(&self) -> Result<Selector> {
        selector(self.label_selector().unwrap_or(&LabelSelector::default()))
    }
}

impl Owner for ReplicaSet {
    fn label_selector(&self) -> Option<&LabelSelector> {
        self.spec.as_ref().map(|spec| &spec.selector)
    }
}

impl Owner for Deployment {
    fn label_selector(&self) -> Option<&LabelSelector> {
        self.spec.as_ref().map(|spec| &spec.selector)
    }
}

pub(crate) fn selector(selector: &LabelSelector) -> Result<Selector> {
    selector.clone().try_into().map_err(|error| Error::Other(format!("invalid selector: {error}")))
}

pub(crate) fn controller_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

pub(crate) fn is_controlled_by<K: Resource>(object: &K, owner: &impl Resource) -> bool {
    controller_of(object).is_some_and(|controller| Some(&controller.uid) == owner.meta().uid.as_ref())
}

/// The reference that `owner` puts on what it controls.
pub(crate) fn reference_to<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    let reference = owner.controller_owner_ref(&()).unwrap_or_default();
    OwnerReference { block_owner_deletion: Some(true), ..reference }
}

/// The controller of an object, if it is still the one that took it in.
pub(crate) fn owner<O: Owner>(owners: &Cache<O>, object: &impl Object) -> Option<Arc<O>> {
    let reference = controller_of(object).filter(|reference| reference.kind == O::kind(&()))?;
    let owner = owners.get(&Key::beside(object, &reference.name))?;
    (owner.meta().uid.as_ref() == Some(&reference.uid)).then_some(owner)
}

/// Those that may want an object that nobody controls.
pub(crate) fn possible_owners<O: Owner>(owners: &Cache<O>, orphan: &impl Object) -> Vec<Key> {
    let mut owners = owners.in_namespace(&orphan.namespace().unwrap_or_default());
    owners.retain(|owner| owner.selector().is_ok_and(|selector| selector.matches(orphan.labels())));
    owners.iter().map(|owner| Key::of(&**owner)).collect()
}

/// What a controller does with an object that may be its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Mine,
    Adopt,
    Release,
    NotMine,
}

pub(crate) fn claim(owner: &impl Resource, selector: &Selector, object: &impl Resource) -> Claim {
    let matches = selector.matches(object.labels());
    let owner_goes = owner.meta().deletion_timestamp.is_some();
    match controller_of(object) {
        Some(controller) if Some(&controller.uid) != owner.meta().uid.as_ref() => Claim::NotMine,
        Some(_) if matches => Claim::Mine,
        Some(_) if owner_goes => Claim::NotMine,
        Some(_) => Claim::Release,
        None if matches && !owner_goes && object.meta().deletion_timestamp.is_none() => Claim::Adopt,
        None => Claim::NotMine,
    }
}

/// Those of the objects that are the owner's own, after adoption and release.
pub(crate) async fn claim_all<O: Owner, K: Object>(
    cluster: &Cluster,
    owner: &O,
    objects: Vec<Arc<K>>,
) -> Result<Vec<Arc<K>>> {
    let (selector, key) = (owner.selector()?, Key::of(owner));
    let api = cluster.api::<K>(&key.namespace);
    let mut own = Vec::new();
    for object in objects {
        let (name, uid) = (object.name_any(), &object.meta().uid);
        let change = |owners| Patch::Strategic(json!({"metadata": {"uid": uid, "ownerReferences": [owners]}}));
        match claim(owner, &selector, &*object) {
            Claim::Mine => own.push(object),
            Claim::NotMine => {}
            Claim::Adopt => {
                // Asked of the API server itself: the cache may not know yet that the owner goes.
                let fresh = cluster.api::<O>(&key.namespace).get(&key.name).await?;
                if fresh.meta().uid == owner.meta().uid && fresh.meta().deletion_timestamp.is_none() {
                    let change = change(json!(reference_to(owner)));
                    own.push(Arc::new(api.patch(&name, &PatchParams::default(), &change).await?));
                }
            }
            Claim::Release => {
                let change = change(json!({"$patch": "delete", "uid": owner.meta().uid}));
                gone_is_fine(api.patch(&name, &PatchParams::default(), &change).await)?;
            }
        }
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::Value;

    use super::*;

    fn owner() -> ReplicaSet {
        serde_json::from_value(json!({"metadata": {"name": "web", "uid": "u1"}})).unwrap()
    }

    fn pod(metadata: Value) -> Pod {
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn an_orphan_that_matches_is_adopted_and_an_own_one_that_does_not_is_released() {
        let selector = Selector::from_iter([("app", "web")]);
        let reference =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": true}]);
        let foreign =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u2", "controller": true}]);
        let claim = |value| claim(&owner(), &selector, &pod(value));
        assert_eq!(claim(json!({"labels": {"app": "web"}})), Claim::Adopt);
        assert_eq!(claim(json!({"labels": {"app": "web"}, "ownerReferences": reference})), Claim::Mine);
        assert_eq!(claim(json!({"labels": {"app": "db"}, "ownerReferences": reference})), Claim::Release);
        assert_eq!(claim(json!({"labels": {"app": "web"}, "ownerReferences": foreign})), Claim::NotMine);
        assert_eq!(claim(json!({"labels": {"app": "db"}})), Claim::NotMine);
        let going = json!({"labels": {"app": "web"}, "deletionTimestamp": "2024-01-01T00:00:00Z"});
        assert_eq!(claim(going), Claim::NotMine);
    }
}
