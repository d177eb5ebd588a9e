//! What the PodNotifications of a hook come to, as their executors write it.

use boathook_api::{
    PodNotification,
    pod_notification::{Claim, ContainerNotificationStatus, ErrorType, Executor, NotificationError, State, UndoStatus},
    words::condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};

use super::{Look, ME, at};

fn error(kind: ErrorType, message: &str, now: i64) -> NotificationError {
    NotificationError { kind, message: message.to_owned(), timestamp: MicroTime(at(now)) }
}

/// Says something of one kind, instead of what was said before.
fn say(child: &mut PodNotification, kind: &str, truth: &str, reason: &str, message: &str) {
    let conditions = &mut child.status.get_or_insert_default().conditions;
    conditions.retain(|one| one.type_ != kind);
    conditions.push(Condition {
        type_: kind.to_owned(),
        status: truth.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: None,
        last_transition_time: Time(at(0)),
    });
}

/// Armed and claimed, by a process, at this second.
pub(crate) fn claim(child: &mut PodNotification, holder: &str, now: i64) {
    let undo = child.spec.undo.as_ref().map(|undo| UndoStatus { action: undo.action.clone(), ..UndoStatus::default() });
    let containers = child.spec.containers.clone().unwrap_or_default();
    let status = child.status.get_or_insert_default();
    status.executor = Some(Executor::Api);
    status.claim = Some(Claim { holder: holder.to_owned(), time: MicroTime(at(now)) });
    let record = |name: String| ContainerNotificationStatus {
        name,
        start_time: Some(MicroTime(at(now))),
        undo: undo.clone(),
        ..ContainerNotificationStatus::default()
    };
    status.containers = containers.into_iter().map(record).collect();
    if child.spec.undo.is_some() {
        say(child, condition::UNDONE, "False", "Armed", "");
    }
}

/// Its handlers ended at this second: well, but for those of these containers.
pub(crate) fn end(child: &mut PodNotification, now: i64, failed: &[&str]) {
    let status = child.status.as_mut().expect("it is claimed");
    for record in &mut status.containers {
        let well = !failed.contains(&record.name.as_str());
        record.complete_time = Some(MicroTime(at(now)));
        record.container_id = Some(format!("containerd://{}", record.name));
        record.attempts = Some(1);
        record.succeeded = Some(well);
        record.error = (!well).then(|| error(ErrorType::HandlerFailed, "exit code 1", now));
    }
    status.complete_time = Some(MicroTime(at(now)));
    status.state = if failed.is_empty() { State::Succeeded } else { State::Failed };
    if let Some(container) = failed.first() {
        let message = format!("container `{container}`: exit code 1");
        status.error = Some(error(ErrorType::HandlerFailed, &message, now));
    }
}

/// Its undo ran from one second to another.
pub(crate) fn undo(child: &mut PodNotification, [from, to]: [i64; 2], well: bool) {
    for record in &mut child.status.as_mut().expect("it is claimed").containers {
        let undo = record.undo.as_mut().expect("it is armed");
        (undo.start_time, undo.complete_time) = (Some(MicroTime(at(from))), Some(MicroTime(at(to))));
        (undo.succeeded, undo.attempts) = (Some(well), Some(undo.attempts.unwrap_or_default() + 1));
        undo.error = (!well).then(|| error(ErrorType::HandlerFailed, "it sticks", to));
    }
    let (truth, reason) = if well { ("True", "UndoSucceeded") } else { ("False", "UndoFailed") };
    say(child, condition::UNDONE, truth, reason, if well { "" } else { "it sticks" });
}

/// It was never claimed: refused, revoked, or too late.
pub(crate) fn revoke(child: &mut PodNotification, now: i64) {
    let status = child.status.get_or_insert_default();
    (status.state, status.complete_time) = (State::Failed, Some(MicroTime(at(now))));
    status.claim = None;
    status.error = Some(error(ErrorType::Revoked, "the undo was requested before the handler ran", now));
    say(child, condition::UNDONE, "True", "NothingToUndo", "the handler was not run");
}

impl Look {
    pub(crate) fn claim(&mut self, child: usize, now: i64) {
        claim(&mut self.children[child], ME, now);
    }

    /// Claimed at one second, succeeded at another.
    pub(crate) fn succeed(&mut self, child: usize, [from, to]: [i64; 2]) {
        self.claim(child, from);
        end(&mut self.children[child], to, &[]);
    }

    /// Claimed at one second, failed in its first container at another.
    pub(crate) fn fail(&mut self, child: usize, [from, to]: [i64; 2]) {
        self.claim(child, from);
        let first = self.children[child].spec.containers.clone().unwrap_or_default().remove(0);
        end(&mut self.children[child], to, &[&first]);
    }

    pub(crate) fn refuse(&mut self, child: usize, now: i64) {
        revoke(&mut self.children[child], now);
    }

    pub(crate) fn undo(&mut self, child: usize, time: [i64; 2], well: bool) {
        undo(&mut self.children[child], time, well);
    }

    /// The question of its undo is closed without one.
    pub(crate) fn close(&mut self, child: usize, truth: &str, reason: &str) {
        say(&mut self.children[child], condition::UNDONE, truth, reason, "for this reason");
    }

    /// What its executor says of a session.
    pub(crate) fn say_held(&mut self, child: usize, truth: &str, reason: &str) {
        say(&mut self.children[child], condition::HELD, truth, reason, "");
    }

    pub(crate) fn lose_session(&mut self, child: usize) {
        lose_session(&mut self.children[child]);
    }
}

/// Its executor says that what it held has ended.
pub(crate) fn lose_session(child: &mut PodNotification) {
    say(child, condition::HELD, "False", "SessionLost", "the session ended");
}
