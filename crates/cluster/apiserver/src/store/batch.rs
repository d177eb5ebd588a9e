//! Deciding writes: which of those that wait hold, what the objects are then, and what watchers are told.
//!
//! Pure. Nothing is seen by anyone until the batch is published, which for a durable store is after the fsync.

use std::sync::Arc;

use serde_json::Value;

use super::extent::weigh;
use super::ring::Weighed;
use super::{CommitError, Event, EventKind, Expect, Stored, View, Write};

pub(super) struct Batch {
    pub(super) view: View,
    /// One for each revision that the batch adds, in their order.
    pub(super) events: Vec<Weighed>,
}

impl Batch {
    pub(super) fn on(view: View) -> Self {
        Self { view, events: Vec::new() }
    }

    /// A write sees those before it in the batch. A refused one changes nothing.
    pub(super) fn apply(&mut self, write: Write) -> Result<Stored, CommitError> {
        let Write { key, expect, put } = write;
        let current = self.view.get(&key);
        match (expect, &current) {
            (Expect::Absent, None) => {}
            (Expect::Absent, Some(current)) => return Err(CommitError::Exists(current.clone())),
            (Expect::Revision(expected), Some(current)) if current.revision == expected => {}
            (Expect::Revision(_), _) => return Err(CommitError::Changed { current }),
        }
        let revision = self.view.revision() + 1;
        let (kind, stored) = match (put, &current) {
            (Some(object), None) => (EventKind::Added, Stored::at(revision, object)),
            (Some(object), Some(_)) => (EventKind::Modified, Stored::at(revision, object)),
            // Watchers see the last object, at the revision of its deletion: from there they resume.
            (None, Some(last)) => (EventKind::Deleted, Stored::at(revision, Value::clone(&last.object))),
            (None, None) => return Err(CommitError::Changed { current: None }),
        };
        self.view.change(revision, &key, (kind != EventKind::Deleted).then(|| stored.clone()));
        let weight = weigh(&stored.object);
        let previous = current.map(|stored| stored.object);
        let event = Event { revision, kind, key, object: stored.object.clone(), previous };
        self.events.push(Weighed { event: Arc::new(event), weight });
        Ok(stored)
    }
}
