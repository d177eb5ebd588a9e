//! Volumes, claims, storage classes and CSI.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, boolean, integer, text, wide};
use super::read::{age, flag, is_there, list, text_or, texts};
use crate::object;

pub(super) const VOLUME: &[BuiltInColumn] = &[
    NAME,
    text("Capacity"),
    text("Access Modes"),
    text("Reclaim Policy"),
    text("Status"),
    text("Claim"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    text("Reason"),
    AGE,
    wide("VolumeMode"),
];

pub(super) fn volume(volume: &Value, now: Timestamp) -> Vec<Value> {
    let claim = match volume.pointer("/spec/claimRef") {
        None | Some(Value::Null) => String::new(),
        Some(claim) => format!("{}/{}", object::text(claim, "/namespace"), object::text(claim, "/name")),
    };
    vec![
        object::name(volume).into(),
        text_or(volume, "/spec/capacity/storage", "0").into(),
        access_modes(volume, "/spec/accessModes").into(),
        object::text(volume, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(volume).into(),
        claim.into(),
        class(volume).into(),
        text_or(volume, "/spec/volumeAttributesClassName", "<unset>").into(),
        object::text(volume, "/status/reason").into(),
        age(volume, now).into(),
        text_or(volume, "/spec/volumeMode", "<unset>").into(),
    ]
}

pub(super) const CLAIM: &[BuiltInColumn] = &[
    NAME,
    text("Status"),
    text("Volume"),
    text("Capacity"),
    text("Access Modes"),
    text("StorageClass"),
    text("VolumeAttributesClass"),
    AGE,
    wide("VolumeMode"),
];

pub(super) fn claim(claim: &Value, now: Timestamp) -> Vec<Value> {
    let volume = object::text(claim, "/spec/volumeName");
    let (capacity, modes) = match volume {
        "" => ("", String::new()),
        _ => (text_or(claim, "/status/capacity/storage", "0"), access_modes(claim, "/status/accessModes")),
    };
    vec![
        object::name(claim).into(),
        phase(claim).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class(claim).into(),
        text_or(claim, "/spec/volumeAttributesClassName", "<unset>").into(),
        age(claim, now).into(),
        text_or(claim, "/spec/volumeMode", "<unset>").into(),
    ]
}

fn phase(object: &Value) -> &str {
    if object::is_being_deleted(object) { "Terminating" } else { object::text(object, "/status/phase") }
}

/// The class by the annotation that came before the field.
fn class(object: &Value) -> &str {
    let annotated = object::text(object, "/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    if annotated.is_empty() { object::text(object, "/spec/storageClassName") } else { annotated }
}

/// Short names in a fixed order, each once.
fn access_modes(object: &Value, pointer: &str) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let modes = texts(object, pointer);
    let present = SHORT.into_iter().filter(|(long, _)| modes.contains(long));
    present.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

pub(super) const STORAGE_CLASS: &[BuiltInColumn] =
    &[NAME, text("Provisioner"), text("ReclaimPolicy"), text("VolumeBindingMode"), text("AllowVolumeExpansion"), AGE];

pub(super) fn storage_class(class: &Value, now: Timestamp) -> Vec<Value> {
    let is_default = ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"]
        .iter()
        .any(|prefix| object::text(class, &format!("/metadata/annotations/{prefix}~1is-default-class")) == "true");
    let suffix = if is_default { " (default)" } else { "" };
    vec![
        format!("{}{suffix}", object::name(class)).into(),
        object::text(class, "/provisioner").into(),
        text_or(class, "/reclaimPolicy", "Delete").into(),
        text_or(class, "/volumeBindingMode", "Immediate").into(),
        flag(class, "/allowVolumeExpansion", false).into(),
        age(class, now).into(),
    ]
}

pub(super) const CSI_DRIVER: &[BuiltInColumn] = &[
    NAME,
    boolean("AttachRequired"),
    boolean("PodInfoOnMount"),
    boolean("StorageCapacity"),
    text("TokenRequests"),
    boolean("RequiresRepublish"),
    text("Modes"),
    AGE,
];

pub(super) fn csi_driver(driver: &Value, now: Timestamp) -> Vec<Value> {
    let requests = list(driver, "/spec/tokenRequests").iter().map(|request| object::text(request, "/audience"));
    let requests = match is_there(driver, "/spec/tokenRequests") {
        true => requests.collect::<Vec<_>>().join(","),
        false => "<unset>".to_owned(),
    };
    let modes = match texts(driver, "/spec/volumeLifecycleModes").join(",") {
        modes if modes.is_empty() => "<none>".to_owned(),
        modes => modes,
    };
    vec![
        object::name(driver).into(),
        flag(driver, "/spec/attachRequired", true).into(),
        flag(driver, "/spec/podInfoOnMount", false).into(),
        flag(driver, "/spec/storageCapacity", false).into(),
        requests.into(),
        flag(driver, "/spec/requiresRepublish", false).into(),
        modes.into(),
        age(driver, now).into(),
    ]
}

pub(super) const CSI_NODE: &[BuiltInColumn] = &[NAME, integer("Drivers"), AGE];

pub(super) fn csi_node(node: &Value, now: Timestamp) -> Vec<Value> {
    vec![object::name(node).into(), list(node, "/spec/drivers").len().into(), age(node, now).into()]
}

pub(super) const ATTACHMENT: &[BuiltInColumn] =
    &[NAME, text("Attacher").named(), text("PV"), text("Node"), boolean("Attached"), AGE];

pub(super) fn attachment(attachment: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object::name(attachment).into(),
        object::text(attachment, "/spec/attacher").into(),
        object::text(attachment, "/spec/source/persistentVolumeName").into(),
        object::text(attachment, "/spec/nodeName").into(),
        flag(attachment, "/status/attached", false).into(),
        age(attachment, now).into(),
    ]
}
