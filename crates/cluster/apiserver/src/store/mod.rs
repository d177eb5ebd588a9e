//! The objects of the cluster: durable, versioned, watchable.
//!
//! One counter numbers all writes, as etcd's does; an object's `metadata.resourceVersion` is the number of its last
//! one. A write is answered, and seen by readers and watchers, once it is durable; all writes that wait share one fsync.
//! Reads are of a [`View`], the objects as they were at one revision; a [`Watcher`] begun at a view's revision sees
//! exactly what comes after it. Everything is in memory; the disk is read when a store is opened.

mod batch;
mod disk;
mod extent;
mod kept;
mod key;
mod ring;
mod shared;
#[cfg(test)]
mod tests;
mod view;
mod watcher;
mod write;
mod writer;

use std::path::Path;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

pub use self::disk::OpenError;
pub use self::extent::DEEPEST;
pub use self::key::{Key, Prefix};
pub use self::ring::{Event, EventKind, TooOld};
pub use self::view::{Stored, View};
pub use self::watcher::{WatchError, Watcher};
pub use self::write::{CommitError, Expect, Write};

use self::disk::{Disk, FIRST_REVISION};
use self::ring::Ring;
use self::shared::Shared;
use self::writer::Writer;

/// Clones are the same store. With the last one its writer ends, after the writes that were accepted.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    /// `None`: there is no disk to wait for.
    writer: Option<Arc<Writer>>,
}

impl Store {
    /// The store in `dir`, made if there is none. It is this process's alone as long as it is open.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        let (disk, view) = Disk::open(dir)?;
        Self::on(disk, view).map_err(|error| OpenError::Failed { path: dir.to_owned(), why: error.to_string() })
    }

    fn on(disk: Disk, view: View) -> std::io::Result<Self> {
        let ring = Ring::starting_at(view.revision());
        let shared = Arc::new(Shared::new(view, ring));
        let writer = Writer::start(disk, shared.clone())?;
        Ok(Self { shared, writer: Some(Arc::new(writer)) })
    }

    /// A store that ends with the process. Its writes never wait, so it works under tokio's paused time too.
    pub fn in_memory() -> Self {
        Self::in_memory_with(Ring::starting_at(FIRST_REVISION))
    }

    fn in_memory_with(ring: Ring) -> Self {
        let empty = View::new(FIRST_REVISION, RedBlackTreeMapSync::new_sync());
        Self { shared: Arc::new(Shared::new(empty, ring)), writer: None }
    }

    /// Makes the write, or says why not. Once sent it happens, whether or not the future is awaited to its end.
    pub async fn commit(&self, write: Write) -> Result<Stored, CommitError> {
        if write.put.as_ref().is_some_and(extent::is_too_deep) {
            return Err(CommitError::TooDeep);
        }
        match &self.writer {
            Some(writer) => writer.commit(write).await,
            None => self.shared.commit(write),
        }
    }

    /// The objects as they are now.
    pub fn view(&self) -> View {
        self.shared.read().view.clone()
    }

    /// The objects as they were at `revision`, if that is recent enough, or if a view of it was kept.
    pub fn view_at(&self, revision: u64) -> Option<View> {
        self.shared.view_at(revision)
    }

    /// Keeps the view for the pages that are still to come. To be called for each page that has a continue token.
    pub fn keep(&self, view: &View) {
        self.shared.keep(view);
    }

    /// What happens after the revision `after`; `None`: from now on.
    pub fn watch(&self, prefix: Prefix, after: Option<u64>) -> Result<Watcher, WatchError> {
        Watcher::new(self.shared.clone(), prefix, after)
    }

    /// Waits until the store is at `revision` or after it.
    pub async fn reached(&self, revision: u64) {
        let reached = self.shared.revisions().wait_for(|current| *current >= revision).await.is_ok();
        debug_assert!(reached, "the sender of revisions is here, in `self`");
    }
}
