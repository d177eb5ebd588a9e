//! The one writer of a durable store: takes all writes that wait, makes them durable with one fsync, shows them to
//! readers and watchers, then answers.
//!
//! A thread of its own, because an fsync blocks. It ends when nobody can send any more, after what was sent. Once the
//! disk has failed, every further write is refused with the same words: what the file holds then is not known.

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use super::batch::Batch;
use super::disk::{Disk, Row};
use super::shared::Shared;
use super::{CommitError, Stored, Write};

/// Writes in one transaction at most, and as many that wait behind them. Far fewer than the ring has room for, so that
/// watchers keep up; enough that a thousand clients share one fsync.
const TOGETHER: usize = 1024;

struct Request {
    write: Write,
    /// What goes to the disk, made by the caller: the writer is the one thing that all writes wait for.
    text: Option<Vec<u8>>,
    reply: oneshot::Sender<Result<Stored, CommitError>>,
}

pub(super) struct Writer {
    /// Gone only while it is dropped.
    queue: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(disk: Disk, shared: Arc<Shared>) -> std::io::Result<Self> {
        let (queue, requests) = mpsc::channel(TOGETHER);
        let thread =
            std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || run(&disk, &shared, requests))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    pub(super) async fn commit(&self, write: Write) -> Result<Stored, CommitError> {
        let ended = || CommitError::Failed("its writer has ended".to_owned());
        let text = write.put.as_ref().map(|object| object.to_string().into_bytes());
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.send(Request { write, text, reply }).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    /// Waits for the writes that were accepted, at most a few fsyncs: afterwards the directory can be opened again.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has said so, and whoever waited for it was told.
            let _ = thread.join();
        }
    }
}

fn run(disk: &Disk, shared: &Shared, mut requests: mpsc::Receiver<Request>) {
    let mut waiting = Vec::with_capacity(TOGETHER);
    let mut failure = None;
    while requests.blocking_recv_many(&mut waiting, TOGETHER) > 0 {
        let mut batch = Batch::on(shared.read().view.clone());
        let mut rows = Vec::with_capacity(waiting.len());
        let mut replies = Vec::with_capacity(waiting.len());
        for Request { write, text, reply } in waiting.drain(..) {
            let key = write.key.clone();
            let outcome = batch.apply(write);
            if let Ok(stored) = &outcome {
                rows.push(Row { key, revision: stored.revision, text });
            }
            replies.push((reply, outcome));
        }
        if failure.is_none() && !rows.is_empty() {
            failure = disk.commit(&rows, batch.view.revision()).err().map(|error| error.to_string());
        }
        if failure.is_none() {
            shared.publish(batch);
        }
        for (reply, outcome) in replies {
            // A refusal may rest on a write before it that failed: then it failed too. A caller that does not wait any
            // more needs no answer.
            let _ = reply.send(failure.clone().map_or(outcome, |why| Err(CommitError::Failed(why))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::json;

    use super::*;
    use crate::store::{Expect, Key, Store};

    /// A disk whose fsync fails from some moment on.
    #[derive(Debug, Default)]
    struct Failing {
        memory: redb::backends::InMemoryBackend,
        fails: Arc<AtomicBool>,
    }

    impl redb::StorageBackend for Failing {
        fn len(&self) -> std::io::Result<u64> {
            self.memory.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
            self.memory.read(offset, out)
        }

        fn set_len(&self, len: u64) -> std::io::Result<()> {
            self.memory.set_len(len)
        }

        fn sync_data(&self) -> std::io::Result<()> {
            if self.fails.load(Ordering::SeqCst) { Err(std::io::Error::other("no space left")) } else { Ok(()) }
        }

        fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
            self.memory.write(offset, data)
        }
    }

    fn create(name: &str) -> Write {
        let put = Some(json!({"metadata": {"name": name}}));
        Write { key: Key::new("pods", "a", name), expect: Expect::Absent, put }
    }

    #[tokio::test]
    async fn a_failed_disk_is_reported_and_ends_all_writing_but_no_reading() {
        let backend = Failing::default();
        let fails = backend.fails.clone();
        let (disk, view) = Disk::on(backend).unwrap();
        let store = Store::on(disk, view).unwrap();
        let before = store.commit(create("before")).await.unwrap();

        fails.store(true, Ordering::SeqCst);
        let (first, second) = tokio::join!(store.commit(create("lost")), store.commit(create("lost")));
        for outcome in [first, second] {
            let Err(CommitError::Failed(why)) = outcome else { panic!("{outcome:?}") };
            assert!(why.contains("no space left"), "{why}");
        }
        fails.store(false, Ordering::SeqCst);
        let after = store.commit(create("after")).await;
        assert!(matches!(after, Err(CommitError::Failed(why)) if why.contains("no space left")));

        let view = store.view();
        assert_eq!(view.revision(), before.revision);
        assert_eq!(view.get(&Key::new("pods", "a", "before")), Some(before));
        assert_eq!(view.get(&Key::new("pods", "a", "lost")), None);
    }
}
