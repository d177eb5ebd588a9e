//! What was to be done in one container, and how it ended: what executors and decisions speak of.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    Probe,
    action::ValidAction,
    declaration::Mistake,
    pod_notification::{ErrorType, Retry},
};

/// What to do in one container: the handler, then its probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub action: ValidAction,
    pub probe: Option<Probe>,
    pub retry: Retry,
}

/// What takes it back in one container. It may be nothing: of a session that is gone, and that nothing follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoWork {
    /// A session that is held there is released first, and has so long to end.
    pub release: Option<Duration>,
    /// Then this runs.
    pub action: Option<Work>,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something said so explicitly: a status, an answer, a probe.
    Succeeded,
    Failed(Failure),
    /// It may have run or not, to its end or not: the stream closed without a status, or nobody listens any more.
    Unknown(Failure),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: ErrorType,
    /// For a person.
    pub message: String,
}

/// One container's work at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub outcome: Outcome,
    pub exit_code: Option<i32>,
    /// The last of what it printed.
    pub output: String,
    /// The instance it ran in.
    pub container_id: Option<String>,
    pub attempts: i32,
    pub started: Timestamp,
    pub completed: Timestamp,
    /// Something that it started may still be running.
    pub process_may_remain: bool,
}

impl Failure {
    pub fn new(kind: ErrorType, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::new(ErrorType::InvalidDeclaration, mistake.to_string())
    }
}

impl Outcome {
    /// Why it is no success.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Succeeded => None,
            Self::Failed(failure) | Self::Unknown(failure) => Some(failure),
        }
    }
}
