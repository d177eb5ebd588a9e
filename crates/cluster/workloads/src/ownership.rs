//! Controller references: who controls what, and what a controller takes in or lets go by its selector.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::{Selector, SelectorExt};
use serde_json::{Value, json};

use crate::error::{Error, Result};

pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

pub(crate) fn is_controlled_by<K: Resource>(meta: &ObjectMeta, owner: &K) -> bool {
    let uid = owner.meta().uid.as_deref();
    controller_of(meta).is_some_and(|controller| Some(controller.uid.as_str()) == uid)
}

/// The reference that `owner` puts on what it controls.
pub(crate) fn reference_to<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

pub(crate) fn selector(selector: &LabelSelector) -> Result<Selector> {
    selector.clone().try_into().map_err(|error| Error::Other(format!("invalid selector: {error}")))
}

pub(crate) fn selects(selector: &Selector, meta: &ObjectMeta) -> bool {
    match &meta.labels {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&std::collections::BTreeMap::new()),
    }
}

/// What a controller does with an object that may be its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Mine,
    Adopt,
    Release,
    NotMine,
}

pub(crate) fn claim<K: Resource>(owner: &K, selector: &Selector, meta: &ObjectMeta) -> Claim {
    let matches = selects(selector, meta);
    let owner_goes = owner.meta().deletion_timestamp.is_some();
    match controller_of(meta) {
        Some(controller) if Some(&controller.uid) != owner.meta().uid.as_ref() => Claim::NotMine,
        Some(_) if matches => Claim::Mine,
        Some(_) if owner_goes => Claim::NotMine,
        Some(_) => Claim::Release,
        None if matches && !owner_goes && meta.deletion_timestamp.is_none() => Claim::Adopt,
        None => Claim::NotMine,
    }
}

/// A strategic merge patch, held to the uid that was seen.
pub(crate) fn adoption<K: Resource<DynamicType = ()>>(owner: &K, meta: &ObjectMeta) -> Value {
    json!({"metadata": {"uid": meta.uid, "ownerReferences": [reference_to(owner)]}})
}

pub(crate) fn release<K: Resource>(owner: &K, meta: &ObjectMeta) -> Value {
    json!({"metadata": {"uid": meta.uid, "ownerReferences": [{"$patch": "delete", "uid": owner.meta().uid}]}})
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;

    use super::*;

    fn owner() -> ReplicaSet {
        serde_json::from_value(json!({"metadata": {"name": "web", "uid": "u1"}})).unwrap()
    }

    fn meta(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_orphan_that_matches_is_adopted_and_an_own_one_that_does_not_is_released() {
        let selector = Selector::from_iter([("app", "web")]);
        let reference =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": true}]);
        let foreign =
            json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u2", "controller": true}]);
        let claim = |value| claim(&owner(), &selector, &meta(value));
        assert_eq!(claim(json!({"labels": {"app": "web"}})), Claim::Adopt);
        assert_eq!(claim(json!({"labels": {"app": "web"}, "ownerReferences": reference})), Claim::Mine);
        assert_eq!(claim(json!({"labels": {"app": "db"}, "ownerReferences": reference})), Claim::Release);
        assert_eq!(claim(json!({"labels": {"app": "web"}, "ownerReferences": foreign})), Claim::NotMine);
        assert_eq!(claim(json!({"labels": {"app": "db"}})), Claim::NotMine);
        let going = json!({"labels": {"app": "web"}, "deletionTimestamp": "2024-01-01T00:00:00Z"});
        assert_eq!(claim(going), Claim::NotMine);
    }
}
