//! Keeps the ledger's promises: whatever is armed is undone when its time has come, with or without an API server.
//!
//! It is apart from the run loop on purpose: that one waits for writes, and this one must not. Both start undos
//! through the same [`Runs`], which starts none twice at once.

use std::{
    collections::{BTreeSet, HashSet},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use boathook_api::{outcome::UndoWork, pod_notification::ErrorType};
use boathook_decide::pod_notification::{Progress, undo_work};
use boathook_runtime::{Clock, execution::Runs};
use futures::FutureExt;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::ledger::{Ledger, Record};

/// Between two rounds of an undo that fails: from the first, doubling, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long a handler whose time is over is waited for when it is ended. Asking and killing it take 500 ms; one that
/// cannot be killed, in the middle of a write to a dead disk say, does not hold up its undo.
const LET_END: Duration = Duration::from_millis(700);

/// What to do about a pod that the node does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownPod {
    /// Its sandbox may be made again, after the node's reboot say; whether it is gone for good is the controller's to
    /// say, and that may take as long as the API server is away.
    TryAgain,
    /// Nobody is left to say anything of it.
    GiveUp,
}

pub(crate) struct Keeper {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) runs: Runs,
    pub(crate) clock: Clock,
    /// The UIDs of those that are undone because their objects are gone.
    pub(crate) retiring: Mutex<HashSet<String>>,
    /// Whether one of those panicked.
    pub(crate) broken: watch::Sender<bool>,
}

impl Keeper {
    /// Watches over the ledger. What is overdue already runs first. Ends only when an undo panicked: the next agent
    /// runs that again.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut changes = self.ledger.changes();
        let mut begun = HashSet::new();
        let mut undoing = JoinSet::new();
        let mut broken = self.broken.subscribe();
        loop {
            let records = self.ledger.all();
            begun.retain(|promise| records.iter().any(|record| promise == &promise_of(record)));
            let now = self.clock.now();
            let open = records.into_iter().filter(|record| !begun.contains(&promise_of(record)));
            let timed = open.filter_map(|record| Some((record.remaining(self.ledger.boot(), now)?, record)));
            let (due, later): (Vec<_>, Vec<_>) = timed.partition(|(remaining, _)| remaining.is_zero());
            for (_, record) in due {
                begun.insert(promise_of(&record));
                undoing.spawn(Arc::clone(&self).undo(record, UnknownPod::TryAgain));
            }
            let next = later.into_iter().map(|(remaining, _)| remaining).min();
            let next = async {
                match next {
                    Some(remaining) => sleep(remaining).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                changed = changes.changed() => if changed.is_err() { return },
                Some(ended) = undoing.join_next() => if let Err(error) = ended {
                    tracing::error!(%error, "an undo panicked");
                    return;
                },
                Ok(_) = broken.wait_for(|broken| *broken) => return,
            }
        }
    }

    /// Ends the handler if it still runs, then undoes it, round after round until it succeeds or the record goes.
    pub(crate) async fn undo(self: Arc<Self>, record: Record, unknown_pod: UnknownPod) {
        let subject = record.subject();
        self.runs.cancel(&record.uid);
        if self.owes(&record) {
            self.runs.undo_is_due(&subject);
        }
        // Whether it ended or not: if it has not, another undo follows when it has.
        let _ = timeout(LET_END, self.handlers_end(&record.uid)).await;
        while self.owes(&record) {
            let beside_handlers = self.runs.progress(&record.uid).0 == Progress::Running;
            self.runs.start_undo(&subject, work(&record));
            self.runs.settled(&record.uid, |_, undo| *undo != Progress::Running).await;
            let (_, undo) = self.runs.progress(&record.uid);
            match pause_after(&undo, unknown_pod) {
                Some(pause) => sleep(pause).await,
                None if beside_handlers => self.handlers_end(&record.uid).await,
                None => return,
            }
        }
    }

    fn owes(&self, record: &Record) -> bool {
        self.ledger.get(&record.uid).is_some_and(|kept| promise_of(&kept) == promise_of(record))
    }

    /// Undoes what is owed by objects of this name but the one with this UID: they are gone.
    pub(crate) fn retire_namesakes(self: &Arc<Self>, namespace: &str, name: &str, except: Option<&str>) {
        for record in self.ledger.named(namespace, name) {
            if except != Some(&record.uid) {
                self.retire(record);
            }
        }
    }

    /// Undoes what is owed by an object that is gone, then drops the record. Once, however often it is said.
    pub(crate) fn retire(self: &Arc<Self>, record: Record) {
        let uid = record.uid.clone();
        if !self.lock_retiring().insert(uid.clone()) {
            return;
        }
        let keeper = Arc::clone(self);
        tokio::spawn(async move {
            let undone = async {
                Arc::clone(&keeper).undo(record, UnknownPod::GiveUp).await;
                keeper.runs.forget_run(&uid);
                keeper.runs.forget_undo(&uid);
                // Last: a run without a record is not the keeper's.
                keeper.ledger.disarm(&uid);
                keeper.lock_retiring().remove(&uid);
            };
            if AssertUnwindSafe(undone).catch_unwind().await.is_err() {
                keeper.broken.send_replace(true);
            }
        });
    }

    fn lock_retiring(&self) -> MutexGuard<'_, HashSet<String>> {
        // A set is whole between two writes, also when a panic came in between.
        self.retiring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handlers_end(&self, uid: &str) {
        self.runs.settled(uid, |run, _| *run != Progress::Running).await;
    }
}

/// What is kept once: the undo of an object, and its last round.
fn promise_of(record: &Record) -> (String, bool) {
    (record.uid.clone(), record.last_round)
}

/// How long after this round another follows. `None`: none has to.
fn pause_after(undo: &Progress, unknown_pod: UnknownPod) -> Option<Duration> {
    let (results, round) = match undo {
        // It was written down meanwhile.
        Progress::Idle => return None,
        Progress::Running => return Some(FIRST_PAUSE),
        Progress::Ended { results, round } => (results, *round),
    };
    let failures = || results.iter().filter_map(|(_, ended)| ended.outcome.failure());
    let no_pod = failures().all(|failure| failure.kind == ErrorType::PodNotFound);
    match failures().next() {
        None => None,
        Some(_) if no_pod && unknown_pod == UnknownPod::GiveUp => None,
        Some(_) if no_pod => Some(LONGEST_PAUSE),
        Some(_) => Some(LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(round.saturating_sub(1)))),
    }
}

/// What cannot be read is nobody's to run.
fn work(record: &Record) -> Vec<(String, UndoWork)> {
    let containers: BTreeSet<_> = record.undo.keys().chain(record.release.keys()).collect();
    let work = |container: &String| undo_work(record.undo.get(container), record.release.get(container).copied()).ok();
    containers.into_iter().filter_map(|container| Some((container.clone(), work(container)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    };

    use boathook_actions::{ApiServer, Place};
    use boathook_api::outcome::{Ended, Failure, Outcome};
    use boathook_runtime::execution::{Limits, Rooms};
    use http::Response;
    use jiff::Timestamp;
    use kube::{Client, client::Body, runtime::reflector::ObjectRef};
    use tokio::sync::mpsc;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(600);

    /// A keeper of one record whose pod is nowhere: every look for it is counted. The first `stuck` looks hang so that
    /// nothing stops them, until the test is over.
    struct Fixture {
        keeper: Arc<Keeper>,
        rooms: Rooms,
        record: Record,
        looks: watch::Receiver<usize>,
        dir: std::path::PathBuf,
        _let_go: Sender<()>,
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    impl Fixture {
        fn new(name: &str, stuck: usize) -> Self {
            let (let_go, hang) = channel();
            let (looks, seen) = watch::channel(0);
            let ended = mpsc::unbounded_channel().0;
            let rooms = Rooms::new(Limits { per_node: 9, per_namespace: 9 }, ended.clone());
            let runs = Runs::new(nowhere(stuck, looks, hang), Arc::default(), rooms.clone(), ended);
            let dir = std::env::temp_dir().join(format!("boathook-keeper-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            let ledger = Arc::new(Ledger::open(&dir, "first").unwrap());
            let undo = serde_json::from_value(serde_json::json!({"exec": {"command": ["thaw"]}})).unwrap();
            let record = Record {
                uid: "a".to_owned(),
                namespace: "default".to_owned(),
                name: "one".to_owned(),
                pod: "db-0".to_owned(),
                pod_uid: "p".to_owned(),
                undo: [("main".to_owned(), undo)].into(),
                release: std::collections::BTreeMap::new(),
                boot: "first".to_owned(),
                expires: None,
                last_round: false,
            };
            ledger.arm(record.clone()).unwrap();
            let keeper = Arc::new(Keeper {
                ledger,
                runs,
                clock: Clock::of_the_machine(),
                retiring: Mutex::default(),
                broken: Default::default(),
            });
            Self { keeper, rooms, record, looks: seen, dir, _let_go: let_go }
        }

        async fn looks(&mut self, times: usize) {
            timeout(DEADLINE, self.looks.wait_for(|seen| *seen >= times)).await.unwrap().unwrap();
        }
    }

    /// An API server without any pods.
    fn nowhere(stuck: usize, looks: watch::Sender<usize>, hang: Receiver<()>) -> Place {
        let (hang, count) = (Arc::new(Mutex::new(hang)), Arc::new(AtomicUsize::new(0)));
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let (hang, number) = (Arc::clone(&hang), count.fetch_add(1, Ordering::SeqCst));
            looks.send_replace(number + 1);
            async move {
                if number < stuck {
                    let _ = hang.lock().unwrap().recv();
                }
                let status =
                    serde_json::json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
                Response::builder().status(404).body(Body::from(status.to_string().into_bytes()))
            }
        });
        Place::Api(ApiServer::new(Client::new(service, "default")))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_handler_that_cannot_be_ended_does_not_hold_up_its_undo() {
        let mut fixture = Fixture::new("stuck", 1);
        let handlers =
            work(&fixture.record).into_iter().filter_map(|(container, work)| Some((container, work.action?)));
        fixture.keeper.runs.start(&fixture.record.subject(), handlers.collect(), None);
        fixture.looks(1).await;
        let undoing = tokio::spawn(Arc::clone(&fixture.keeper).undo(fixture.record.clone(), UnknownPod::TryAgain));
        fixture.looks(2).await;
        undoing.abort();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_handler_starts_while_an_undo_waits_for_its_own_handler() {
        let mut fixture = Fixture::new("waits", 1);
        let handlers =
            work(&fixture.record).into_iter().filter_map(|(container, work)| Some((container, work.action?)));
        fixture.keeper.runs.start(&fixture.record.subject(), handlers.collect(), None);
        fixture.looks(1).await;
        let mut undoing =
            std::pin::pin!(Arc::clone(&fixture.keeper).undo(fixture.record.clone(), UnknownPod::TryAgain));
        assert!(futures::poll!(&mut undoing).is_pending());
        let other = ObjectRef::new("other").within("default");
        assert!(fixture.rooms.take("node", &other).is_none());
    }

    #[tokio::test]
    async fn what_was_undone_by_the_ledger_alone_is_undone_once_more_by_it() {
        let mut fixture = Fixture::new("once-more", 0);
        fixture.keeper.ledger.expire("a");
        let keeping = tokio::spawn(Arc::clone(&fixture.keeper).run());
        fixture.looks(1).await;
        fixture.keeper.ledger.postpone("a", Duration::ZERO, &["main"]).unwrap();
        fixture.looks(2).await;
        keeping.abort();
    }

    fn failed(kind: ErrorType, round: u32) -> Progress {
        let (outcome, now) = (Outcome::Failed(Failure { kind, message: String::new() }), Timestamp::now());
        let ended = Ended {
            outcome,
            exit_code: None,
            output: String::new(),
            container_id: None,
            attempts: 1,
            started: now,
            completed: now,
            process_may_remain: false,
        };
        Progress::Ended { results: vec![("main".to_owned(), ended)], round }
    }

    #[test]
    fn a_pod_that_the_node_does_not_know_is_looked_for_again_unless_its_object_is_gone() {
        let unknown = failed(ErrorType::PodNotFound, 1);
        assert_eq!(pause_after(&unknown, UnknownPod::TryAgain), Some(LONGEST_PAUSE));
        assert_eq!(pause_after(&unknown, UnknownPod::GiveUp), None);
    }

    #[test]
    fn an_undo_that_fails_is_tried_again_ever_more_seldom() {
        let after =
            |round| pause_after(&failed(ErrorType::HandlerFailed, round), UnknownPod::GiveUp).unwrap().as_secs();
        assert_eq!([1, 2, 6, 7, u32::MAX].map(after), [1, 2, 32, 60, 60]);
    }

    #[tokio::test]
    async fn whoever_keeps_an_undo_without_an_object_ends_when_there_is_no_pod() {
        let fixture = Fixture::new("no-pod", 0);
        let undoing = Arc::clone(&fixture.keeper).undo(fixture.record.clone(), UnknownPod::GiveUp);
        timeout(DEADLINE, undoing).await.unwrap();
        assert_eq!(*fixture.looks.borrow(), 1);
    }

    #[tokio::test]
    async fn what_an_object_owes_that_was_replaced_is_undone_once_and_dropped() {
        let fixture = Fixture::new("replaced", 0);
        let ledger = &fixture.keeper.ledger;
        ledger.arm(Record { uid: "b".to_owned(), ..fixture.record.clone() }).unwrap();
        let mut changes = ledger.changes();
        for _ in 0..2 {
            fixture.keeper.retire_namesakes("default", "one", Some("b"));
        }
        timeout(DEADLINE, changes.changed()).await.unwrap().unwrap();
        assert_eq!(ledger.all().into_iter().map(|record| record.uid).collect::<Vec<_>>(), ["b"]);
        assert_eq!(*fixture.looks.borrow(), 1);
    }
}
