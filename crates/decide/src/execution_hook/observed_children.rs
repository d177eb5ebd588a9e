//! What the PodNotifications of a hook say, container by container and in all.

use boathook_api::{
    PodNotification,
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookActionStatus, HookError},
    pod_notification::{ContainerNotificationStatus, NotificationError, PodNotificationStatus, State, UndoStatus},
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::pod_notification;

/// Errors of many containers are in one object: each is cut to this many characters.
const LONGEST_MESSAGE: usize = 1024;

/// How the PreAction went in one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pre {
    /// It may not even have been claimed.
    UnderWay,
    Succeeded,
    Failed,
}

/// How the PostAction went in one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Post {
    /// It was not run, or not to its end.
    Owed,
    /// It failed, and is tried again.
    Failed,
    /// There is nothing left to take back.
    Done,
    /// It was given up: by a person, or because nobody hears of the node.
    GivenUp,
}

pub(super) fn pre(child: &PodNotification) -> Pre {
    match status(child).map(|status| status.state).unwrap_or_default() {
        State::New => Pre::UnderWay,
        State::Succeeded => Pre::Succeeded,
        State::Failed => Pre::Failed,
    }
}

pub(super) fn post(child: &PodNotification) -> Post {
    if pre(child) == Pre::UnderWay {
        // An undo may run beside handlers that cannot be ended; its success is known only when these have ended.
        let failed = find(child, condition::UNDONE).is_some_and(|undone| undone.reason == reason::UNDO_FAILED);
        return if failed { Post::Failed } else { Post::Owed };
    }
    if child.spec.undo.is_none() {
        return Post::Done;
    }
    let Some(undone) = find(child, condition::UNDONE) else { return Post::Owed };
    match (undone.status.as_str(), undone.reason.as_str()) {
        ("True", _) => Post::Done,
        (_, reason::UNDO_FAILED) => Post::Failed,
        (_, reason::ABANDONED | reason::THAW_UNCONFIRMED) => Post::GivenUp,
        _ => Post::Owed,
    }
}

/// When its executor claimed it: the PreAction may have begun then, and not before.
pub(super) fn claimed(child: &PodNotification) -> Option<Timestamp> {
    status(child)?.claim.as_ref().map(|claim| claim.time.0)
}

/// Why it failed, or why its thaw did.
pub(super) fn failure(child: &PodNotification) -> Option<String> {
    let status = status(child)?;
    let of_container =
        |record: &ContainerNotificationStatus| Some((record.name.clone(), record.error.as_ref()?.message.clone()));
    let place = |container: Option<&str>| match container {
        Some(container) => format!("pod `{}`, container `{container}`", child.spec.pod_name),
        None => format!("pod `{}`", child.spec.pod_name),
    };
    let first = status.containers.iter().find_map(of_container);
    match (first, &status.error) {
        (Some((container, message)), _) => Some(format!("{}: {message}", place(Some(&container)))),
        (None, Some(error)) => Some(format!("{}: {}", place(None), error.message)),
        (None, None) => None,
    }
}

/// What its undo says of itself.
pub(super) fn undone_message(child: &PodNotification) -> String {
    let message = find(child, condition::UNDONE).map(|undone| undone.message.as_str()).unwrap_or_default();
    format!("pod `{}`: {message}", child.spec.pod_name)
}

/// Whether its undo was asked for, or it was deleted, which asks for it as well.
pub(super) fn is_asked(child: &PodNotification) -> bool {
    child.spec.undo_requested || child.metadata.deletion_timestamp.is_some()
}

/// When and why its undo runs once more, although it has succeeded.
pub(super) fn once_more(child: &PodNotification) -> Option<String> {
    let due = pod_notification::last_round(child)?;
    if let Some(failure) = pod_notification::last_round_failure(child) {
        return Some(format!(
            "pod `{}`: {failure}. Boathook retries it. If nothing is frozen there, let the PostAction succeed when it runs a \
             second time",
            child.spec.pod_name
        ));
    }
    Some(format!(
        "pod `{}`: the PostAction succeeded, but the PreAction may still run and freeze again. The PostAction runs once more \
         at {}",
        child.spec.pod_name,
        due.strftime("%FT%TZ")
    ))
}

/// Whether its pod was gone before its undo ran.
pub(super) fn is_pod_gone(child: &PodNotification) -> bool {
    find(child, condition::UNDONE).is_some_and(|undone| undone.reason == reason::POD_GONE)
}

/// Whether a person gave its undo up.
pub(super) fn is_abandoned(child: &PodNotification) -> bool {
    find(child, condition::UNDONE).is_some_and(|undone| undone.reason == reason::ABANDONED)
}

/// Whether an undo was begun in it.
pub(super) fn undo_begun(child: &PodNotification) -> bool {
    let undos = status(child).into_iter().flat_map(|status| &status.containers);
    undos.filter_map(|record| record.undo.as_ref()).any(|undo| undo.start_time.is_some())
        || matches!(post(child), Post::Failed | Post::GivenUp)
}

/// Whether what it did was taken back after this moment of its executor's clock, or is, or may be by now.
pub(super) fn is_undone_since(child: &PodNotification, since: Timestamp, now: Timestamp) -> bool {
    let (Some(undo), Some(claimed)) = (&child.spec.undo, claimed(child)) else { return false };
    let records = status(child).into_iter().flat_map(|status| &status.containers);
    let mut ends = records.filter_map(|record| record.undo.as_ref()?.complete_time.as_ref());
    let expires = undo.after_seconds.map(|after| claimed + SignedDuration::from_secs(after.into()));
    let is_due = is_asked(child) || undo_begun(child) || expires.is_some_and(|expires| expires <= now);
    match post(child) {
        Post::Owed | Post::Failed => is_due || pre(child) == Pre::Failed,
        Post::Done | Post::GivenUp => {
            ends.any(|end| since <= end.0) || pod_notification::last_round_may_run(child, now)
        }
    }
}

/// Whether what it did was taken back or given up, whenever that was, and no further round of its undo is to come.
pub(super) fn is_undone(child: &PodNotification) -> bool {
    let is_over = child.spec.undo.is_some() && has_run(child) && pod_notification::last_round(child).is_none();
    match post(child) {
        Post::Owed | Post::Failed => false,
        Post::Done => {
            let found = find(child, condition::UNDONE);
            is_over && found.is_some_and(|undone| undone.reason != reason::NOTHING_TO_UNDO)
        }
        Post::GivenUp => is_over,
    }
}

/// Whether its handler was claimed: it ran, or may have.
pub(super) fn has_run(child: &PodNotification) -> bool {
    claimed(child).is_some()
}

/// Whether its handler was claimed, and had not ended before this moment of its executor's clock.
pub(super) fn has_run_since(child: &PodNotification, since: Timestamp) -> bool {
    let ended = status(child).and_then(|status| status.complete_time.as_ref());
    has_run(child) && ended.is_none_or(|ended| since <= ended.0)
}

/// A session that was to be held is not any more, though nobody had asked for its release.
pub(super) fn session_lost(child: &PodNotification) -> Option<String> {
    let held = find(child, condition::HELD)?;
    (held.reason == reason::SESSION_LOST).then(|| format!("pod `{}`: {}", child.spec.pod_name, held.message))
}

/// One container's record, brought up to date.
pub(super) fn container(
    pinned: &ContainerExecutionHookStatus,
    child: Option<&PodNotification>,
) -> ContainerExecutionHookStatus {
    let Some((child, status)) = child.and_then(|child| Some((child, status(child)?))) else { return pinned.clone() };
    let record = status.containers.iter().find(|record| record.name == pinned.container_name);
    let over = status.state.is_terminal();
    let succeeded = record.is_some_and(|record| record.succeeded == Some(true));
    // What is wrong with another container is not wrong with this one.
    let of_all = status.error.as_ref().filter(|_| !succeeded);
    let pre = ExecutionHookActionStatus {
        action_timestamp: record
            .and_then(|record| record.start_time.clone())
            .or(status.claim.as_ref().map(|claim| claim.time.clone())),
        complete_timestamp: record
            .and_then(|record| record.complete_time.clone())
            .or(status.complete_time.clone().filter(|_| over)),
        action_succeed: over.then_some(succeeded),
        attempts: record.and_then(|record| record.attempts),
        error: record.and_then(|record| record.error.as_ref()).or(of_all).map(shortened),
    };
    let undo = record.and_then(|record| record.undo.as_ref()).filter(|undo| undo.start_time.is_some());
    ContainerExecutionHookStatus {
        container_id: record.and_then(|record| record.container_id.clone()),
        pre_action_status: (status.claim.is_some() || over).then_some(pre),
        post_action_status: undo.map(post_status),
        pod_name: child.spec.pod_name.clone(),
        ..pinned.clone()
    }
}

fn post_status(undo: &UndoStatus) -> ExecutionHookActionStatus {
    ExecutionHookActionStatus {
        action_timestamp: undo.start_time.clone(),
        complete_timestamp: undo.complete_time.clone(),
        action_succeed: undo.succeeded,
        attempts: undo.attempts,
        error: undo.error.as_ref().map(shortened),
    }
}

fn shortened(error: &NotificationError) -> HookError {
    HookError { time: error.timestamp.clone(), message: error.message.chars().take(LONGEST_MESSAGE).collect() }
}

fn status(child: &PodNotification) -> Option<&PodNotificationStatus> {
    child.status.as_ref()
}

fn find<'a>(child: &'a PodNotification, kind: &str) -> Option<&'a Condition> {
    status(child)?.conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether what its handler did still holds, as far as it says itself; else why not.
pub(super) fn is_held(child: &PodNotification) -> Result<(), String> {
    let pod = &child.spec.pod_name;
    if pre(child) != Pre::Succeeded {
        return Err(format!("pod `{pod}` is not frozen"));
    }
    if let Some(lost) = session_lost(child) {
        return Err(lost);
    }
    // Without an undo, nothing takes it back.
    let undone = child.spec.undo.is_some() && (undo_begun(child) || post(child) == Post::Done);
    match is_asked(child) || undone {
        true => Err(format!("the thaw of pod `{pod}` has begun or ended")),
        false => Ok(()),
    }
}
