//! The PodNotifications of others that may thaw what a snapshot freezes. Each is recorded on the snapshot before it runs,
//! so at the cut a PodNotification that was deleted meanwhile is missed.
//!
//! Why the record is complete: a snapshot that has begun to freeze lists the PodNotifications that exist, and records
//! those that are not done; a PodNotification that is created later is accepted only after the controller has looked for
//! such snapshots, not from a cache, and has recorded it on them.

use std::collections::BTreeMap;

use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, OtherNotification, Phase, SnapshotFailure},
    words::reason,
};
use kube::{Resource, ResourceExt, core::SelectorExt};

use super::{AtTheCut, Observed, failure, made, sharing};
use crate::{
    execution_hook::{self, Selection, selection},
    naming, pod_notification,
};

/// So many are recorded; with more, the snapshot is called `Crash`. Each is a write, and they stay in the status.
const MOST: usize = 200;

/// What a snapshot finds before it freezes anything.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// The PodNotifications of the namespace.
    pub notifications: Vec<PodNotification>,
    /// There are more of them than were looked at.
    pub and_more: bool,
}

/// Whether a verdict relies on what it has frozen, or will: its own, or that of a snapshot that shares its freeze. Such a
/// follower may be named here before it has begun itself, so it looks at what is recorded here too.
pub fn is_undecided(snapshot: &ApplicationSnapshot) -> bool {
    snapshot.status.as_ref().is_some_and(|status| match status.phase {
        Phase::Freezing | Phase::Cutting => status.consistency.is_none() || !status.followers.is_empty(),
        Phase::Pending | Phase::Thawing | Phase::ThawFailed | Phase::Complete | Phase::Failed => false,
    })
}

/// Whether one of its hooks may run in the pod of this name, or has run there whatever labels the pod has now. Without
/// labels, every selector may select it.
pub fn may_freeze(snapshot: &ApplicationSnapshot, pod: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(status) = &snapshot.status else { return false };
    let selects = |place: usize| match selection(&made::hook(snapshot, status, place).spec) {
        Ok(Selection::Names(list)) => list.iter().any(|named| named.pod_name == pod),
        Ok(Selection::Labels(selector)) => labels.is_none_or(|labels| selector.matches(labels)),
        Err(_) => false,
    };
    let ran_there = |place: usize| status.hooks[place].containers.iter().any(|record| record.pod_name == pod);
    (0..status.hooks.len()).any(|place| ran_there(place) || selects(place))
}

/// The snapshot with a PodNotification recorded that is about to be accepted in these containers; `None` if that need not
/// be written.
pub fn with_other(
    snapshot: &ApplicationSnapshot,
    other: &PodNotification,
    containers: Vec<String>,
) -> Option<ApplicationSnapshot> {
    let mut next = snapshot.clone();
    let status = next.status.as_mut()?;
    (!is_own(snapshot, status, other) && record(status, other, containers)).then_some(next)
}

/// Records those of them that may still thaw something.
pub(super) fn record_present(
    snapshot: &ApplicationSnapshot,
    status: &mut ApplicationSnapshotStatus,
    present: &Present,
) {
    let others = present.notifications.iter().filter(|other| may_still_thaw(other));
    for other in others.filter(|other| may_freeze(snapshot, &other.spec.pod_name, None)) {
        let pinned = other.status.iter().flat_map(|status| &status.containers).map(|record| record.name.clone());
        record(status, other, pinned.collect());
    }
    if present.and_more {
        status.failure.get_or_insert_with(too_many);
    }
}

/// An error if one of those that were recorded is gone, and ran where this snapshot has frozen something.
pub(super) fn none_is_gone(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    at_the_cut: &AtTheCut,
) -> Result<(), SnapshotFailure> {
    let pods: Vec<_> = observed.own_hooks().filter_map(pinned).flatten().collect();
    let is_there = |other: &OtherNotification| {
        at_the_cut.notifications.iter().any(|one| one.metadata.uid.as_ref() == Some(&other.uid))
    };
    let ran_there = |other: &OtherNotification| {
        let shares = |containers: &[String]| {
            other.containers.is_empty() || other.containers.iter().any(|name| containers.contains(name))
        };
        pods.iter().any(|pod| pod.pod_name == other.pod_name && shares(&pod.containers))
    };
    let mut recorded = recorded(observed, status);
    match recorded.find(|other| ran_there(other) && !is_there(other)) {
        None => Ok(()),
        Some(gone) => {
            let message = format!(
                "PodNotification `{}` in pod `{}` was deleted while this snapshot held that pod frozen, and may have \
                 thawed it: run them one after the other",
                gone.name, gone.pod_name
            );
            Err(failure(reason::THAWED_BY_ANOTHER, message))
        }
    }
}

/// Whether a PodNotification was recorded: it was not done when the freeze began, or it came later.
pub(super) fn is_recorded(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    other: &PodNotification,
) -> bool {
    recorded(observed, status).any(|record| other.metadata.uid.as_ref() == Some(&record.uid))
}

/// Its own, and those of the snapshot whose freeze it shares.
fn recorded<'a>(
    observed: &'a Observed<'_>,
    status: &'a ApplicationSnapshotStatus,
) -> impl Iterator<Item = &'a OtherNotification> {
    let first = sharing::first(observed, status).and_then(|first| first.status.as_ref());
    status.other_notifications.iter().chain(first.into_iter().flat_map(|first| &first.other_notifications))
}

fn pinned(hook: &ExecutionHook) -> Option<Vec<execution_hook::Target>> {
    hook.status.as_ref().map(execution_hook::pinned_pods)
}

/// Whether it was not there yet, and is now.
fn record(status: &mut ApplicationSnapshotStatus, other: &PodNotification, containers: Vec<String>) -> bool {
    let uid = other.uid().unwrap_or_default();
    // It will be called `Crash` whatever is recorded.
    if status.failure.is_some() || status.other_notifications.iter().any(|known| known.uid == uid) {
        return false;
    }
    // What is said of it with its verdict stays as it is.
    if status.other_notifications.len() >= MOST && status.consistency.is_none() {
        status.failure = Some(too_many());
        return true;
    }
    let (name, pod_name) = (other.name_any(), other.spec.pod_name.clone());
    status.other_notifications.push(OtherNotification { name, uid, pod_name, containers });
    true
}

fn too_many() -> SnapshotFailure {
    let message = "the frozen pods have more PodNotifications than the snapshot can record, and an unrecorded \
                   PodNotification may thaw them: run them one after the other";
    failure(reason::THAWED_BY_ANOTHER, message)
}

/// By its owner reference, which every user can write, by its name, which tells that the owner makes it, and by its pod.
/// That the owner exists is looked up before it is accepted.
fn is_own(snapshot: &ApplicationSnapshot, status: &ApplicationSnapshotStatus, other: &PodNotification) -> bool {
    let kind = ExecutionHook::kind(&());
    let owners = other.owner_references();
    let hooks = owners.iter().filter(|owner| owner.controller == Some(true) && owner.kind == kind);
    let pod_uid = other.spec.pod_uid.as_deref().unwrap_or_default();
    hooks.into_iter().any(|hook| {
        let place = status.hooks.iter().position(|record| record.name == hook.name);
        place.is_some_and(|place| may_pin(snapshot, status, place, other))
            && other.metadata.name == Some(naming::derived(&hook.name, &[&hook.uid, pod_uid]))
    })
}

/// Whether a hook of the snapshot runs in the pod of a PodNotification; before its pods are recorded, whether it may.
fn may_pin(
    snapshot: &ApplicationSnapshot,
    status: &ApplicationSnapshotStatus,
    place: usize,
    other: &PodNotification,
) -> bool {
    let containers = &status.hooks[place].containers;
    match selection(&made::hook(snapshot, status, place).spec) {
        _ if !containers.is_empty() => containers.iter().any(|one| other.spec.pod_uid.as_ref() == Some(&one.pod_uid)),
        Ok(Selection::Names(list)) => list.iter().any(|named| named.pod_name == other.spec.pod_name),
        Ok(Selection::Labels(_)) => true,
        Err(_) => false,
    }
}

/// Whether its handler has not ended, or its undo is to come.
fn may_still_thaw(other: &PodNotification) -> bool {
    let ended = other.status.as_ref().is_some_and(|status| status.state.is_terminal());
    !ended || pod_notification::owes_undo(other) || pod_notification::last_round(other).is_some()
}
