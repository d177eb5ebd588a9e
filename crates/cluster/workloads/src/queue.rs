//! Keys that need a look, each at most once at a time; failed ones come again, later and later.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use futures::channel::mpsc;
use futures::stream::{self, FuturesUnordered, Stream};
use futures::{FutureExt, StreamExt};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use tokio::time::Instant;

use crate::error::Result;
use crate::key::Key;

/// As in the native controllers: the first retry, doubled by each further one up to the longest.
const FIRST_RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_secs(1000);

/// How many keys of one controller are looked at at once.
const WORKERS: usize = 5;

/// Looks at the keys that `wakes` brings, for ever. `look` says when it wants to look again at a key that no change
/// brought; a key that failed comes again by itself, at most `retries` times until something changes.
pub(crate) async fn work<F>(
    controller: &'static str,
    retries: u32,
    wakes: impl Stream<Item = Key>,
    look: impl Fn(Key) -> F,
) where
    F: Future<Output = Result<Option<Duration>>>,
{
    let (later, delayed) = mpsc::unbounded();
    let wakes = wakes.map(|message| ScheduleRequest { message, run_at: Instant::now() });
    let mut due = pin!(scheduler(stream::select(wakes, delayed)));
    let mut running = FuturesUnordered::new();
    let mut busy: HashSet<Key> = HashSet::new();
    let mut failures: HashMap<Key, u32> = HashMap::new();
    loop {
        let mut idle = due.as_mut().hold_unless(|key| !busy.contains(key));
        tokio::select! {
            Some(key) = idle.next(), if running.len() < WORKERS => {
                busy.insert(key.clone());
                running.push(look(key.clone()).map(|outcome| (key, outcome)));
            }
            Some((key, outcome)) = running.next() => {
                busy.remove(&key);
                let wait = match outcome {
                    Ok(again) => {
                        failures.remove(&key);
                        again
                    }
                    Err(error) => {
                        error.log(controller, &key);
                        let failed = failures.entry(key.clone()).or_default();
                        *failed += 1;
                        retry(*failed, retries)
                    }
                };
                if let Some(wait) = wait {
                    // The receiver is held above.
                    let _ = later.unbounded_send(ScheduleRequest { message: key, run_at: Instant::now() + wait });
                } else {
                    failures.remove(&key);
                }
            }
        }
    }
}

/// How long after so many failures it is tried again; none: no more.
fn retry(failures: u32, retries: u32) -> Option<Duration> {
    let wait = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
    (failures <= retries).then(|| wait.min(LONGEST_RETRY))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_key_that_comes_while_it_is_looked_at_is_looked_at_again_afterwards() {
        let (wake, wakes) = mpsc::unbounded();
        let (looked, mut looks) = mpsc::unbounded();
        let inside = Mutex::new(0);
        let look = |key: Key| {
            let (wake, looked, inside) = (wake.clone(), looked.clone(), &inside);
            async move {
                *inside.lock().unwrap() += 1;
                assert_eq!(*inside.lock().unwrap(), 1, "two looks at once");
                wake.unbounded_send(key.clone()).unwrap();
                tokio::task::yield_now().await;
                *inside.lock().unwrap() -= 1;
                looked.unbounded_send(key).unwrap();
                Ok(None)
            }
        };
        wake.unbounded_send(Key::cluster("a")).unwrap();
        wake.unbounded_send(Key::cluster("a")).unwrap();
        let thrice = async {
            for _ in 0..3 {
                assert_eq!(looks.next().await, Some(Key::cluster("a")));
            }
        };
        tokio::select! {
            () = work("test", u32::MAX, wakes, look) => unreachable!("it works for ever"),
            done = tokio::time::timeout(PATIENCE, thrice) => done.unwrap(),
        }
    }

    #[test]
    fn retries_wait_twice_as_long_each_time_and_end_where_told() {
        assert_eq!(
            [1, 2, 3].map(|failures| retry(failures, 2).map(|wait| wait.as_millis())),
            [Some(5), Some(10), None]
        );
        assert_eq!(retry(60, u32::MAX), Some(LONGEST_RETRY));
    }
}
