//! The objects that a snapshot makes: hooks and VolumeSnapshots, by names that are the same whoever makes them.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::{ApplicationSnapshotStatus, ExecutionHookInfo, HookRecord, SnapshotRecord},
    execution_hook::ExecutionHookSpec,
    volume_snapshot::{VolumeSnapshot, VolumeSnapshotSource, VolumeSnapshotSpec},
    words::{APPLICATION_SNAPSHOT_LABEL, APPLICATION_SNAPSHOT_UID, THAW_FINALIZER},
};
use kube::{Resource, ResourceExt, core::ObjectMeta};

use crate::naming;

/// The name of a snapshot's hook by its place in the list.
pub fn hook_name(object: &ApplicationSnapshot, place: usize) -> String {
    naming::derived(&object.name_any(), &[object.uid().unwrap_or_default().as_str(), &place.to_string()])
}

/// The name of the snapshot that the admission of a marked VolumeSnapshot asks for.
pub fn intent_name(volume_snapshot: &str, uid: &str) -> String {
    naming::derived(volume_snapshot, &[uid])
}

/// The name of the VolumeSnapshot of a claim: the object's own, or with the claim's if there are several.
pub fn snapshot_name(object: &ApplicationSnapshot, claim: &str, claims: usize) -> String {
    match (&object.spec.source.volume_snapshot_name, claims) {
        (Some(name), _) => name.clone(),
        (None, 1) => object.name_any(),
        (None, _) => format!("{}-{claim}", object.name_any()),
    }
}

/// The hook of a snapshot at this place in its list.
pub fn hook(object: &ApplicationSnapshot, status: &ApplicationSnapshotStatus, place: usize) -> ExecutionHook {
    let HookRecord { name, execution_hook_template_name, pod_container_names_list, .. } = &status.hooks[place];
    let info = object.spec.execution_hook_infos.get(place);
    let own = |info: &ExecutionHookInfo| info.pod_container_names_list.clone();
    let spec = ExecutionHookSpec {
        execution_hook_template_name: Some(execution_hook_template_name.clone()),
        pre_action: None,
        post_action: None,
        expiration_seconds: None,
        policy: None,
        pod_container_names_list: pod_container_names_list.clone().or_else(|| info.and_then(own)),
        pod_selector: info.and_then(|info| info.pod_selector.clone()),
        container_selector: info.and_then(|info| info.container_selector.clone()),
        thaw_requested: false,
        expiration_time_seconds: None,
    };
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: object.namespace(),
        owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
        labels: naming::label(APPLICATION_SNAPSHOT_LABEL, object.name_any()),
        // Set from the start: one write less before the freeze.
        finalizers: Some(vec![THAW_FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    ExecutionHook { metadata, spec, status: None }
}

/// It is not owned: deleting the ApplicationSnapshot keeps snapshots.
pub(super) fn snapshot(object: &ApplicationSnapshot, record: &SnapshotRecord) -> VolumeSnapshot {
    let spec = VolumeSnapshotSpec {
        volume_snapshot_class_name: object.spec.volume_snapshot_class_name.clone(),
        source: VolumeSnapshotSource {
            persistent_volume_claim_name: Some(record.persistent_volume_claim_name.clone()),
            volume_snapshot_content_name: None,
        },
    };
    let metadata = ObjectMeta {
        name: Some(record.volume_snapshot_name.clone()),
        namespace: object.namespace(),
        labels: naming::label(APPLICATION_SNAPSHOT_LABEL, object.name_any()),
        annotations: Some([(APPLICATION_SNAPSHOT_UID.to_owned(), object.uid().unwrap_or_default())].into()),
        ..ObjectMeta::default()
    };
    VolumeSnapshot { metadata, spec, status: None }
}
