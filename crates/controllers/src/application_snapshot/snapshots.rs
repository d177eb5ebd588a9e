//! The VolumeSnapshots that an object is about, and whether the storage has cut them.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::Phase,
    volume_snapshot::{VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotError},
    words::{APPLICATION_SNAPSHOT_UID, CONSISTENCY},
};
use boathook_decide::application_snapshot::SeenSnapshot;
use boathook_runtime::in_time;
use kube::{Api, ResourceExt, runtime::reflector::ObjectRef};
use snafu::ResultExt;

use super::{
    Controller,
    observe::{ContentSnafu, ObserveError, SnapshotSnafu},
};

/// Those of these names. While it matters, what the watch does not have is looked up.
pub(super) async fn look_at(
    controller: &Controller,
    object: &ApplicationSnapshot,
    names: &[String],
) -> Result<Vec<SeenSnapshot>, ObserveError> {
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<VolumeSnapshot> = Api::namespaced(controller.surroundings.client.clone(), &namespace);
    let phase = object.status.as_ref().map(|status| status.phase).unwrap_or_default();
    let mut found = Vec::new();
    for name in names {
        let known = controller.surroundings.snapshots.get(&ObjectRef::new(name).within(&namespace));
        let snapshot = match known.and_then(|snapshot| snapshot.0.as_ref().ok().cloned()) {
            Some(snapshot) => Some(snapshot),
            None if phase.is_terminal() => None,
            None => in_time(api.get_opt(name)).await.context(SnapshotSnafu { name })?,
        };
        if let Some(snapshot) = snapshot {
            found.push(seen(controller, object, phase, &snapshot).await?);
        }
    }
    Ok(found)
}

async fn seen(
    controller: &Controller,
    object: &ApplicationSnapshot,
    phase: Phase,
    snapshot: &VolumeSnapshot,
) -> Result<SeenSnapshot, ObserveError> {
    let uid = snapshot.uid().unwrap_or_default();
    let ours = match &object.spec.source.volume_snapshot_uid {
        Some(meant) => *meant == uid,
        None => snapshot.annotations().get(APPLICATION_SNAPSHOT_UID) == object.uid().as_ref(),
    };
    let by_itself = snapshot.status.as_ref().is_some_and(|status| status.creation_time.is_some());
    let content = match by_itself || phase != Phase::Cutting {
        true => None,
        false => content(controller, snapshot, &uid).await?.and_then(|content| content.status),
    };
    let by_content = content.as_ref().is_some_and(|status| status.creation_time.is_some_and(|time| time > 0));
    let error = content.and_then(|status| status.error).map(message);
    let last_error = snapshot.status.as_ref().and_then(|status| status.error.clone()).map(message);
    Ok(SeenSnapshot {
        name: snapshot.name_any(),
        uid,
        ours,
        deleted: snapshot.metadata.deletion_timestamp.is_some(),
        cut: by_itself || by_content,
        error,
        last_error,
        consistency: snapshot.annotations().get(CONSISTENCY).cloned(),
    })
}

/// It is known by its name before the snapshot says so.
async fn content(
    controller: &Controller,
    snapshot: &VolumeSnapshot,
    uid: &str,
) -> Result<Option<VolumeSnapshotContent>, ObserveError> {
    let bound = snapshot.status.as_ref().and_then(|status| status.bound_volume_snapshot_content_name.clone());
    let name = bound.unwrap_or_else(|| format!("snapcontent-{uid}"));
    let api: Api<VolumeSnapshotContent> = Api::all(controller.surroundings.client.clone());
    in_time(api.get_opt(&name)).await.context(ContentSnafu { name })
}

fn message(error: VolumeSnapshotError) -> String {
    error.message.unwrap_or_else(|| "the storage reports a failure without a reason".to_owned())
}
