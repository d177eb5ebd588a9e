//! What can go wrong in a controller: a call to the API server, a file, or a thing that must wait for another.

use std::fmt;

use kube::core::Status;

use crate::key::Key;

pub(crate) type Result<T> = std::result::Result<T, Error>;

#[derive(Debug)]
pub enum Error {
    /// The API server refused or did not answer.
    Api(kube::Error),
    /// A file of a volume.
    File { doing: String, source: std::io::Error },
    /// Not possible yet, or not at all; said in a sentence.
    Other(String),
    /// A task of the controllers ended, though none may.
    TaskEnded(&'static str),
}

impl Error {
    fn is(&self, holds: impl Fn(&Status) -> bool) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if holds(status))
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.is(Status::is_not_found)
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.is(Status::is_conflict)
    }

    pub(crate) fn already_exists(&self) -> bool {
        self.is(Status::is_already_exists)
    }

    /// The refusal to create anything in a namespace that is being deleted.
    pub(crate) fn namespace_is_terminating(&self) -> bool {
        self.is(|status| {
            let mut causes = status.details.iter().flat_map(|details| &details.causes);
            causes.any(|cause| cause.reason == "NamespaceTerminating")
        })
    }

    pub(crate) fn log(&self, controller: &'static str, key: &Key) {
        if self.is_conflict() {
            tracing::debug!(controller, %key, "{self}");
        } else {
            tracing::info!(controller, %key, "will try again: {self}");
        }
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

/// A refusal reads as the API server worded it: conditions and events carry it.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(kube::Error::Api(status)) => f.write_str(&status.message),
            Self::Api(error) => write!(f, "{error}"),
            Self::File { doing, source } => write!(f, "failed to {doing}: {source}"),
            Self::Other(sentence) => f.write_str(sentence),
            Self::TaskEnded(name) => write!(f, "the task `{name}` ended"),
        }
    }
}

impl std::error::Error for Error {}
