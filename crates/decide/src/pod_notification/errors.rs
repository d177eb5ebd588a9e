//! What a PodNotification's conditions say of its undo, and its errors.

use crate::{last_lines::with_last_lines, moment::moment};
use boathook_api::{
    outcome::Failure,
    pod_notification::{ErrorType, NotificationError, PodNotificationStatus},
    words::{condition, reason},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Whether the question of the undo is closed: done, or nobody can do it any more.
pub(super) fn undone(status: &PodNotificationStatus) -> bool {
    let undone = status.conditions.iter().find(|one| one.type_ == condition::UNDONE);
    undone.is_some_and(|undone| reason::UNDO_CLOSED.contains(&undone.reason.as_str()))
}

/// Whether it is closed only because nobody heard of its node.
pub(super) fn unconfirmed(status: &PodNotificationStatus) -> bool {
    let unconfirmed = |one: &Condition| one.type_ == condition::UNDONE && one.reason == reason::THAW_UNCONFIRMED;
    status.conditions.iter().any(unconfirmed)
}

/// Whether it was undone in every container.
pub(super) fn undo_succeeded(status: &PodNotificationStatus) -> bool {
    let well = [reason::UNDO_SUCCEEDED, reason::SESSION_ENDED];
    let undone = |one: &Condition| one.type_ == condition::UNDONE && well.contains(&one.reason.as_str());
    status.conditions.iter().any(undone)
}

pub(super) fn error(kind: ErrorType, message: impl Into<String>, now: Timestamp) -> NotificationError {
    NotificationError { kind, message: message.into(), timestamp: moment(now) }
}

/// Why a command failed: hooks, snapshots, refusals and Events repeat this message, and have no output beside it.
pub(super) fn of_command(failure: &Failure, output: &str, now: Timestamp) -> NotificationError {
    error(failure.kind, with_last_lines(&failure.message, output), now)
}

/// An error's type by its name, as objects carry it.
pub(super) fn name(kind: ErrorType) -> String {
    format!("{kind:?}")
}
