//! Held sessions: a handler that has succeeded lasts as long as the stream that its executor keeps open.
//!
//! The condition `Held` is true while every session is open, and once false it stays so. A session that ends before it
//! was asked to makes the undo due; so does a process that cannot keep it: one that stops, has lost the lease, or finds
//! that another one had it. The undo itself is ordinary: to release a session is its first part.

use std::collections::BTreeMap;

use boathook_api::{
    pod_notification::{ContainerNotificationStatus, PodNotificationStatus, State},
    words::{condition, reason},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Decision, Effect, Object, Observed, Progress, errors, undo};
use crate::{
    About, Gravity, Report,
    conditions::{self, Saying},
};

/// What this process holds for one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    /// By container.
    pub of: BTreeMap<String, Session>,
    /// This process is about to end, and lets go of what it holds.
    pub closing: bool,
}

/// How a session is that was ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// Also while it is being released.
    Open,
    /// It ended before it was asked to: how, for a person.
    Lost(String),
    /// It was asked to, and ended with exit code 0.
    Released,
    /// It was asked to, and did not end well: how, for a person.
    NotReleased(String),
}

/// What the condition says.
struct Word {
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Word {
    fn no_more(reason: &'static str, message: String) -> Self {
        Self { status: "False", reason, message }
    }
}

/// Whether a session was lost, or cannot be kept by this process: then the undo is due.
pub(super) fn is_to_be_let_go(observed: &Observed<'_>, object: &Object<'_>) -> bool {
    if !object.object.spec.holds() {
        return false;
    }
    let of = &observed.sessions.of;
    let is_lost = |session: &Session| match session {
        Session::Lost(_) => true,
        Session::Open | Session::Released | Session::NotReleased(_) => false,
    };
    is_over(&object.status)
        || of.values().any(is_lost)
        || (!of.is_empty() && cannot_be_kept(observed))
        || (of.is_empty() && undo::is_executor(observed, object))
}

/// Whether this process has no right or no time to hold anything any more.
fn cannot_be_kept(observed: &Observed<'_>) -> bool {
    observed.sessions.closing || observed.me.role.is_thaw_only()
}

/// The same decision, and the condition where it changes: in the write that there is, or in one of its own.
pub(super) fn say(observed: &Observed<'_>, object: &Object<'_>, mut decision: Decision, now: Timestamp) -> Decision {
    if !object.object.spec.holds() {
        return decision;
    }
    let written = decision.effects.iter().position(|effect| matches!(effect, Effect::WriteStatus(_)));
    let mut status = match written.map(|place| &decision.effects[place]) {
        Some(Effect::WriteStatus(status)) => (**status).clone(),
        Some(_) | None => object.status.clone(),
    };
    let Some(word) = word(observed, object, &status, now).filter(|word| !says(&status, word)) else { return decision };
    let Word { status: truth, reason, message } = &word;
    let saying = Saying { kind: condition::HELD, status: truth, reason, message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    let write = Effect::WriteStatus(Box::new(status));
    match written {
        Some(place) => decision.effects[place] = write,
        // What another process held may have been released since this was seen: then this write fails, and nothing is
        // undone that need not be.
        None if observed.sessions.of.is_empty() => decision.effects.insert(0, write),
        None => decision.effects.push(write),
    }
    if [reason::SESSION_LOST, reason::RELEASE_FAILED].contains(reason) {
        let (about, gravity) = (About::ObjectAndSubject, Gravity::Warning);
        decision.reports.push(Report {
            about,
            gravity,
            reason: (*reason).to_owned(),
            action: "Hold",
            note: word.message,
        });
    }
    decision
}

/// What is true of the sessions now; nothing where this process cannot tell, or where it was said for good.
fn word(observed: &Observed<'_>, object: &Object<'_>, status: &PodNotificationStatus, now: Timestamp) -> Option<Word> {
    // A handler that did not succeed everywhere held nothing that anyone may count on.
    if status.state != State::Succeeded || is_over(status) {
        return None;
    }
    let sessions = &observed.sessions.of;
    let lost = sessions.iter().find_map(|(container, session)| match session {
        Session::Lost(how) => Some(format!("container `{container}`: {how}")),
        Session::Open | Session::Released | Session::NotReleased(_) => None,
    });
    if let Some(how) = lost {
        return Some(Word::no_more(reason::SESSION_LOST, how));
    }
    let asked = object.is_revoked() || object.expires(observed).is_some_and(|expires| expires <= now);
    if !sessions.is_empty() && cannot_be_kept(observed) && !asked {
        let message = "the executor stops or has lost the lease, and releases the session";
        return Some(Word::no_more(reason::SESSION_LOST, message.to_owned()));
    }
    let closed = status.conditions.iter().find(|one| one.type_ == condition::UNDONE).filter(|_| errors::undone(status));
    let all = |wanted: &Session| !sessions.is_empty() && sessions.values().all(|session| session == wanted);
    match (closed, &observed.undo) {
        _ if sessions.is_empty() && closed.is_none() => undo::is_executor(observed, object).then(|| {
            let message = "the executor is gone, and its sessions ended with it";
            Word::no_more(reason::SESSION_LOST, message.to_owned())
        }),
        (None, _) if all(&Session::Open) => {
            Some(Word { status: "True", reason: reason::SESSION_OPEN, message: String::new() })
        }
        // It is all said at the end of the round.
        (None, Progress::Running) => None,
        (_, _) if all(&Session::Released) => {
            Some(Word::no_more(reason::RELEASED, "the executor released the session in every container".to_owned()))
        }
        (_, _) if let Some(how) = not_released(sessions) => Some(Word::no_more(reason::RELEASE_FAILED, how)),
        (Some(closed), _) => Some(Word::no_more(reason::SESSION_LOST, closed.message.clone())),
        (None, _) => None,
    }
}

fn not_released(sessions: &BTreeMap<String, Session>) -> Option<String> {
    sessions.iter().find_map(|(container, session)| match session {
        Session::NotReleased(how) => Some(format!("container `{container}`: {how}")),
        Session::Open | Session::Lost(_) | Session::Released => None,
    })
}

/// In what words the undo ends that has succeeded everywhere.
pub(super) fn word_of_the_end(status: &PodNotificationStatus) -> (&'static str, String) {
    // Without an action, only exit code 0 says that somebody has taken it back.
    let by_itself = |record: &&ContainerNotificationStatus| {
        let undo = record.undo.as_ref();
        undo.is_some_and(|undo| undo.action.is_none() && undo.exit_code != Some(0))
    };
    match status.containers.iter().find(by_itself) {
        None => (reason::UNDO_SUCCEEDED, "the undo succeeded in every container".to_owned()),
        Some(record) => {
            let message = format!(
                "the session in container `{}` has ended, which released its locks: a held command must end when its \
                 input ends",
                record.name
            );
            (reason::SESSION_ENDED, message)
        }
    }
}

fn condition_of(status: &PodNotificationStatus) -> Option<&Condition> {
    status.conditions.iter().find(|one| one.type_ == condition::HELD)
}

/// Whether it was said that the sessions are no longer held.
fn is_over(status: &PodNotificationStatus) -> bool {
    condition_of(status).is_some_and(|held| held.status == "False")
}

fn says(status: &PodNotificationStatus, word: &Word) -> bool {
    condition_of(status).is_some_and(|held| held.status == word.status && held.reason == word.reason)
}
