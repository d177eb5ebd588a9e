//! What runs in this process, and how it ended, until that is written down.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use boathook_actions::{Cancel, Place, Target};
use boathook_api::{
    PodNotification,
    outcome::{Ended, Failure, Outcome, Work},
    pod_notification::ErrorType,
};
use boathook_decide::pod_notification::Progress;
use jiff::Timestamp;
use kube::{ResourceExt, runtime::reflector::ObjectRef};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::Room;

/// Everything that runs here, by the UID of its object.
#[derive(Clone)]
pub struct Runs(Arc<Inner>);

struct Inner {
    place: Place,
    table: Mutex<HashMap<String, Entry>>,
    /// Objects whose handlers or undos have ended.
    ended: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    /// How many objects have something under way, or something that is not written down yet.
    under_way: watch::Sender<usize>,
}

#[derive(Default)]
struct Entry {
    run: Progress,
    cancel: Option<Cancel>,
    undo: Progress,
    undo_rounds: u32,
}

/// Which of an object's two runs.
#[derive(Clone, Copy, Debug)]
enum Which {
    Handlers,
    Undo,
}

impl Runs {
    /// Objects whose handlers or undos end are sent to `ended`.
    pub fn new(place: Place, ended: mpsc::UnboundedSender<ObjectRef<PodNotification>>) -> Self {
        let under_way = watch::Sender::new(0);
        Self(Arc::new(Inner { place, table: Mutex::default(), ended, under_way }))
    }

    /// How far an object's handlers and its undo are.
    pub fn progress(&self, uid: &str) -> (Progress, Progress) {
        let table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.get(uid).map_or_else(Default::default, |entry| (entry.run.clone(), entry.undo.clone()))
    }

    /// Runs the handlers in every container at once. The room is held until they have ended.
    pub fn start(&self, object: &PodNotification, work: Vec<(String, Work)>, room: Option<Room>) {
        let cancel = Cancel::new();
        let first = self.change(|table| {
            let entry = table.entry(object.uid().unwrap_or_default()).or_default();
            let first = entry.run == Progress::Idle;
            if first {
                entry.run = Progress::Running;
                entry.cancel = Some(cancel.clone());
            }
            first
        });
        if first {
            self.spawn(object, Which::Handlers, work, cancel, room);
        }
    }

    /// Ends the handlers that run, as far as the place can.
    pub fn cancel(&self, object: &PodNotification) {
        let uid = object.uid().unwrap_or_default();
        let cancel = self.change(|table| table.get(&uid).and_then(|entry| entry.cancel.clone()));
        cancel.iter().for_each(Cancel::cancel);
    }

    /// Runs the undos in every container at once, unless they run already.
    pub fn start_undo(&self, object: &PodNotification, work: Vec<(String, Work)>) {
        let first = self.change(|table| {
            let entry = table.entry(object.uid().unwrap_or_default()).or_default();
            let first = entry.undo != Progress::Running;
            if first {
                entry.undo = Progress::Running;
                entry.undo_rounds += 1;
            }
            first
        });
        if first {
            self.spawn(object, Which::Undo, work, Cancel::new(), None);
        }
    }

    pub fn forget_run(&self, object: &PodNotification) {
        self.forget(object, |entry| entry.run = Progress::Idle);
    }

    pub fn forget_undo(&self, object: &PodNotification) {
        self.forget(object, |entry| {
            entry.undo = Progress::Idle;
            entry.undo_rounds = 0;
        });
    }

    /// Takes over how an undo went that was run before this process knew of its object.
    pub fn remember_undo(&self, uid: &str, results: Vec<(String, Ended)>) {
        self.change(|table| {
            let entry = table.entry(uid.to_owned()).or_default();
            if entry.undo == Progress::Idle {
                entry.undo_rounds = 1;
                entry.undo = Progress::Ended { results, round: 1 };
            }
        });
    }

    /// How many objects have handlers or undos under way, or handlers whose end is not written down yet.
    pub fn under_way(&self) -> watch::Receiver<usize> {
        self.0.under_way.subscribe()
    }

    /// Changes the table, and tells how much is under way.
    fn change<T>(&self, change: impl FnOnce(&mut HashMap<String, Entry>) -> T) -> T {
        // A map is whole between two writes, also when a panic came in between.
        let mut table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut table);
        let busy = |entry: &&Entry| entry.run != Progress::Idle || entry.undo == Progress::Running;
        self.0.under_way.send_replace(table.values().filter(busy).count());
        changed
    }

    fn forget(&self, object: &PodNotification, change: impl FnOnce(&mut Entry)) {
        let uid = object.uid().unwrap_or_default();
        self.change(|table| {
            let Some(entry) = table.get_mut(&uid) else { return };
            change(entry);
            if entry.run == Progress::Idle && entry.undo == Progress::Idle {
                table.remove(&uid);
            }
        });
    }

    fn spawn(
        &self,
        object: &PodNotification,
        which: Which,
        work: Vec<(String, Work)>,
        cancel: Cancel,
        room: Option<Room>,
    ) {
        let runs = self.clone();
        let uid = object.uid().unwrap_or_default();
        let reference = ObjectRef::from_obj(object);
        let targets: Vec<_> = work.into_iter().map(|(container, work)| (target(object, container), work)).collect();
        tokio::spawn(async move {
            let results = all(&runs.0.place, targets, &cancel).await;
            drop(room);
            runs.finish(&uid, which, results);
            // Nobody listens any more: everything ends, and the object tells the next process.
            let _ = runs.0.ended.send(reference);
        });
    }

    fn finish(&self, uid: &str, which: Which, results: Vec<(String, Ended)>) {
        self.change(|table| {
            let entry = table.entry(uid.to_owned()).or_default();
            match which {
                Which::Handlers => {
                    entry.run = Progress::Ended { results, round: 1 };
                    entry.cancel = None;
                }
                Which::Undo => entry.undo = Progress::Ended { results, round: entry.undo_rounds },
            }
        });
    }
}

fn target(object: &PodNotification, container: String) -> Target {
    let pod_uid = object.status.as_ref().and_then(|status| status.pod_uid.clone()).unwrap_or_default();
    let (namespace, pod) = (object.namespace().unwrap_or_default(), object.spec.pod_name.clone());
    Target { namespace, pod, pod_uid, container }
}

/// Every container's work, at once; a panic is an outcome that nobody knows.
async fn all(place: &Place, targets: Vec<(Target, Work)>, cancel: &Cancel) -> Vec<(String, Ended)> {
    let mut running = JoinSet::new();
    let mut names = HashMap::new();
    for (target, work) in targets {
        let (place, cancel, container) = (place.clone(), cancel.clone(), target.container.clone());
        let task = running.spawn(async move { place.run(&target, &work, cancel).await });
        names.insert(task.id(), container);
    }
    let mut results = Vec::new();
    while let Some(joined) = running.join_next_with_id().await {
        let (id, ended) = match joined {
            Ok((id, ended)) => (id, ended),
            Err(error) => (error.id(), panicked()),
        };
        results.extend(names.remove(&id).map(|container| (container, ended)));
    }
    results
}

fn panicked() -> Ended {
    let failure = Failure { kind: ErrorType::OutcomeUnknown, message: "the executor broke down".to_owned() };
    let now = Timestamp::now();
    Ended {
        outcome: Outcome::Unknown(failure),
        exit_code: None,
        output: String::new(),
        container_id: None,
        attempts: 1,
        started: now,
        completed: now,
        process_may_remain: true,
    }
}
