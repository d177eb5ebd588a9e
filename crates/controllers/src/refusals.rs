//! What the API server refused for good to make: by a quota, by somebody's policy, because the namespace goes.
//!
//! To try again would not help, and something may be frozen meanwhile. So it is not an error of the look that it came in,
//! but a fact that the next one observes.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use boathook_runtime::{Classified, ErrorClass};
use kube::ResourceExt;

use crate::writes::WriteError;

/// Why, by the UID of the object that something was to be made for.
#[derive(Default)]
pub struct Refusals(Mutex<HashMap<String, String>>);

impl Refusals {
    /// Whether it was refused, which is then known; other errors are the caller's.
    pub(crate) fn note<T>(&self, object: &impl ResourceExt, made: Result<T, WriteError>) -> Result<bool, WriteError> {
        match made {
            Ok(_) => Ok(false),
            Err(error) if is_final(error.class()) => {
                self.lock().insert(object.uid().unwrap_or_default(), error.in_words());
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Why what was to be made for it was refused, if it was.
    pub(crate) fn of(&self, object: &impl ResourceExt) -> Option<String> {
        self.lock().get(&object.uid().unwrap_or_default()).cloned()
    }

    /// The same, once: whoever takes it says it.
    pub(crate) fn take(&self, object: &impl ResourceExt) -> Option<String> {
        self.lock().remove(&object.uid().unwrap_or_default())
    }

    /// Something that is not ours is in the way of what was to be made.
    pub(crate) fn note_in_the_way(&self, object: &impl ResourceExt, why: String) {
        self.lock().insert(object.uid().unwrap_or_default(), why);
    }

    /// What was to be said of it is written.
    pub(crate) fn forget(&self, object: &impl ResourceExt) {
        self.lock().remove(&object.uid().unwrap_or_default());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        // A map is whole between two writes, also when a panic came in between.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing but a change elsewhere would help.
pub(crate) fn is_final(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Forbidden | ErrorClass::Invalid | ErrorClass::NotFound => true,
        ErrorClass::Conflict | ErrorClass::AlreadyExists | ErrorClass::Transient => false,
    }
}
