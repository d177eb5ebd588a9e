//! What readers, watchers and the writer share: the latest view, the latest events, the views being paged through.
//!
//! The lock is held for moments only: never while anything waits, reads the disk or frees memory.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use tokio::sync::watch;

use super::batch::Batch;
use super::kept::Kept;
use super::ring::Ring;
use super::{CommitError, Stored, View, Write};

const NEVER_POISONED: &str = "nothing panics while it holds the store's lock";

pub(super) struct Shared {
    state: RwLock<State>,
    /// The revision of the latest view: wakes those who wait for one.
    revision: watch::Sender<u64>,
}

pub(super) struct State {
    pub(super) view: View,
    pub(super) ring: Ring,
    pub(super) kept: Kept,
}

impl Shared {
    pub(super) fn new(view: View, ring: Ring) -> Self {
        let revision = watch::Sender::new(view.revision());
        Self { state: RwLock::new(State { view, ring, kept: Kept::default() }), revision }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect(NEVER_POISONED)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect(NEVER_POISONED)
    }

    pub(super) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Shows a batch to everyone. It was made on the latest view: there is one writer.
    pub(super) fn publish(&self, batch: Batch) {
        Self::publish_on(self.write(), batch, &self.revision);
    }

    /// Decides and publishes at once, for a store without a disk to wait for.
    pub(super) fn commit(&self, write: Write) -> Result<Stored, CommitError> {
        let state = self.write();
        let mut batch = Batch::on(state.view.clone());
        let outcome = batch.apply(write);
        Self::publish_on(state, batch, &self.revision);
        outcome
    }

    fn publish_on(mut state: RwLockWriteGuard<'_, State>, batch: Batch, revision: &watch::Sender<u64>) {
        let reached = batch.view.revision();
        let replaced = std::mem::replace(&mut state.view, batch.view);
        let fallen = state.ring.extend(batch.events);
        state.kept.forget_aged(Instant::now());
        drop(state);
        drop((replaced, fallen));
        // Two may come here in the other order: the revision never goes back.
        revision.send_if_modified(|known| {
            let is_news = *known < reached;
            *known = reached.max(*known);
            is_news
        });
    }

    pub(super) fn keep(&self, view: &View) {
        self.write().kept.keep(view.clone(), Instant::now());
    }

    /// The objects as they were at `revision`: kept, or wound back from the latest.
    pub(super) fn view_at(&self, revision: u64) -> Option<View> {
        let (mut view, since): (View, Vec<_>) = {
            let state = self.read();
            if let Some(kept) = state.kept.at(revision, Instant::now()) {
                return Some(kept);
            }
            if revision > state.view.revision() {
                return None;
            }
            (state.view.clone(), state.ring.after(revision).ok()?.cloned().collect())
        };
        for event in since.iter().rev() {
            view.change(event.revision - 1, &event.key, event.previous.clone().map(Stored::of));
        }
        Some(view)
    }
}
