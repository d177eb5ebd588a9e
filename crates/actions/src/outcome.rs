//! How one attempt of an action ended.

use boathook_api::{
    outcome::{Failure, Outcome},
    pod_notification::ErrorType,
};

use crate::until::Until;

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
        Self::failed(ErrorType::Revoked, "cancelled before the action ran")
    }

    /// Keeps the instance of the attempt before, if this one found none: without an instance, no attempt began anything.
    pub(crate) fn in_instance_of(self, before: Option<&Self>) -> Self {
        let earlier = before.and_then(|before| before.container_id.clone());
        Self { container_id: self.container_id.or(earlier), ..self }
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
