//! What runs in this process, and how it ended, until that is written down.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use boathook_actions::{Cancel, Place, Session, Target};
use boathook_api::{
    PodNotification,
    outcome::{Ended, Failure, Outcome, UndoWork, Work},
    pod_notification::ErrorType,
};
use boathook_decide::pod_notification::{Progress, Sessions};
use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use kube::{ResourceExt, runtime::reflector::ObjectRef};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    Room, Rooms,
    sessions::{Held, run_handler, take_back},
};
use crate::metrics::{Metrics, Purpose};

/// Everything that runs here, by the UID of its object.
#[derive(Clone)]
pub struct Runs(Arc<Inner>);

struct Inner {
    place: Place,
    metrics: Arc<Metrics>,
    rooms: Rooms,
    table: Mutex<HashMap<String, Entry>>,
    /// Objects whose handlers or undos have ended.
    ended: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    /// How many objects have something under way, or something that is not written down yet.
    under_way: watch::Sender<usize>,
    /// Sessions are not kept any more.
    closing: AtomicBool,
}

#[derive(Default)]
struct Entry {
    /// As it was when something was last begun for it.
    object: Option<PodNotification>,
    run: Progress,
    cancel: Option<Cancel>,
    undo: Progress,
    undo_rounds: u32,
    held: Held,
}

/// What one container's handler or undo comes to.
type Part = BoxFuture<'static, (Ended, Option<Session>)>;

/// What of an object matters to whoever runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub pod: String,
    pub pod_uid: String,
    /// Where the pod runs. Empty: unknown.
    pub node: String,
}

impl Subject {
    pub fn of(object: &PodNotification) -> Self {
        let status = object.status.as_ref();
        Self {
            uid: object.uid().unwrap_or_default(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            pod: object.spec.pod_name.clone(),
            pod_uid: status.and_then(|status| status.pod_uid.clone()).unwrap_or_default(),
            node: status.and_then(|status| status.node_name.clone()).unwrap_or_default(),
        }
    }

    pub fn reference(&self) -> ObjectRef<PodNotification> {
        ObjectRef::new(&self.name).within(&self.namespace)
    }

    fn target(&self, container: String) -> Target {
        let Self { uid: _, namespace, name: _, pod, pod_uid, node: _ } = self.clone();
        Target { namespace, pod, pod_uid, container }
    }
}

impl Runs {
    /// Objects whose handlers or undos end are sent to `ended`.
    pub fn new(
        place: Place,
        metrics: Arc<Metrics>,
        rooms: Rooms,
        ended: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    ) -> Self {
        let (under_way, closing) = (watch::Sender::new(0), AtomicBool::new(false));
        Self(Arc::new(Inner { place, metrics, rooms, table: Mutex::default(), ended, under_way, closing }))
    }

    /// How far an object's handlers and its undo are.
    pub fn progress(&self, uid: &str) -> (Progress, Progress) {
        let table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.get(uid).map_or_else(Default::default, |entry| (entry.run.clone(), entry.undo.clone()))
    }

    /// The sessions that an object's handlers hold. To be asked after its progress: handlers that have ended hold theirs.
    pub fn sessions(&self, uid: &str) -> Sessions {
        let table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        let of = table.get(uid).map(|entry| entry.held.seen()).unwrap_or_default();
        Sessions { of, closing: self.0.closing.load(Ordering::SeqCst) }
    }

    /// From now on sessions are not kept: whoever has some is to be looked at, and counts as under way until then.
    pub fn let_go(&self) {
        self.0.closing.store(true, Ordering::SeqCst);
        let holding = |entry: &&Entry| !entry.held.is_empty();
        let of = |entry: &Entry| entry.object.as_ref().map(ObjectRef::from_obj);
        let all: Vec<_> = self.change(|table| table.values().filter(holding).filter_map(of).collect());
        for object in all {
            let _ = self.0.ended.send(object);
        }
    }

    /// Runs the handlers in every container at once. The room is held until they have ended; what they hold needs none.
    pub fn start(&self, subject: &Subject, work: Vec<(String, Work)>, room: Option<Room>) {
        let cancel = Cancel::new();
        let first = self.change(|table| {
            let entry = table.entry(subject.uid.clone()).or_default();
            let first = entry.run == Progress::Idle;
            if first {
                entry.run = Progress::Running;
                entry.cancel = Some(cancel.clone());
            }
            first
        });
        if first {
            let part = |(container, work): (String, Work)| {
                let (place, target, cancel) = (self.0.place.clone(), subject.target(container.clone()), cancel.clone());
                let (rooms, node) = (self.0.rooms.clone(), subject.node.clone());
                let part = async move {
                    yield_to_undos(&rooms, &node, &cancel).await;
                    run_handler(place, target, work, cancel).await
                };
                (container, part.boxed())
            };
            self.spawn(subject, Purpose::Handler, work.into_iter().map(part).collect(), room);
        }
    }

    /// Ends the handlers that run, as far as the place can.
    pub fn cancel(&self, uid: &str) {
        let cancel = self.change(|table| table.get(uid).and_then(|entry| entry.cancel.clone()));
        cancel.iter().for_each(Cancel::cancel);
    }

    /// Lets no further attempt of the handlers begin; what runs of them goes on to its end.
    pub fn begin_no_more(&self, uid: &str) {
        let cancel = self.change(|table| table.get(uid).and_then(|entry| entry.cancel.clone()));
        cancel.iter().for_each(Cancel::begin_no_more);
    }

    /// Ends all handlers that run, as far as the place can.
    pub fn cancel_all(&self) {
        let all: Vec<_> = self.change(|table| table.values().filter_map(|entry| entry.cancel.clone()).collect());
        all.iter().for_each(Cancel::cancel);
    }

    /// An undo of this object is due and follows soon: handlers that have not started yield to it from now on.
    pub fn undo_is_due(&self, subject: &Subject) {
        self.0.rooms.undo_begins(&subject.node, &subject.uid);
    }

    /// Runs the undos in every container at once, unless they run already. Sessions that are held are released first.
    pub fn start_undo(&self, subject: &Subject, work: Vec<(String, UndoWork)>) {
        let parts = self.change(|table| {
            let entry = table.entry(subject.uid.clone()).or_default();
            if entry.undo == Progress::Running {
                return None;
            }
            entry.undo = Progress::Running;
            entry.undo_rounds += 1;
            let part = |(container, work): (String, UndoWork)| {
                let (place, target) = (self.0.place.clone(), subject.target(container.clone()));
                let session = entry.held.open(&container);
                (container, take_back(place, target, work, session).map(|ended| (ended, None)).boxed())
            };
            Some((entry.undo_rounds == 1, work.into_iter().map(part).collect()))
        });
        if let Some((is_first, parts)) = parts {
            if is_first {
                self.0.rooms.undo_begins(&subject.node, &subject.uid);
            }
            self.spawn(subject, Purpose::Undo, parts, None);
        }
    }

    pub fn forget_run(&self, uid: &str) {
        self.forget(uid, |entry| entry.run = Progress::Idle);
    }

    pub fn forget_undo(&self, uid: &str) {
        self.forget(uid, |entry| {
            entry.undo = Progress::Idle;
            entry.undo_rounds = 0;
            // What is still open is let go.
            entry.held = Held::default();
        });
    }

    /// Remembers an object for which something is begun, for the case that it goes away meanwhile.
    pub(super) fn remember(&self, object: &PodNotification) {
        let uid = object.uid().unwrap_or_default();
        self.change(|table| {
            if let Some(entry) = table.get_mut(&uid) {
                entry.object = Some(object.clone());
            }
        });
    }

    /// The objects of this name for which something was begun here that is not written down.
    pub fn begun_for(&self, reference: &ObjectRef<PodNotification>) -> Vec<PodNotification> {
        let table = self.0.table.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = table.values().filter_map(|entry| entry.object.as_ref());
        objects.filter(|object| ObjectRef::from_obj(*object) == *reference).cloned().collect()
    }

    /// Waits until an object's handlers and undo are as `wanted`.
    pub async fn settled(&self, uid: &str, wanted: impl Fn(&Progress, &Progress) -> bool) {
        let mut changes = self.0.under_way.subscribe();
        loop {
            changes.mark_unchanged();
            let (run, undo) = self.progress(uid);
            if wanted(&run, &undo) || changes.changed().await.is_err() {
                return;
            }
        }
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
        let closing = self.0.closing.load(Ordering::SeqCst);
        let busy = |entry: &&Entry| {
            entry.run != Progress::Idle || entry.undo == Progress::Running || (closing && !entry.held.is_empty())
        };
        self.0.under_way.send_replace(table.values().filter(busy).count());
        changed
    }

    fn forget(&self, uid: &str, change: impl FnOnce(&mut Entry)) {
        self.change(|table| {
            let Some(entry) = table.get_mut(uid) else { return };
            change(entry);
            if entry.run == Progress::Idle && entry.undo == Progress::Idle && entry.held.is_empty() {
                table.remove(uid);
            }
        });
    }

    fn spawn(&self, subject: &Subject, purpose: Purpose, parts: Vec<(String, Part)>, room: Option<Room>) {
        let (runs, subject) = (self.clone(), subject.clone());
        let in_flight = self.0.metrics.run_begun(purpose);
        tokio::spawn(async move {
            let (results, sessions) = all(parts).await;
            runs.count(purpose, &results);
            drop(in_flight);
            drop(room);
            sessions.iter().for_each(|(_, session)| runs.watch(session, &subject));
            runs.finish(&subject.uid, purpose, results, Held::of(sessions));
            // Nobody listens any more: everything ends, and the object tells the next process.
            let _ = runs.0.ended.send(subject.reference());
        });
    }

    /// Has the object looked at as soon as the session has ended.
    fn watch(&self, session: &Session, subject: &Subject) {
        let (ended, look_again, object) = (session.ended(), self.0.ended.clone(), subject.reference());
        tokio::spawn(async move {
            ended.await;
            let _ = look_again.send(object);
        });
    }

    fn count(&self, purpose: Purpose, results: &[(String, Ended)]) {
        for (_, ended) in results {
            let outcome = match ended.outcome {
                Outcome::Succeeded => "succeeded",
                Outcome::Failed(_) => "failed",
                Outcome::Unknown(_) => "unknown",
            };
            let took = Duration::try_from(ended.completed.duration_since(ended.started)).unwrap_or_default();
            self.0.metrics.run_ended(purpose, outcome, took);
        }
    }

    fn finish(&self, uid: &str, purpose: Purpose, results: Vec<(String, Ended)>, held: Held) {
        self.change(|table| {
            let entry = table.entry(uid.to_owned()).or_default();
            match purpose {
                Purpose::Handler => {
                    entry.run = Progress::Ended { results, round: 1 };
                    entry.cancel = None;
                    entry.held = held;
                }
                Purpose::Undo => entry.undo = Progress::Ended { results, round: entry.undo_rounds },
            }
        });
        if purpose == Purpose::Undo {
            self.0.rooms.undo_ended(uid);
        }
    }
}

/// Waits with the start of a handler while an undo begins on its node. The wait ends when the handler is cancelled, so the
/// undo of its own object never waits for it. A handler whose process lost the lease is cancelled.
async fn yield_to_undos(rooms: &Rooms, node: &str, cancel: &Cancel) {
    tokio::select! {
        biased;
        () = cancel.begins_no_more() => {}
        may_start = rooms.may_start(node) => if !may_start {
            cancel.begin_no_more();
        },
    }
}

/// Every container's part, at once; a panic is an outcome that nobody knows.
async fn all(parts: Vec<(String, Part)>) -> (Vec<(String, Ended)>, Vec<(String, Session)>) {
    let mut running = JoinSet::new();
    let mut names = HashMap::new();
    for (container, part) in parts {
        let task = running.spawn(part);
        names.insert(task.id(), container);
    }
    let (mut results, mut sessions) = (Vec::new(), Vec::new());
    while let Some(joined) = running.join_next_with_id().await {
        let (id, (ended, session)) = match joined {
            Ok((id, came)) => (id, came),
            Err(error) => (error.id(), (panicked(), None)),
        };
        let Some(container) = names.remove(&id) else { continue };
        sessions.extend(session.map(|session| (container.clone(), session)));
        results.push((container, ended));
    }
    (results, sessions)
}

fn panicked() -> Ended {
    let failure = Failure { kind: ErrorType::OutcomeUnknown, message: "the executor panicked".to_owned() };
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

#[cfg(test)]
mod tests;
