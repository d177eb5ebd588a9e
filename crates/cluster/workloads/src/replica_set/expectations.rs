//! What was asked for and is not seen in the cache yet: until it is, a ReplicaSet's pods are neither added nor removed.
//! ReplicaSets are known by their uid, so that one of the same name is not taken for the one before it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// As in the native controller: after this, what never came is forgotten.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(crate) struct Expectations {
    of: Mutex<HashMap<String, Expected>>,
}

struct Expected {
    creations: usize,
    /// Names of pods.
    deletions: HashSet<String>,
    since: Instant,
}

impl Expectations {
    fn of(&self) -> MutexGuard<'_, HashMap<String, Expected>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self, owner: &str, creations: usize, deletions: HashSet<String>) {
        self.of().insert(owner.to_owned(), Expected { creations, deletions, since: Instant::now() });
    }

    pub(crate) fn expect_creations(&self, owner: &str, creations: usize) {
        self.expect(owner, creations, HashSet::new());
    }

    pub(crate) fn expect_deletions(&self, owner: &str, pods: impl Iterator<Item = String>) {
        self.expect(owner, 0, pods.collect());
    }

    /// A pod was seen, or will never come.
    pub(crate) fn created(&self, owner: &str) {
        if let Some(expected) = self.of().get_mut(owner) {
            expected.creations = expected.creations.saturating_sub(1);
        }
    }

    /// A pod was seen to go, or stays after all.
    pub(crate) fn deleted(&self, owner: &str, pod: &str) {
        if let Some(expected) = self.of().get_mut(owner) {
            expected.deletions.remove(pod);
        }
    }

    pub(crate) fn forget(&self, owner: &str) {
        self.of().remove(owner);
    }

    pub(crate) fn met(&self, owner: &str) -> bool {
        self.of().get(owner).is_none_or(|expected| {
            (expected.creations == 0 && expected.deletions.is_empty()) || expected.since.elapsed() > PATIENCE
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_more_is_done_until_all_that_was_asked_for_is_seen() {
        let (owner, pod) = ("uid", "web-1");
        let expectations = Expectations::default();
        assert!(expectations.met(owner));
        expectations.expect_creations(owner, 2);
        expectations.created(owner);
        assert!(!expectations.met(owner));
        expectations.created(owner);
        assert!(expectations.met(owner));
        expectations.expect_deletions(owner, [pod.to_owned()].into_iter());
        expectations.deleted(owner, "another");
        assert!(!expectations.met(owner));
        expectations.deleted(owner, pod);
        assert!(expectations.met(owner));
    }
}
