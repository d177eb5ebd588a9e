//! Sessions in the model: open from the handler's end to the undo, or to the end of whoever holds them.

use boathook_api::{
    Action,
    outcome::{Ended, Outcome},
    pod_notification::{PodNotificationStatus, State},
    words::condition,
};
use boathook_decide::pod_notification::Session;

use super::{Follows, World};
use crate::world::{is_closed, process::Who, run::End};

/// The command whose session is held.
pub(crate) fn freeze() -> Action {
    let action = serde_json::json!({"exec": {"command": ["freeze"], "hold": true}, "timeoutSeconds": 5});
    serde_json::from_value(action).expect("it is an action")
}

/// Whether it is said that sessions are held, if anything is.
pub(crate) fn said(status: &PodNotificationStatus) -> Option<bool> {
    let held = status.conditions.iter().find(|one| one.type_ == condition::HELD)?;
    Some(held.status == "True")
}

fn lost() -> Session {
    Session::Lost("it ended".to_owned())
}

impl World {
    /// Handlers that have succeeded hold their sessions.
    pub(crate) fn hold(&mut self, who: Who, results: &[(String, Ended)]) {
        if self.plan.holds.is_some() {
            let ready = results.iter().filter(|(_, ended)| ended.outcome == Outcome::Succeeded);
            let open = ready.map(|(container, _)| (container.clone(), Session::Open));
            self.process(who).memory.sessions.extend(open);
        }
    }

    /// An undo ends like this in one container: what that means for its session, how it ends then, and its exit code.
    pub(crate) fn release(&mut self, who: Who, container: &str, end: End) -> (End, Option<i32>) {
        let follows = self.plan.holds;
        let session = self.process(who).memory.sessions.get_mut(container);
        match (session.filter(|session| **session == Session::Open), follows) {
            (Some(session), _) if matches!(end, End::Succeeded) => {
                *session = Session::Released;
                (end, Some(0))
            }
            (Some(session), _) => {
                *session = Session::NotReleased("it failed".to_owned());
                (end, None)
            }
            // There is nothing to do.
            (None, Some(Follows::Nothing)) => (End::Succeeded, None),
            (None, Some(Follows::Thaw) | None) => (end, None),
        }
    }

    pub(crate) fn some_session_ends(&mut self) {
        if let Some(who) = Who::ALL.into_iter().find(|who| self.has_open_session(*who)) {
            self.session_ends(who);
        }
    }

    fn session_ends(&mut self, who: Who) {
        let now = self.now;
        let process = self.process(who);
        if let Some(session) = process.memory.sessions.values_mut().find(|session| **session == Session::Open) {
            *session = lost();
            process.wake(now);
        }
    }

    pub(crate) fn sessions_end_with_their_pod(&mut self) {
        for who in Who::ALL {
            while self.has_open_session(who) {
                self.session_ends(who);
            }
        }
    }

    fn has_open_session(&self, who: Who) -> bool {
        self.processes[who as usize].memory.sessions.values().any(|session| *session == Session::Open)
    }

    /// Whether the object says that sessions were held and are not any more.
    pub(crate) fn says_not_held(&self) -> bool {
        self.server.last_seen().status.as_ref().and_then(said) == Some(false)
    }

    /// Whether this process cannot keep sessions that are held, or has lost one, or never had them.
    pub(crate) fn is_to_be_let_go(&self, who: Who) -> bool {
        let sessions = &self.processes[who as usize].memory.sessions;
        self.plan.holds.is_some()
            && (self.says_not_held() || sessions.values().any(|session| *session != Session::Open))
    }

    /// What is said to be held is, by somebody who will release it; and what is undone is held by nobody.
    pub(crate) fn check_held(&self) {
        let object = self.server.last_seen();
        let status = object.status.clone().unwrap_or_default();
        let owed = self.server.current().is_some() && !is_closed(object);
        let open = Who::ALL.iter().filter(|who| self.has_open_session(**who)).count();
        if self.plan.holds.is_none() || !owed || status.state != State::Succeeded {
            assert_eq!(open, 0, "sessions are open that nobody will release: {object:#?}");
        } else {
            assert_eq!((said(&status), open), (Some(true), 1), "not held as is said: {object:#?}");
        }
    }
}
