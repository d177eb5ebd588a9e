//! How often a status repeats the state of an action that goes on failing.

use boathook_api::execution_hook::ContainerExecutionHookStatus;
use jiff::{SignedDuration, Timestamp};

/// Every retry that is written costs a status write and an Event; one per minute is current enough for a reader.
const UPDATE_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// When the last of these PostActions failed.
pub(crate) fn last_failure<'a>(
    containers: impl Iterator<Item = &'a ContainerExecutionHookStatus>,
) -> Option<Timestamp> {
    let posts = containers.filter_map(|record| record.post_action_status.as_ref());
    let failed = posts.filter(|post| post.action_succeed == Some(false));
    failed.filter_map(|post| post.complete_timestamp.as_ref().map(|time| time.0)).max()
}

/// Whether a status that reports the attempt that ended at `reported` is out of date, now that one ended at `latest`.
pub(crate) fn is_outdated(reported: Option<Timestamp>, latest: Option<Timestamp>) -> bool {
    match (reported, latest) {
        // In either direction: a clock that was stepped back must not silence the status.
        (Some(reported), Some(latest)) => latest.duration_since(reported).abs() >= UPDATE_INTERVAL,
        (None, latest) => latest.is_some(),
        (Some(_), None) => false,
    }
}
