//! A watch: a cursor into the ring of events.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::shared::Shared;
use super::{Event, Prefix, TooOld};

/// Why a watch does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchError {
    TooOld(TooOld),
    /// The revision is yet to come.
    Ahead {
        asked: u64,
        current: u64,
    },
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld(too_old) => too_old.fmt(f),
            // As Kubernetes says it.
            Self::Ahead { asked, current } => write!(f, "Too large resource version: {asked}, current: {current}"),
        }
    }
}

impl std::error::Error for WatchError {}

/// Every event that its prefix covers, once and in order, from where it began.
pub struct Watcher {
    shared: Arc<Shared>,
    prefix: Prefix,
    position: u64,
    revisions: watch::Receiver<u64>,
}

impl Watcher {
    pub(super) fn new(shared: Arc<Shared>, prefix: Prefix, after: Option<u64>) -> Result<Self, WatchError> {
        let revisions = shared.revisions();
        let position = {
            let state = shared.read();
            let current = state.view.revision();
            let after = after.unwrap_or(current);
            if after > current {
                return Err(WatchError::Ahead { asked: after, current });
            }
            state.ring.reaches_back_to(after).map_err(WatchError::TooOld)?;
            after
        };
        Ok(Self { shared, prefix, position, revisions })
    }

    /// The next event, as soon as there is one. Dropping the future loses nothing. Once too old, always too old: the
    /// events between are gone. Without its store a watcher waits for ever.
    pub async fn next(&mut self) -> Result<Arc<Event>, TooOld> {
        loop {
            // First marked as seen, then looked at: what comes in between wakes again.
            self.revisions.mark_unchanged();
            if let Some(event) = self.advance()? {
                return Ok(event);
            }
            if self.revisions.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Everything up to this revision that the prefix covers has been returned: a bookmark's `resourceVersion`.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn advance(&mut self) -> Result<Option<Arc<Event>>, TooOld> {
        let state = self.shared.read();
        let next = state.ring.after(self.position)?.find(|event| self.prefix.covers(&event.key)).cloned();
        self.position = next.as_ref().map_or(state.view.revision(), |event| event.revision);
        Ok(next)
    }
}
