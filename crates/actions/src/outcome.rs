//! How an action ended.

use boathook_api::pod_notification::ErrorType;
use jiff::Timestamp;

use crate::until::Until;

/// What is known about how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It said so.
    Succeeded,
    /// It did not do what was asked, or not in time.
    Failed(Failure),
    /// It may have run and ended, or not: nobody can know.
    Unknown(Failure),
}

/// Why, for programs and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: ErrorType,
    pub message: String,
}

impl Failure {
    pub fn new(kind: ErrorType, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// How all of it ended: the last attempt, and its probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub outcome: Outcome,
    /// Of the handler, if it ran to its end.
    pub exit_code: Option<i32>,
    /// The last 10 KiB of what the handler printed, both outputs as they came.
    pub output: String,
    /// The instance that it ran in, if one was found.
    pub container_id: Option<String>,
    /// How often the handler was started.
    pub attempts: i32,
    pub started: Timestamp,
    pub completed: Timestamp,
    /// Something that was started may still be running.
    pub process_may_remain: bool,
}

/// How one attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) outcome: Outcome,
    pub(crate) exit_code: Option<i32>,
    pub(crate) output: String,
    pub(crate) container_id: Option<String>,
    pub(crate) process_may_remain: bool,
}

impl Attempt {
    pub(crate) fn succeeded() -> Self {
        let outcome = Outcome::Succeeded;
        Self { outcome, exit_code: None, output: String::new(), container_id: None, process_may_remain: false }
    }

    pub(crate) fn failed(kind: ErrorType, message: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed(Failure::new(kind, message)), ..Self::succeeded() }
    }

    /// It may have run, and may do so still.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        let failure = Failure::new(ErrorType::OutcomeUnknown, message);
        Self { outcome: Outcome::Unknown(failure), process_may_remain: true, ..Self::succeeded() }
    }

    /// It was cancelled, and nothing of it had begun.
    pub(crate) fn revoked() -> Self {
        Self::failed(ErrorType::Revoked, "cancelled before anything was run")
    }

    pub(crate) fn timed_out(what: &str, until: &Until) -> Self {
        Self::failed(ErrorType::HandlerTimeout, format!("{what} did not end within {:?}", until.limit()))
    }
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Self {
        Self { outcome: Outcome::Failed(failure), ..Self::succeeded() }
    }
}
