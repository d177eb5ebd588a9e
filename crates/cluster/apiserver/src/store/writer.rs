//! The one writer of a durable store: takes all writes that wait, makes them durable with one fsync, shows them to
//! readers and watchers, then answers.
//!
//! A thread of its own, because an fsync blocks. It ends when the last sender is gone, after the writes that were sent.
//! When the disk has failed, it is not known what the file holds. Every further write is refused until the file could be
//! written anew from memory, which has exactly the writes that were acknowledged: so a disk that was full takes writes
//! again when there is room.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::batch::Batch;
use super::disk::{Disk, Row};
use super::shared::Shared;
use super::{CommitError, Stored, Write};

/// Writes in one transaction at most, and as many that wait behind them. Far fewer than the ring has room for, so that
/// watchers keep up; enough that a thousand clients share one fsync.
const TOGETHER: usize = 1024;

/// Between two attempts to write the file anew: each of them writes the whole store.
const PAUSE: Duration = Duration::from_secs(1);

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
            std::thread::Builder::new().name("store-writer".to_owned()).spawn(move || run(disk, &shared, requests))?;
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

fn run(mut disk: Disk, shared: &Shared, mut requests: mpsc::Receiver<Request>) {
    let mut waiting = Vec::with_capacity(TOGETHER);
    let mut failure = None;
    let mut tried: Option<Instant> = None;
    while requests.blocking_recv_many(&mut waiting, TOGETHER) > 0 {
        if failure.is_some() && tried.is_none_or(|tried| tried.elapsed() >= PAUSE) {
            let view = shared.read().view.clone();
            failure = disk.renew(&view).err().map(|error| error.to_string());
            tried = failure.is_some().then(Instant::now);
        }
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

    /// A disk that has no room while `fails` is set.
    #[derive(Debug, Default)]
    struct Failing {
        memory: redb::backends::InMemoryBackend,
        fails: Arc<AtomicBool>,
    }

    impl Failing {
        fn check(&self) -> std::io::Result<()> {
            match self.fails.load(Ordering::SeqCst) {
                true => Err(std::io::Error::other("no space left")),
                false => Ok(()),
            }
        }
    }

    impl redb::StorageBackend for Failing {
        fn len(&self) -> std::io::Result<u64> {
            self.memory.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
            self.memory.read(offset, out)
        }

        fn set_len(&self, len: u64) -> std::io::Result<()> {
            self.check()?;
            self.memory.set_len(len)
        }

        fn sync_data(&self) -> std::io::Result<()> {
            self.check()
        }

        fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
            self.check()?;
            self.memory.write(offset, data)
        }
    }

    fn create(name: &str) -> Write {
        let put = Some(json!({"metadata": {"name": name}}));
        Write { key: Key::new("pods", "a", name), expect: Expect::Absent, put }
    }

    #[tokio::test]
    async fn full_disk_refuses_writes_until_there_is_room() {
        let fails = Arc::new(AtomicBool::new(false));
        let of_disk = fails.clone();
        let backend = move || Failing { fails: of_disk.clone(), ..Failing::default() };
        let (disk, view) = Disk::on(backend).unwrap();
        let store = Store::on(disk, view).unwrap();
        let before = store.commit(create("before")).await.unwrap();

        fails.store(true, Ordering::SeqCst);
        let (first, second) = tokio::join!(store.commit(create("lost")), store.commit(create("lost")));
        for outcome in [first, second] {
            let Err(CommitError::Failed(why)) = outcome else { panic!("{outcome:?}") };
            assert!(why.contains("no space left"), "{why}");
        }
        let view = store.view();
        assert_eq!(view.revision(), before.revision);
        assert_eq!(view.get(&Key::new("pods", "a", "before")), Some(before.clone()), "readers are answered meanwhile");

        fails.store(false, Ordering::SeqCst);
        // Refused only while the attempt before was less than the pause ago.
        let begun = Instant::now();
        let after = loop {
            match store.commit(create("after")).await {
                Ok(after) => break after,
                Err(CommitError::Failed(why)) => assert!(begun.elapsed() < Duration::from_secs(30), "{why}"),
                Err(other) => panic!("{other:?}"),
            }
        };
        assert_eq!(after.revision, before.revision + 1);
        let view = store.view();
        assert_eq!(view.get(&Key::new("pods", "a", "before")), Some(before));
        assert_eq!(view.get(&Key::new("pods", "a", "lost")), None);
    }

    #[tokio::test]
    async fn renewed_file_holds_every_acknowledged_write() {
        let dir = std::env::temp_dir().join(format!("boathook-store-renewed-{}", std::process::id()));
        let store = Store::open(&dir).unwrap();
        store.commit(create("one")).await.unwrap();
        let two = store.commit(create("two")).await.unwrap();
        drop(store);
        let (mut disk, view) = Disk::open(&dir).unwrap();
        disk.renew(&view).unwrap();
        let text = Some(b"{}".to_vec());
        let row = Row { key: Key::new("pods", "a", "three"), revision: two.revision + 1, text };
        disk.commit(&[row], two.revision + 1).unwrap();
        drop(disk);
        let store = Store::open(&dir).unwrap();
        let view = store.view();
        assert_eq!(view.revision(), two.revision + 1);
        assert_eq!(view.get(&Key::new("pods", "a", "two")), Some(two));
        assert!(["one", "three"].iter().all(|name| view.get(&Key::new("pods", "a", *name)).is_some()));
        drop(store);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
