//! Snapshots of the same claims with the same hooks share one freeze: those that come before the first one's cut was seen
//! follow it. The hooks are the first one's alone: it waits for its followers before it thaws, and they only look.
//!
//! Who follows is written on the first one, in the version that was looked at: so it cannot have begun to thaw meanwhile.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{
        ApplicationSnapshotStatus, Consistency, Phase, SnapshotFailure, SnapshotRecord, SnapshotReference,
    },
    words::reason,
};
use kube::ResourceExt;

use super::{Claim, Effect, Observed, failure, is_deleted, snapshot_name};

/// The one that a new snapshot of these claims can follow.
pub(super) fn joinable<'a>(observed: &'a Observed<'_>, claims: &[Claim]) -> Option<&'a ApplicationSnapshot> {
    let spec = &observed.object.spec;
    let names: Vec<_> = claims.iter().map(|claim| &claim.name).collect();
    observed.others.iter().find(|other| {
        let Some(status) = &other.status else { return false };
        let theirs: Vec<_> = status.snapshots.iter().map(|record| &record.persistent_volume_claim_name).collect();
        let own_freeze = !status.hooks.is_empty() && status.shares_freeze_of.is_none();
        // Afterwards it waits only for those whom it knows: or it might wait for one after the other.
        let in_time = status.consistency.is_none() || status.followers.contains(&reference(observed.object));
        // The first one's verdict is its followers' too, so its author must vouch for as much as theirs.
        let same = other.spec.execution_hook_infos == spec.execution_hook_infos
            && other.spec.other_pods == spec.other_pods
            && theirs == names;
        own_freeze && in_time && holds(other) && same
    })
}

/// Says on the first one that this one follows it, if it does not say so yet; and what this one's status is then.
pub(super) fn join(
    observed: &Observed<'_>,
    mut status: ApplicationSnapshotStatus,
    first: &ApplicationSnapshot,
) -> (Option<Effect>, ApplicationSnapshotStatus) {
    let object = observed.object;
    let theirs = first.status.clone().unwrap_or_default();
    let record = |record: &SnapshotRecord| SnapshotRecord {
        persistent_volume_claim_name: record.persistent_volume_claim_name.clone(),
        volume_snapshot_name: snapshot_name(object, &record.persistent_volume_claim_name, theirs.snapshots.len()),
        // Those that are frozen, not those that have come since.
        pod_uids: record.pod_uids.clone(),
        ..SnapshotRecord::default()
    };
    status.phase = Phase::Freezing;
    status.snapshots = theirs.snapshots.iter().map(record).collect();
    status.hooks.clone_from(&theirs.hooks);
    status.execution_hook_names.clone_from(&theirs.execution_hook_names);
    status.shares_freeze_of = Some(reference(first));
    let is_said = theirs.followers.contains(&reference(object));
    let say = || {
        let mut followed = first.clone();
        followed.status.get_or_insert_default().followers.push(reference(object));
        Effect::Follow(Box::new(followed))
    };
    ((!is_said).then(say), status)
}

/// The one whose freeze it shares, as it is now; `None` if there is none any more.
pub(super) fn first<'a>(
    observed: &'a Observed<'_>,
    status: &ApplicationSnapshotStatus,
) -> Option<&'a ApplicationSnapshot> {
    let SnapshotReference { uid, .. } = status.shares_freeze_of.as_ref()?;
    observed.others.iter().find(|other| other.metadata.uid.as_ref() == Some(uid))
}

/// Why the freeze that it shares is none any more, or will not come about.
pub(super) fn failure_of(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<SnapshotFailure> {
    let SnapshotReference { name, .. } = status.shares_freeze_of.as_ref()?;
    let Some(first) = first(observed, status) else {
        return Some(failure(
            reason::HOOK_FAILED,
            format!("ApplicationSnapshot `{name}`, whose freeze this snapshot shares, is gone"),
        ));
    };
    let theirs = first.status.as_ref().and_then(|status| status.failure.as_ref());
    match theirs {
        Some(SnapshotFailure { reason, message }) => {
            Some(failure(reason, format!("ApplicationSnapshot `{name}`, whose freeze this snapshot shares: {message}")))
        }
        None if is_thawing(first) => {
            let message = format!("ApplicationSnapshot `{name}`, whose freeze this snapshot shares, has begun to thaw");
            Some(failure(reason::HOOK_FAILED, message))
        }
        None => None,
    }
}

/// Whether the one whose freeze it shares has frozen everything; `None` if it shares none.
pub(super) fn is_frozen(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<bool> {
    status.shares_freeze_of.as_ref()?;
    let theirs = first(observed, status).and_then(|first| first.status.as_ref());
    Some(theirs.is_some_and(|theirs| theirs.phase == Phase::Cutting))
}

/// Whether the hooks of the one whose freeze it shares have ended; `None` if it shares none.
pub(super) fn is_over(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<bool> {
    status.shares_freeze_of.as_ref()?;
    let phase =
        first(observed, status).map(|first| first.status.as_ref().map(|status| status.phase).unwrap_or_default());
    Some(phase.is_none_or(Phase::is_terminal))
}

/// Whether a follower could still be called `Application`, if the thaw waits for it.
pub(super) fn is_waited_for(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> bool {
    let follows = |other: &&ApplicationSnapshot| status.followers.contains(&reference(other));
    // What is not so for the first one is so for nobody. A follower whose cut was seen is on its way back.
    status.consistency == Some(Consistency::Application) && observed.others.iter().filter(follows).any(holds)
}

/// Whether a follower has yet to record how the thaw went.
pub(super) fn is_read(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> bool {
    let follows = |other: &&ApplicationSnapshot| status.followers.contains(&reference(other));
    let is_over = |other: &ApplicationSnapshot| other.status.as_ref().is_some_and(|status| status.phase.is_terminal());
    observed.others.iter().filter(follows).any(|other| !is_over(other))
}

/// Nothing has gone wrong with it, and it goes on.
fn holds(other: &ApplicationSnapshot) -> bool {
    let failure = other.status.as_ref().is_some_and(|status| status.failure.is_some());
    !is_thawing(other) && !is_deleted(other) && !failure
}

fn is_thawing(other: &ApplicationSnapshot) -> bool {
    match other.status.as_ref().map(|status| status.phase).unwrap_or_default() {
        Phase::Pending | Phase::Freezing | Phase::Cutting => false,
        Phase::Thawing | Phase::ThawFailed | Phase::Complete | Phase::Failed => true,
    }
}

fn reference(object: &ApplicationSnapshot) -> SnapshotReference {
    SnapshotReference { name: object.name_any(), uid: object.uid().unwrap_or_default() }
}
