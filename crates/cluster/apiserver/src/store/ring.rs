//! The latest events, in the order of their revisions: what watchers read and views are wound back with.
//!
//! Every revision is one event, so a position in the ring is a revision. It is bounded; what falls off makes watchers
//! that have not read it [`TooOld`], never leaves them a gap.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Key;

/// Half a second of writes at the fastest that a disk takes them (some 15,000 a second), hours at the usual pace: a
/// watcher that is merely unlucky with the scheduler does not fall off.
const EVENTS: usize = 8192;
/// Superseded objects live on in the ring, and one of 2 KiB of text can take 30 KiB of memory. Events of large objects
/// are fewer, so that memory stays bounded.
const BYTES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// One write, as watchers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub revision: u64,
    pub kind: EventKind,
    pub key: Key,
    /// For `Deleted` the last object, with the deletion's `resourceVersion`.
    pub object: Arc<Value>,
    /// What it replaced or deleted: an object that a selector matched before and not now is deleted to its watcher.
    pub previous: Option<Arc<Value>>,
}

/// What was asked for is not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    pub asked: u64,
    /// The smallest revision that one can still watch from.
    pub oldest: u64,
}

impl fmt::Display for TooOld {
    /// As Kubernetes says it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too old resource version: {} ({})", self.asked, self.oldest)
    }
}

impl std::error::Error for TooOld {}

/// An event with the memory that its object takes.
pub(super) struct Weighed {
    pub(super) event: Arc<Event>,
    pub(super) weight: usize,
}

pub(super) struct Ring {
    /// All after this revision are here.
    floor: u64,
    events: VecDeque<Weighed>,
    weight: usize,
    capacity: usize,
}

impl Ring {
    pub(super) fn starting_at(revision: u64) -> Self {
        Self::with_capacity(revision, EVENTS)
    }

    pub(super) fn with_capacity(revision: u64, capacity: usize) -> Self {
        Self { floor: revision, events: VecDeque::new(), weight: 0, capacity }
    }

    /// Takes the next events. What falls off is handed back: freeing it is work that no reader should wait for.
    pub(super) fn extend(&mut self, events: Vec<Weighed>) -> Vec<Weighed> {
        for next in events {
            debug_assert_eq!(next.event.revision, self.floor + self.events.len() as u64 + 1);
            self.weight += next.weight;
            self.events.push_back(next);
        }
        let mut fallen = Vec::new();
        while self.events.len() > self.capacity || self.weight > BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.floor = oldest.event.revision;
            self.weight -= oldest.weight;
            fallen.push(oldest);
        }
        fallen
    }

    /// Whether all that happened after `revision` is still here.
    pub(super) fn reaches_back_to(&self, revision: u64) -> Result<(), TooOld> {
        if revision < self.floor { Err(TooOld { asked: revision, oldest: self.floor }) } else { Ok(()) }
    }

    /// Everything that happened after `revision`, which is none in the future.
    pub(super) fn after(&self, revision: u64) -> Result<impl Iterator<Item = &Arc<Event>>, TooOld> {
        self.reaches_back_to(revision)?;
        let seen = revision - self.floor;
        let seen = usize::try_from(seen).unwrap_or(usize::MAX).min(self.events.len());
        Ok(self.events.range(seen..).map(|weighed| &weighed.event))
    }
}
