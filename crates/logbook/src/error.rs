//! What went wrong: what was being done, and the system's word on it.

use std::{fmt, io};

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Reads as a sentence: `failed to open `data/index`: No such file or directory`.
#[derive(Debug)]
pub struct Error {
    doing: String,
    source: io::Error,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "failed to {}: {}", self.doing, self.source)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Says what was being done.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error { doing: what(), source })
    }
}
