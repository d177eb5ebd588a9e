//! The time by which deadlines are judged that count from a moment recorded in an object.
//!
//! A moment recorded by another process can only be compared with the wall clock, which may be stepped back. So a process
//! notes by its own clock when it first saw the moment, and goes by the reckoning that is ahead. A step of the wall clock
//! delays a deadline no longer than it may last from that first look.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::{Resource, runtime::reflector::ObjectRef};

use crate::Clock;

/// What this process knows of the objects of one kind.
pub struct Deadlines<K: Resource<DynamicType = ()>> {
    clock: Clock,
    /// When by `clock` this process first saw each recorded moment.
    seen: Mutex<HashMap<ObjectRef<K>, BTreeMap<Timestamp, Duration>>>,
}

impl<K: Resource<DynamicType = ()>> Deadlines<K> {
    pub fn new(clock: Clock) -> Self {
        Self { clock, seen: Mutex::default() }
    }

    /// The time for a deadline that counts from the moment `recorded` in this object: the wall clock's, or `recorded` and
    /// the time since this process first saw it, whichever is later.
    pub fn now(&self, object: &ObjectRef<K>, recorded: Timestamp, wall: Timestamp) -> Timestamp {
        let moved = self.moved(object, &[recorded].into(), wall);
        let late = moved.get(&recorded).map_or(SignedDuration::ZERO, |here| recorded.duration_since(*here));
        wall.saturating_add(late).unwrap_or(Timestamp::MAX)
    }

    /// Of these moments that the object records, those that this process saw longer ago than `wall` says, and where they are
    /// on that clock. Each is remembered until the object is gone: a stale object, without it, resets nothing.
    pub fn moved(
        &self,
        object: &ObjectRef<K>,
        recorded: &BTreeSet<Timestamp>,
        wall: Timestamp,
    ) -> BTreeMap<Timestamp, Timestamp> {
        let now = self.clock.now();
        // A map is whole between two writes, also after a panic.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(object.clone()).or_default();
        let mut moved = BTreeMap::new();
        for moment in recorded {
            let elapsed = now.saturating_sub(*seen.entry(*moment).or_insert(now));
            let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
            let here = wall.saturating_sub(elapsed).unwrap_or(Timestamp::MIN);
            if here < *moment {
                moved.insert(*moment, here);
            }
        }
        moved
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

    use boathook_api::PodNotification;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    #[test]
    fn wall_clock_that_is_stepped_back_delays_no_deadline() {
        let seconds = Arc::new(AtomicU64::new(500));
        let hand = Arc::clone(&seconds);
        let deadlines =
            Deadlines::<PodNotification>::new(Clock::new(move || Duration::from_secs(hand.load(Ordering::SeqCst))));
        let object = ObjectRef::new("one").within("default");
        let now = |recorded, wall| deadlines.now(&object, at(recorded), at(wall));
        assert_eq!(now(10_000, 10_002), at(10_002), "the wall clock is ahead of this process' first look");
        seconds.store(530, Ordering::SeqCst);
        assert_eq!(now(10_000, 10_032), at(10_032));
        assert_eq!(now(10_000, 6_432), at(10_030), "stepped back by an hour");
        assert_eq!(now(10_000, 13_632), at(13_632), "stepped forward by an hour");
        assert_eq!(now(10_040, 6_440), at(10_040), "another moment is seen for the first time");
        seconds.store(535, Ordering::SeqCst);
        assert_eq!(now(10_040, 6_445), at(10_045));
        deadlines.forget(&object);
        assert_eq!(now(10_040, 6_445), at(10_040));
    }

    #[test]
    fn each_moment_of_an_object_counts_from_its_first_look() {
        let seconds = Arc::new(AtomicU64::new(500));
        let hand = Arc::clone(&seconds);
        let deadlines =
            Deadlines::<PodNotification>::new(Clock::new(move || Duration::from_secs(hand.load(Ordering::SeqCst))));
        let object = ObjectRef::new("one").within("default");
        let moved = |recorded: &[i64], wall| {
            let recorded = recorded.iter().map(|moment| at(*moment)).collect();
            deadlines.moved(&object, &recorded, at(wall)).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(moved(&[10_000], 10_002), []);
        seconds.store(530, Ordering::SeqCst);
        assert_eq!(moved(&[10_000, 10_030], 6_432), [(at(10_000), at(6_402)), (at(10_030), at(6_432))]);
        seconds.store(540, Ordering::SeqCst);
        assert_eq!(moved(&[10_030], 6_442), [(at(10_030), at(6_432))]);
        assert_eq!(moved(&[10_030], 10_042), [], "the wall clock is right again");
        assert_eq!(moved(&[10_000], 6_442), [(at(10_000), at(6_402))], "a look without it resets nothing");
    }
}
