//! What the models of the world have in common: processes that crash, pause and lose the lease, requests that get lost,
//! runs that end in one way or another.

pub(crate) mod chance;
pub(crate) mod process;
pub(crate) mod request;
pub(crate) mod run;

use boathook_api::{
    PodNotification,
    words::{condition, reason},
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// How long it is until a failed look or write is tried again.
pub(crate) const BACK_OFF: SignedDuration = SignedDuration::from_millis(100);

/// Between two rounds of an undo that the agent's keeper runs, and that fails.
pub(crate) const KEEPERS_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// Whether a write reports once more that an undo failed, a minute or more after the last report, or that an agent has been
/// silent for too long, once a minute: I13 allows for these beside the writes that it counts.
pub(crate) fn reports_failure_again(before: &PodNotification, after: &PodNotification) -> bool {
    let overdue = |object: &PodNotification| {
        let mut conditions = object.status.iter().flat_map(|status| &status.conditions);
        let undone = conditions.find(|one| one.type_ == condition::UNDONE && one.reason == reason::UNDO_FAILED)?;
        undone.message.contains("has not reported").then(|| undone.message.clone())
    };
    if overdue(after).is_some_and(|after| Some(after) != overdue(before)) {
        return true;
    }
    let failed = |object: &PodNotification| {
        let status = object.status.as_ref()?;
        let is_failed = |one: &Condition| one.type_ == condition::UNDONE && one.reason == reason::UNDO_FAILED;
        let ends = status.containers.iter().filter_map(|record| record.undo.as_ref()?.complete_time.as_ref());
        ends.map(|end| end.0).max().filter(|_| status.conditions.iter().any(is_failed))
    };
    let (before, after) = (failed(before), failed(after));
    before.zip(after).is_some_and(|(before, after)| after.duration_since(before).abs() >= SignedDuration::from_secs(60))
}

/// Nobody owes an undo any more.
pub(crate) fn is_closed(object: &PodNotification) -> bool {
    let mut conditions = object.status.iter().flat_map(|status| &status.conditions);
    let undone = conditions.find(|one| one.type_ == condition::UNDONE);
    undone.is_some_and(|undone| !["Armed", "UndoFailed"].contains(&undone.reason.as_str()))
}
