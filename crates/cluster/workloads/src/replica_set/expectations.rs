//! What was asked for and is not seen in the cache yet: until it is, a ReplicaSet's pods are neither added nor removed.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::key::Key;

/// As in the native controller: after this, what never came is forgotten.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(crate) struct Expectations {
    of: Mutex<HashMap<Key, Expected>>,
}

struct Expected {
    creations: usize,
    deletions: HashSet<Key>,
    since: Instant,
}

impl Expectations {
    fn of(&self) -> MutexGuard<'_, HashMap<Key, Expected>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expect_creations(&self, owner: &Key, creations: usize) {
        let expected = Expected { creations, deletions: HashSet::new(), since: Instant::now() };
        self.of().insert(owner.clone(), expected);
    }

    pub(crate) fn expect_deletions(&self, owner: &Key, deletions: impl IntoIterator<Item = Key>) {
        let expected = Expected { creations: 0, deletions: deletions.into_iter().collect(), since: Instant::now() };
        self.of().insert(owner.clone(), expected);
    }

    /// A pod was seen, or will never come.
    pub(crate) fn created(&self, owner: &Key) {
        if let Some(expected) = self.of().get_mut(owner) {
            expected.creations = expected.creations.saturating_sub(1);
        }
    }

    /// A pod was seen to go, or stays after all.
    pub(crate) fn deleted(&self, owner: &Key, pod: &Key) {
        if let Some(expected) = self.of().get_mut(owner) {
            expected.deletions.remove(pod);
        }
    }

    pub(crate) fn forget(&self, owner: &Key) {
        self.of().remove(owner);
    }

    pub(crate) fn met(&self, owner: &Key) -> bool {
        let of = self.of();
        let Some(expected) = of.get(owner) else { return true };
        (expected.creations == 0 && expected.deletions.is_empty()) || expected.since.elapsed() > PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_more_is_done_until_all_that_was_asked_for_is_seen() {
        let (owner, pod) = (Key::new("n", "web"), Key::new("n", "web-1"));
        let expectations = Expectations::default();
        assert!(expectations.met(&owner));
        expectations.expect_creations(&owner, 2);
        expectations.created(&owner);
        assert!(!expectations.met(&owner));
        expectations.created(&owner);
        assert!(expectations.met(&owner));
        expectations.expect_deletions(&owner, [pod.clone()]);
        expectations.deleted(&owner, &Key::new("n", "another"));
        assert!(!expectations.met(&owner));
        expectations.deleted(&owner, &pod);
        assert!(expectations.met(&owner));
    }
}
