//! The sessions that one object's handlers hold in this process: from the handler that is ready to the undo.

use std::{collections::BTreeMap, sync::Arc};

use boathook_actions::{Cancel, Place, Session, SessionEnd, Target};
use boathook_api::outcome::{Ended, Outcome, UndoWork, Work};
use boathook_decide::pod_notification as decide;
use jiff::Timestamp;

/// By container. They are kept after their end, until that is written down.
#[derive(Default)]
pub(super) struct Held(BTreeMap<String, Arc<Session>>);

impl Held {
    pub(super) fn of(sessions: Vec<(String, Session)>) -> Self {
        Self(sessions.into_iter().map(|(container, session)| (container, Arc::new(session))).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The session of this container, if it has not ended.
    pub(super) fn open(&self, container: &str) -> Option<Arc<Session>> {
        self.0.get(container).filter(|session| session.end().is_none()).cloned()
    }

    /// As a decision sees them.
    pub(super) fn seen(&self) -> BTreeMap<String, decide::Session> {
        self.0.iter().map(|(container, session)| (container.clone(), seen(session.end()))).collect()
    }
}

fn seen(end: Option<SessionEnd>) -> decide::Session {
    match end {
        None => decide::Session::Open,
        Some(SessionEnd::Lost(how)) => decide::Session::Lost(how),
        Some(SessionEnd::Asked { complaint: None, .. }) => decide::Session::Released,
        Some(SessionEnd::Asked { complaint: Some(how), .. }) => decide::Session::NotReleased(how),
    }
}

/// The handler in one container, to its end or until its session is ready.
pub(super) async fn run_handler(place: Place, target: Target, work: Work, cancel: Cancel) -> (Ended, Option<Session>) {
    match work.action.holds() {
        true => place.hold(&target, &work, cancel).await,
        false => (place.run(&target, &work, cancel).await, None),
    }
}

/// The undo in one container: the session that is open is released, then the action runs. A release that failed is the
/// end of this round; the next one finds the session ended.
pub(super) async fn take_back(place: Place, target: Target, work: UndoWork, session: Option<Arc<Session>>) -> Ended {
    let UndoWork { release, action } = work;
    let released = match session.zip(release) {
        Some((session, within)) => match session.release(within).await {
            SessionEnd::Asked { ended, .. } => Some(ended),
            SessionEnd::Lost(_) => None,
        },
        None => None,
    };
    match (released, action) {
        (Some(released), _) if released.outcome != Outcome::Succeeded => released,
        (_, Some(action)) => place.run(&target, &action, Cancel::new()).await,
        (Some(released), None) => released,
        (None, None) => nothing_to_do(),
    }
}

/// Its session has ended, and nothing was to follow that.
fn nothing_to_do() -> Ended {
    let now = Timestamp::now();
    Ended {
        outcome: Outcome::Succeeded,
        exit_code: None,
        output: String::new(),
        container_id: None,
        attempts: 0,
        started: now,
        completed: now,
        process_may_remain: false,
    }
}
