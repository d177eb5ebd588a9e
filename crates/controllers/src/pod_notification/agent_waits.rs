//! Since when this process has waited for agents to run undos that are due.
//!
//! A request for an undo has no timestamp, so only the memory of the leader tells how long an agent has been silent. A new
//! leader counts from its own first look.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use boathook_api::PodNotification;
use boathook_runtime::Clock;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;

pub(super) struct AgentWaits {
    clock: Clock,
    since: Mutex<HashMap<ObjectRef<PodNotification>, Duration>>,
}

impl AgentWaits {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, since: Mutex::default() }
    }

    /// Since when this object has been waited for, on the wall clock whose time is now `wall`.
    pub(super) fn since(
        &self,
        object: &ObjectRef<PodNotification>,
        is_awaited: bool,
        wall: Timestamp,
    ) -> Option<Timestamp> {
        if !is_awaited {
            self.forget(object);
            return None;
        }
        let now = self.clock.now();
        let since = *self.since_by_object().entry(object.clone()).or_insert(now);
        let elapsed = SignedDuration::try_from(now.saturating_sub(since)).unwrap_or(SignedDuration::MAX);
        Some(wall.saturating_sub(elapsed).unwrap_or(Timestamp::MIN))
    }

    pub(super) fn forget(&self, object: &ObjectRef<PodNotification>) {
        self.since_by_object().remove(object);
    }

    fn since_by_object(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectRef<PodNotification>, Duration>> {
        // A map is whole between two changes, also after a panic.
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
