//! The time by which deadlines are judged that count from a moment recorded in an object.
//!
//! A moment recorded by another process can only be compared with the wall clock, which may be stepped back. So a process
//! notes by its own clock when it first saw the moment, and goes by the reckoning that is ahead. A step of the wall clock
//! delays a deadline no longer than it may last from that first look.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube::{Resource, runtime::reflector::ObjectRef};

use crate::Clock;

/// What this process knows of the objects of one kind.
pub struct Deadlines<K: Resource<DynamicType = ()>> {
    clock: Clock,
    /// The recorded moment, and when by `clock` this process first saw it.
    seen: Mutex<HashMap<ObjectRef<K>, (Timestamp, Duration)>>,
}

impl<K: Resource<DynamicType = ()>> Deadlines<K> {
    pub fn new(clock: Clock) -> Self {
        Self { clock, seen: Mutex::default() }
    }

    /// The time for a deadline that counts from the moment `recorded` in this object: the wall clock's, or `recorded` and
    /// the time since this process first saw it, whichever is later.
    pub fn now(&self, object: &ObjectRef<K>, recorded: Timestamp, wall: Timestamp) -> Timestamp {
        let now = self.clock.now();
        // A map is whole between two writes, also after a panic.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match seen.get(object) {
            Some((moment, since)) if *moment == recorded => *since,
            Some(_) | None => {
                seen.insert(object.clone(), (recorded, now));
                now
            }
        };
        let elapsed = SignedDuration::try_from(now.saturating_sub(since)).unwrap_or(SignedDuration::MAX);
        wall.max(recorded.saturating_add(elapsed).unwrap_or(Timestamp::MAX))
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
}
