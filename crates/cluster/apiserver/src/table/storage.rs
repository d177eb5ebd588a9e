//! Volumes, claims, storage classes, snapshots and CSI.

use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, boolean, made, text, text_or};
use super::read::{self, joined};
use crate::object;

pub(super) const VOLUME: &[BuiltInColumn] = &[
    NAME,
    text_or("Capacity", "/spec/capacity/storage", "0"),
    made("Access Modes", |volume, _| access_modes(volume, "/spec/accessModes")),
    text("Reclaim Policy", "/spec/persistentVolumeReclaimPolicy"),
    STATUS,
    made("Claim", |volume, _| match volume.pointer("/spec/claimRef") {
        None | Some(Value::Null) => "".into(),
        Some(claim) => format!("{}/{}", object::text(claim, "/namespace"), object::text(claim, "/name")).into(),
    }),
    CLASS,
    text_or("VolumeAttributesClass", "/spec/volumeAttributesClassName", "<unset>"),
    text("Reason", "/status/reason"),
    AGE,
    text_or("VolumeMode", "/spec/volumeMode", "<unset>").wide(),
];

pub(super) const CLAIM: &[BuiltInColumn] = &[
    NAME,
    STATUS,
    text("Volume", "/spec/volumeName"),
    made("Capacity", |claim, _| match object::text(claim, "/spec/volumeName") {
        "" => "".into(),
        _ => read::text_or(claim, "/status/capacity/storage", "0").into(),
    }),
    made("Access Modes", |claim, _| match object::text(claim, "/spec/volumeName") {
        "" => "".into(),
        _ => access_modes(claim, "/status/accessModes"),
    }),
    CLASS,
    text_or("VolumeAttributesClass", "/spec/volumeAttributesClassName", "<unset>"),
    AGE,
    text_or("VolumeMode", "/spec/volumeMode", "<unset>").wide(),
];

const STATUS: BuiltInColumn = made("Status", |object, _| match object::is_being_deleted(object) {
    true => "Terminating".into(),
    false => object::text(object, "/status/phase").into(),
});

/// The class by the annotation that came before the field.
const CLASS: BuiltInColumn = made("StorageClass", |object, _| {
    let annotation = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    read::text_or(object, annotation, object::text(object, "/spec/storageClassName")).into()
});

/// Short names in a fixed order, each once.
fn access_modes(object: &Value, pointer: &str) -> Value {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let modes = object::texts(object, pointer);
    let present = SHORT.into_iter().filter(|(long, _)| modes.iter().any(|mode| mode == long));
    joined(present.map(|(_, short)| short.to_owned()), "")
}

pub(super) const STORAGE_CLASS: &[BuiltInColumn] = &[
    made("Name", |class, _| {
        let is_default =
            |prefix| object::text(class, &format!("/metadata/annotations/{prefix}~1is-default-class")) == "true";
        let any = ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"].into_iter().any(is_default);
        format!("{}{}", object::name(class), if any { " (default)" } else { "" }).into()
    })
    .named(),
    text("Provisioner", "/provisioner"),
    text_or("ReclaimPolicy", "/reclaimPolicy", "Delete"),
    text_or("VolumeBindingMode", "/volumeBindingMode", "Immediate"),
    boolean("AllowVolumeExpansion", "/allowVolumeExpansion").called("string"),
    AGE,
];

pub(super) const CSI_DRIVER: &[BuiltInColumn] = &[
    NAME,
    made("AttachRequired", |driver, _| (driver.pointer("/spec/attachRequired") != Some(&Value::Bool(false))).into())
        .called("boolean"),
    boolean("PodInfoOnMount", "/spec/podInfoOnMount"),
    boolean("StorageCapacity", "/spec/storageCapacity"),
    made("TokenRequests", |driver, _| match read::is_there(driver, "/spec/tokenRequests") {
        true => {
            let requests = object::list(driver, "/spec/tokenRequests").iter();
            joined(requests.map(|request| object::text(request, "/audience").to_owned()), "")
        }
        false => "<unset>".into(),
    }),
    boolean("RequiresRepublish", "/spec/requiresRepublish"),
    made("Modes", |driver, _| joined(object::texts(driver, "/spec/volumeLifecycleModes"), "<none>")),
    AGE,
];

pub(super) const ATTACHMENT: &[BuiltInColumn] = &[
    NAME,
    text("Attacher", "/spec/attacher").named(),
    text("PV", "/spec/source/persistentVolumeName"),
    text("Node", "/spec/nodeName"),
    boolean("Attached", "/status/attached"),
    AGE,
];

pub(super) const SNAPSHOT: &[BuiltInColumn] = &[
    NAME,
    READY_TO_USE,
    text("SourcePVC", "/spec/source/persistentVolumeClaimName"),
    text("SourceSnapshotContent", "/spec/source/volumeSnapshotContentName"),
    text("RestoreSize", "/status/restoreSize"),
    text("SnapshotClass", "/spec/volumeSnapshotClassName"),
    text("SnapshotContent", "/status/boundVolumeSnapshotContentName"),
    made("CreationTime", |snapshot, now| match object::text(snapshot, "/status/creationTime") {
        "" => Value::Null,
        time => crate::time::age(time, now).into(),
    }),
    AGE,
];

pub(super) const SNAPSHOT_CONTENT: &[BuiltInColumn] = &[
    NAME,
    READY_TO_USE,
    made("RestoreSize", |content, _| content.pointer("/status/restoreSize").cloned().unwrap_or_default()),
    text("DeletionPolicy", "/spec/deletionPolicy"),
    text("Driver", "/spec/driver"),
    text("VolumeSnapshotClass", "/spec/volumeSnapshotClassName"),
    text("VolumeSnapshot", "/spec/volumeSnapshotRef/name"),
    text("VolumeSnapshotNamespace", "/spec/volumeSnapshotRef/namespace"),
    AGE,
];

pub(super) const SNAPSHOT_CLASS: &[BuiltInColumn] =
    &[NAME, text("Driver", "/driver"), text("DeletionPolicy", "/deletionPolicy"), AGE];

/// Empty until it is known.
const READY_TO_USE: BuiltInColumn =
    made("ReadyToUse", |object, _| object.pointer("/status/readyToUse").cloned().unwrap_or_default()).called("boolean");
