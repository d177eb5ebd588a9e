//! Keys that need a look, each at most once at a time; failed ones come again, later and later.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::{self, Result};
use crate::key::Key;

/// As in the native controllers: the first retry, doubled by each further one up to the longest.
const FIRST_RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_secs(1000);

/// How many keys of one controller are looked at at once.
const WORKERS: usize = 5;

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Key>,
    /// Those in `ready`, and those that came while they were being looked at.
    wanted: HashSet<Key>,
    running: HashSet<Key>,
    delayed: BTreeSet<(Instant, Key)>,
    failures: HashMap<Key, u32>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, key: Key) {
        self.state().add(key);
        self.changed.notify_one();
    }

    /// The next key, now in the hands of the caller until [`Self::done`].
    async fn next(&self) -> Key {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut state = self.state();
                if let Some(key) = state.take(Instant::now()) {
                    return key;
                }
                state.delayed.first().map(|(due, _)| *due)
            };
            match due {
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
                None => changed.await,
            }
        }
    }

    fn done(&self, key: &Key, outcome: std::result::Result<Option<Duration>, ()>, retries: Option<u32>) {
        let mut state = self.state();
        state.running.remove(key);
        if state.wanted.contains(key) {
            state.ready.push_back(key.clone());
        }
        match outcome {
            Ok(again) => {
                state.failures.remove(key);
                if let Some(delay) = again {
                    state.delayed.insert((Instant::now() + delay, key.clone()));
                }
            }
            Err(()) => {
                let failures = state.failures.entry(key.clone()).or_default();
                *failures += 1;
                if retries.is_some_and(|retries| *failures > retries) {
                    state.failures.remove(key);
                } else {
                    let delay = back_off(*failures);
                    state.delayed.insert((Instant::now() + delay, key.clone()));
                }
            }
        }
        drop(state);
        self.changed.notify_one();
    }
}

impl State {
    fn add(&mut self, key: Key) {
        if self.wanted.insert(key.clone()) && !self.running.contains(&key) {
            self.ready.push_back(key);
        }
    }

    fn take(&mut self, now: Instant) -> Option<Key> {
        while self.delayed.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.delayed.pop_first() {
                self.add(key);
            }
        }
        let key = self.ready.pop_front()?;
        self.wanted.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }
}

fn back_off(failures: u32) -> Duration {
    FIRST_RETRY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_RETRY)
}

/// Looks at the keys of a queue for ever. `look` says when it wants to look again at a key that no change brought; a
/// key that failed comes again by itself, at most `retries` times until something changes.
pub(crate) async fn work<F>(controller: &'static str, queue: Arc<Queue>, retries: Option<u32>, look: impl Fn(Key) -> F)
where
    F: Future<Output = Result<Option<Duration>>>,
{
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            key = queue.next(), if running.len() < WORKERS => {
                running.push(look(key.clone()).map(move |outcome| (key, outcome)));
            }
            Some((key, outcome)) = running.next() => {
                let outcome = outcome.map_err(|error| error::log(controller, &key, &error));
                queue.done(&key, outcome, retries);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::cluster(name)
    }

    #[test]
    fn a_key_added_twice_is_taken_once() {
        let mut state = State::default();
        state.add(key("a"));
        state.add(key("a"));
        let now = Instant::now();
        assert_eq!(state.take(now), Some(key("a")));
        assert_eq!(state.take(now), None);
    }

    #[test]
    fn a_key_added_while_it_is_looked_at_comes_again_afterwards() {
        let queue = Queue::default();
        queue.add(key("a"));
        let now = Instant::now();
        assert_eq!(queue.state().take(now), Some(key("a")));
        queue.add(key("a"));
        assert_eq!(queue.state().take(now), None, "it is being looked at");
        queue.done(&key("a"), Ok(None), None);
        assert_eq!(queue.state().take(now), Some(key("a")));
    }

    #[test]
    fn retries_wait_twice_as_long_each_time_and_end_where_told() {
        assert_eq!([1, 2, 3].map(back_off), [5, 10, 20].map(Duration::from_millis));
        assert_eq!(back_off(60), LONGEST_RETRY);
        let queue = Queue::default();
        for _ in 0..3 {
            queue.done(&key("a"), Err(()), Some(2));
        }
        assert_eq!(queue.state().delayed.len(), 2, "the third failure brought no further look");
    }
}
