//! What can go wrong in a controller: a call to the API server, a file, or a thing that must wait for another.

use std::fmt;

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
    pub(crate) fn file(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::File { doing, source }
    }

    fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status),
            Self::Api(_) | Self::File { .. } | Self::Other(_) | Self::TaskEnded(_) => None,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| status.code == 409 && status.reason == "Conflict")
    }

    pub(crate) fn already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// The refusal to create anything in a namespace that is being deleted.
    pub(crate) fn namespace_is_terminating(&self) -> bool {
        let causes = |status: &kube::core::Status| status.details.clone().map(|details| details.causes);
        let causes = self.status().and_then(causes).unwrap_or_default();
        causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
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

/// For deletions and removals of finalizers: that it is gone is what was wanted.
pub(crate) fn gone_is_fine<T>(result: kube::Result<T>) -> Result<()> {
    match result.map_err(Error::from) {
        Err(error) if !error.is_not_found() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// For things that are made from a cache: they may be there already, or their namespace may be about to go.
pub(crate) fn made_is_fine<T>(result: kube::Result<T>) -> Result<()> {
    match result.map_err(Error::from) {
        Err(error) if error.already_exists() || error.is_not_found() || error.namespace_is_terminating() => Ok(()),
        outcome => outcome.map(drop),
    }
}

pub(crate) fn log(controller: &'static str, key: &Key, error: &Error) {
    if error.is_conflict() {
        tracing::debug!(controller, %key, "{error}");
    } else {
        tracing::info!(controller, %key, "will try again: {error}");
    }
}
