//! What the models of the world have in common: processes that crash, pause and lose the lease, requests that get lost,
//! runs that end in one way or another.

pub(crate) mod chance;
pub(crate) mod process;
pub(crate) mod request;
pub(crate) mod run;

use boathook_api::{PodNotification, words::condition};
use jiff::SignedDuration;

/// How long it is until a failed look or write is tried again.
pub(crate) const BACK_OFF: SignedDuration = SignedDuration::from_millis(100);

/// Between two rounds of an undo that the agent's keeper runs, and that fails.
pub(crate) const KEEPERS_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// Nobody owes an undo any more.
pub(crate) fn is_closed(object: &PodNotification) -> bool {
    let mut conditions = object.status.iter().flat_map(|status| &status.conditions);
    let undone = conditions.find(|one| one.type_ == condition::UNDONE);
    undone.is_some_and(|undone| !["Armed", "UndoFailed"].contains(&undone.reason.as_str()))
}
