//! How often a status repeats the state of an action that goes on failing.

use boathook_api::{execution_hook::ContainerExecutionHookStatus, words::condition};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::conditions;

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

/// Whether a failed thaw is to be reported again: another attempt failed a minute later, or no attempt was reported at all and
/// the message, which changes once a minute, is a new one. `before` and `after` are conditions and the last failure.
pub(crate) fn is_repeated(before: (&[Condition], Option<Timestamp>), after: (&[Condition], Option<Timestamp>)) -> bool {
    let message = |conditions| conditions::find(conditions, condition::THAWED).map(|thawed| thawed.message.as_str());
    let is_silent = before.1.is_none() && after.1.is_none();
    is_outdated(before.1, after.1) || is_silent && message(before.0) != message(after.0)
}
