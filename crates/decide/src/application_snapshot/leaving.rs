//! How long an object lives that nobody wrote by hand: the admission of a marked VolumeSnapshot made it, for one request.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{ApplicationSnapshotStatus, Phase},
    volume_snapshot::VolumeSnapshot,
    words::condition,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use super::{Observed, is_deleted, is_made_by_others};
use crate::conditions;

/// No request waits longer than 30 s for its answer; the rest is for clocks that differ.
const LONGEST_REQUEST: SignedDuration = SignedDuration::from_secs(60);

/// What became of a request that failed can be read for as long as its Events can.
const LIFE_OF_A_FAILURE: SignedDuration = SignedDuration::from_hours(1);

/// From when on nobody waits for the freeze that a request asked for: whoever would have taken it back may be gone.
pub(super) fn nobody_waits_from(object: &ApplicationSnapshot) -> Option<Timestamp> {
    let created = object.metadata.creation_timestamp.as_ref().filter(|_| is_made_by_others(object))?;
    Some(created.0 + LONGEST_REQUEST)
}

/// The VolumeSnapshot that was marked, once that was seen: this goes with it.
pub(super) fn owner(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<OwnerReference> {
    let object = observed.object;
    let source = &object.spec.source;
    let (name, uid) = (source.volume_snapshot_name.clone()?, source.volume_snapshot_uid.clone()?);
    let was_seen = status.snapshots.iter().any(|record| record.cut_seen_time.is_some());
    let is_seen = observed.snapshots.iter().any(|snapshot| snapshot.ours);
    let needed = (was_seen || is_seen) && !is_owned(object) && !is_deleted(object);
    needed.then(|| OwnerReference {
        api_version: VolumeSnapshot::api_version(&()).into_owned(),
        kind: VolumeSnapshot::kind(&()).into_owned(),
        name,
        uid,
        controller: None,
        block_owner_deletion: None,
    })
}

/// When one goes that came to nothing: no VolumeSnapshot would ever take it along. One that is owed a thaw stays.
pub(super) fn goes_at(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<Timestamp> {
    let object = observed.object;
    let is_seen = observed.snapshots.iter().any(|snapshot| snapshot.ours);
    let stays = !is_made_by_others(object) || is_seen || is_owned(object) || is_deleted(object);
    let over = status.phase == Phase::Failed && conditions::is_true(&status.conditions, condition::THAWED);
    let ended = status.complete_time.as_ref().filter(|_| over && !stays)?;
    Some(ended.0 + LIFE_OF_A_FAILURE)
}

/// Whether it belongs to the VolumeSnapshot that was marked.
fn is_owned(object: &ApplicationSnapshot) -> bool {
    let meant = object.spec.source.volume_snapshot_uid.as_ref();
    object.owner_references().iter().any(|owner| Some(&owner.uid) == meant)
}
