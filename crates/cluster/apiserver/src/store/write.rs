//! What writers ask of the store, and its answers.

use std::fmt;

use serde_json::Value;

use super::{Key, Stored};

/// One change of one object, made only if the object is as the writer saw it.
#[derive(Clone, Debug)]
pub struct Write {
    pub key: Key,
    pub expect: Expect,
    /// The new object; `None` deletes. The store sets its `metadata.resourceVersion`.
    pub put: Option<Value>,
}

/// What the writer last saw under the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Revision(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub enum CommitError {
    /// It was expected to be absent.
    Exists(Stored),
    /// It was expected at another revision; `None`: it is gone.
    Changed { current: Option<Stored> },
    /// It nests deeper than [`super::DEEPEST`] and could not be read again.
    TooDeep,
    /// The disk, or whatever else ended the store: whether this write outlives a restart is not known, and no further
    /// one is taken.
    Failed(String),
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(stored) => write!(f, "the object exists, at revision {}", stored.revision),
            Self::Changed { current: Some(stored) } => write!(f, "the object is at revision {} now", stored.revision),
            Self::Changed { current: None } => f.write_str("the object is gone"),
            Self::TooDeep => write!(f, "the object nests deeper than {} levels", super::DEEPEST),
            Self::Failed(why) => write!(f, "the store takes no writes: {why}"),
        }
    }
}

impl std::error::Error for CommitError {}
