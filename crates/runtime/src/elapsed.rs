//! How long it is since a moment recorded in an object, where a deadline may come neither early nor late.
//!
//! A process notes by its own clock when it first saw the moment. From then on no step of the wall clock counts. Only the
//! time before that look is taken from the wall clock, and only if that can be: the moment is not in the future, and the
//! deadline was not over. Otherwise the time counts anew from the look.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::{Resource, runtime::reflector::ObjectRef};

use crate::Clock;

/// What this process knows of the objects of one kind.
pub struct Elapsed<K: Resource<DynamicType = ()>> {
    clock: Clock,
    seen: Mutex<HashMap<ObjectRef<K>, HashMap<Timestamp, Look>>>,
}

/// The first look at a moment.
#[derive(Clone, Copy)]
struct Look {
    /// By the clock of the process.
    at: Duration,
    /// How long ago the moment was then, by the wall clock.
    before: SignedDuration,
}

impl<K: Resource<DynamicType = ()>> Elapsed<K> {
    pub fn new(clock: Clock) -> Self {
        Self { clock, seen: Mutex::default() }
    }

    /// Notes the moments that this object records, and forgets those that it recorded before.
    pub fn look(&self, object: &ObjectRef<K>, recorded: &BTreeSet<Timestamp>, wall: Timestamp) {
        let now = self.clock.now();
        // A map is whole between two writes, also after a panic.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(object.clone()).or_default();
        seen.retain(|moment, _| recorded.contains(moment));
        for moment in recorded {
            seen.entry(*moment).or_insert_with(|| Look { at: now, before: wall.duration_since(*moment) });
        }
    }

    /// How long ago this moment was, from which a deadline of this length counts. No time has passed since a moment that
    /// was not noted.
    pub fn since(&self, object: &ObjectRef<K>, recorded: Timestamp, deadline: SignedDuration) -> SignedDuration {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Look { at, before }) = seen.get(object).and_then(|seen| seen.get(&recorded)).copied() else {
            return SignedDuration::ZERO;
        };
        let after = SignedDuration::try_from(self.clock.now().saturating_sub(at)).unwrap_or(SignedDuration::MAX);
        match (SignedDuration::ZERO..deadline).contains(&before) {
            true => before.saturating_add(after),
            false => after,
        }
    }

    /// The object is gone.
    pub fn forget(&self, object: &ObjectRef<K>) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(object);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use boathook_api::DeploymentLifecycle;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn step_of_the_wall_clock_changes_no_elapsed_time() {
        const START: i64 = 10_000;
        // How far the wall clock is from the recorded start at the first look, and what of it counts of 600 seconds.
        for (before, counts) in [(0, 0), (20, 20), (599, 599), (600, 0), (3_600, 0), (-1, 0), (-3_600, 0)] {
            let seconds = Arc::new(AtomicU64::new(500));
            let hand = Arc::clone(&seconds);
            let elapsed = Elapsed::<DeploymentLifecycle>::new(Clock::new(move || {
                Duration::from_secs(hand.load(Ordering::SeqCst))
            }));
            let object = ObjectRef::new("web").within("default");
            let since = || elapsed.since(&object, at(START), SignedDuration::from_secs(600)).as_secs();
            let look = |wall| elapsed.look(&object, &[at(START)].into(), at(wall));
            assert_eq!(since(), 0, "it was never seen");
            look(START + before);
            assert_eq!(since(), counts);
            seconds.store(530, Ordering::SeqCst);
            for step in [-3_600, 3_600] {
                look(START + before + 30 + step);
                assert_eq!(since(), counts + 30, "stepped by {step}");
            }
            elapsed.look(&object, &BTreeSet::new(), at(START + 30));
            assert_eq!(since(), 0, "it is not recorded any longer");
            look(START);
            seconds.store(540, Ordering::SeqCst);
            assert_eq!(since(), 10);
            elapsed.forget(&object);
            assert_eq!(since(), 0);
        }
    }
}
