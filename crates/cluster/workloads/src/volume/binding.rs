//! Which volume a claim gets, and how claims and volumes stand to each other. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::core::SelectorExt;

use crate::events::Weight;
use crate::key::Key;
use crate::{ownership, quantity};

pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

#[derive(Debug, PartialEq)]
pub(super) enum ForClaim {
    /// Stays, or becomes, Pending; what to tell about it.
    Wait(Option<Note>),
    /// Its data is out of reach: reason and message of the warning.
    Lost(&'static str, &'static str),
    /// Bind it to this volume.
    Bind(Arc<PersistentVolume>),
    /// A volume must be made for it.
    Provision,
}

pub(super) type Note = (Weight, &'static str, &'static str);

#[derive(Debug, PartialEq)]
pub(super) enum ForVolume {
    Phase(&'static str),
    /// Its claim is gone, and its policy says that it goes too.
    ReleaseAndDelete,
    Nothing,
}

/// The class that a claim asks for, or a volume has; empty for none. The annotation is the older way to say it.
fn class<'a>(object: &'a impl ResourceExt, named: Option<&'a String>) -> &'a str {
    object.annotations().get(CLASS).or(named).map_or("", String::as_str)
}

pub(super) fn class_of_claim(claim: &PersistentVolumeClaim) -> &str {
    class(claim, claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref()))
}

fn class_of_volume(volume: &PersistentVolume) -> &str {
    class(volume, volume.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref()))
}

fn reference(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

/// The claim that a volume is for.
pub(super) fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let reference = reference(volume)?.clone();
    Some(Key::new(reference.namespace.unwrap_or_default(), reference.name.unwrap_or_default()))
}

fn refers_to(reference: &ObjectReference, claim: &PersistentVolumeClaim) -> bool {
    let meta = &claim.metadata;
    reference.name == meta.name
        && reference.namespace == meta.namespace
        && reference.uid.as_ref().is_none_or(|uid| uid.is_empty() || Some(uid) == meta.uid.as_ref())
}

pub(super) fn wanted_bytes(claim: &PersistentVolumeClaim) -> u64 {
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
    requests.and_then(|requests| requests.get("storage")).map(quantity::bytes).unwrap_or_default()
}

pub(super) fn capacity(volume: &PersistentVolume) -> u64 {
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref());
    capacity.and_then(|capacity| capacity.get("storage")).map(quantity::bytes).unwrap_or_default()
}

/// Whether the volume can serve the claim, whoever holds it.
fn serves(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (Some(has), Some(wants)) = (&volume.spec, &claim.spec) else { return false };
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
    let modes = has.access_modes.clone().unwrap_or_default();
    volume.metadata.deletion_timestamp.is_none()
        && mode(&has.volume_mode) == mode(&wants.volume_mode)
        && class_of_volume(volume) == class_of_claim(claim)
        && wants.access_modes.iter().flatten().all(|mode| modes.contains(mode))
        && capacity(volume) >= wanted_bytes(claim)
}

fn is_selected(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref()).map(ownership::selector);
    selector.is_none_or(|selector| selector.is_ok_and(|selector| selector.matches(volume.labels())))
}

/// One held for this claim already, or else the smallest free one that serves it. While binding waits for a consumer,
/// only the former.
fn choose<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &'a [Arc<PersistentVolume>],
    waits: bool,
) -> Option<&'a Arc<PersistentVolume>> {
    let serving = || volumes.iter().filter(|volume| serves(volume, claim));
    let held = serving().find(|volume| reference(volume).is_some_and(|reference| refers_to(reference, claim)));
    let free = serving().filter(|volume| {
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        !waits && phase == Some("Available") && reference(volume).is_none() && is_selected(volume, claim)
    });
    held.or_else(|| free.min_by_key(|volume| capacity(volume)))
}

pub(super) fn for_claim(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    volumes: &[Arc<PersistentVolume>],
) -> ForClaim {
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).filter(|name| !name.is_empty());
    let bound = claim.annotations().contains_key(BIND_COMPLETED);
    let Some(name) = named else {
        if bound {
            let message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
            return ForClaim::Lost("ClaimLost", message);
        }
        return for_unbound(claim, class, volumes);
    };
    let volume = volumes.iter().find(|volume| volume.metadata.name.as_deref() == Some(name));
    match volume.map(|volume| (volume, reference(volume))) {
        None if bound => {
            ForClaim::Lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
        }
        None => ForClaim::Wait(None),
        Some((volume, Some(reference))) if refers_to(reference, claim) => ForClaim::Bind(volume.clone()),
        Some((_, Some(_))) if bound => {
            let message = "Two claims are bound to the same volume, this one is bound incorrectly";
            ForClaim::Lost("ClaimMisbound", message)
        }
        Some((_, Some(_))) => ForClaim::Wait(None),
        Some((volume, None)) if bound || serves(volume, claim) => ForClaim::Bind(volume.clone()),
        Some((_, None)) => {
            let message = "Cannot bind to requested volume: it does not satisfy the claim";
            ForClaim::Wait(Some((Weight::Warning, "VolumeMismatch", message)))
        }
    }
}

fn for_unbound(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    volumes: &[Arc<PersistentVolume>],
) -> ForClaim {
    let mode = class.and_then(|class| class.volume_binding_mode.as_deref());
    let waits = mode == Some("WaitForFirstConsumer") && !claim.annotations().contains_key(SELECTED_NODE);
    if let Some(volume) = choose(claim, volumes, waits) {
        return ForClaim::Bind(volume.clone());
    }
    if waits {
        let message = "waiting for first consumer to be created before binding";
        return ForClaim::Wait(Some((Weight::Normal, "WaitForFirstConsumer", message)));
    }
    if class_of_claim(claim).is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        return ForClaim::Wait(Some((Weight::Normal, "FailedBinding", message)));
    }
    ForClaim::Provision
}

/// `claim` is the one of the name that the volume refers to, if there is one.
pub(super) fn for_volume(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> ForVolume {
    let uid = reference(volume).and_then(|reference| reference.uid.as_ref()).filter(|uid| !uid.is_empty());
    // Without a uid it is meant for a claim that is not there yet.
    let Some(uid) = uid else { return ForVolume::Phase("Available") };
    if let Some(claim) = claim.filter(|claim| claim.metadata.uid.as_ref() == Some(uid)) {
        let bound = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
        // If not, it is being bound just now, or never: the claim says which.
        let is_bound = bound.is_some() && bound == volume.metadata.name.as_ref();
        return if is_bound { ForVolume::Phase("Bound") } else { ForVolume::Nothing };
    }
    match volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()) {
        Some("Delete") => ForVolume::ReleaseAndDelete,
        _ => ForVolume::Phase("Released"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(name: &str, size: &str, claim_ref: Value) -> Arc<PersistentVolume> {
        let spec = json!({"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c",
                          "persistentVolumeReclaimPolicy": "Delete", "claimRef": claim_ref});
        let value = json!({"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}});
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn claim(spec: Value, annotations: Value) -> PersistentVolumeClaim {
        let mut full = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "c",
                              "resources": {"requests": {"storage": "2Gi"}}});
        for (key, value) in spec.as_object().unwrap() {
            full[key] = value.clone();
        }
        let meta = json!({"name": "data", "namespace": "n", "uid": "u", "annotations": annotations});
        serde_json::from_value(json!({"metadata": meta, "spec": full})).unwrap()
    }

    fn class(mode: &str) -> StorageClass {
        serde_json::from_value(json!({"metadata": {"name": "c"}, "provisioner": "p", "volumeBindingMode": mode}))
            .unwrap()
    }

    fn bound_to(decision: ForClaim) -> String {
        match decision {
            ForClaim::Bind(volume) => volume.name_any(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_claim_gets_the_smallest_free_volume_that_is_large_enough() {
        let taken = json!({"name": "other", "namespace": "n", "uid": "x"});
        let volumes = [
            volume("large", "5Gi", Value::Null),
            volume("right", "3Gi", Value::Null),
            volume("small", "1Gi", Value::Null),
            volume("taken", "2Gi", taken),
        ];
        let claim = claim(json!({}), json!({}));
        assert_eq!(bound_to(for_claim(&claim, Some(&class("Immediate")), &volumes)), "right");
    }

    #[test]
    fn a_volume_made_for_the_claim_comes_first() {
        let mine = json!({"name": "data", "namespace": "n", "uid": "u"});
        let volumes = [volume("right", "2Gi", Value::Null), volume("mine", "9Gi", mine)];
        let claim = claim(json!({}), json!({}));
        assert_eq!(bound_to(for_claim(&claim, Some(&class("Immediate")), &volumes)), "mine");
    }

    #[test]
    fn another_class_mode_or_label_does_not_serve() {
        let volumes = [volume("v", "2Gi", Value::Null)];
        for spec in [
            json!({"storageClassName": "other"}),
            json!({"accessModes": ["ReadWriteMany"]}),
            json!({"volumeMode": "Block"}),
            json!({"selector": {"matchLabels": {"tier": "gold"}}}),
        ] {
            assert_eq!(for_claim(&claim(spec, json!({})), Some(&class("Immediate")), &volumes), ForClaim::Provision);
        }
    }

    #[test]
    fn a_claim_that_waits_for_its_consumer_is_provisioned_once_a_node_is_selected() {
        let volumes = [volume("v", "2Gi", Value::Null)];
        let class = class("WaitForFirstConsumer");
        assert!(matches!(for_claim(&claim(json!({}), json!({})), Some(&class), &volumes), ForClaim::Wait(Some(_))));
        let selected = claim(json!({}), json!({SELECTED_NODE: "node"}));
        assert_eq!(for_claim(&selected, Some(&class), &[]), ForClaim::Provision);
    }

    #[test]
    fn without_class_and_volume_a_claim_says_why_it_waits() {
        let decision = for_claim(&claim(json!({"storageClassName": ""}), json!({})), None, &[]);
        assert!(matches!(decision, ForClaim::Wait(Some((_, "FailedBinding", _)))));
    }

    #[test]
    fn a_bound_claim_without_its_volume_is_lost() {
        let bound = claim(json!({"volumeName": "v"}), json!({BIND_COMPLETED: "yes"}));
        assert!(matches!(for_claim(&bound, None, &[]), ForClaim::Lost("ClaimLost", _)));
        let another = json!({"name": "data", "namespace": "n", "uid": "younger"});
        let decision = for_claim(&bound, None, &[volume("v", "2Gi", another)]);
        assert!(matches!(decision, ForClaim::Lost("ClaimMisbound", _)));
    }

    #[test]
    fn a_volume_is_available_bound_or_released() {
        let free = volume("v", "2Gi", Value::Null);
        assert_eq!(for_volume(&free, None), ForVolume::Phase("Available"));
        let held = volume("v", "2Gi", json!({"name": "data", "namespace": "n", "uid": "u"}));
        let bound = claim(json!({"volumeName": "v"}), json!({}));
        assert_eq!(for_volume(&held, Some(&bound)), ForVolume::Phase("Bound"));
        assert_eq!(for_volume(&held, None), ForVolume::ReleaseAndDelete);
        let mut kept = Arc::unwrap_or_clone(held);
        kept.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Retain".to_owned());
        assert_eq!(for_volume(&kept, None), ForVolume::Phase("Released"));
    }
}
