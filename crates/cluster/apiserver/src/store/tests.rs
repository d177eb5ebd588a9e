//! The store against a model of it: a plain list of everything that ever happened.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::disk::FIRST_REVISION;
use super::ring::Ring;
use super::*;

fn object(name: &str, mark: u32) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": "7"}, "mark": mark})
}

fn create(key: &Key, mark: u32) -> Write {
    Write { key: key.clone(), expect: Expect::Absent, put: Some(object(&key.name, mark)) }
}

/// What the future gives without waiting; `None`: it waits.
fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn commit(store: &Store, write: Write) -> Result<Stored, CommitError> {
    ready(store.commit(write)).expect("a store in memory never waits")
}

type Objects = BTreeMap<Key, Stored>;

/// Everything that ever happened, and the objects after each of it.
struct Model {
    history: Vec<(Event, Objects)>,
    capacity: usize,
}

impl Model {
    fn revision(&self) -> u64 {
        FIRST_REVISION + self.history.len() as u64
    }

    fn objects_at(&self, revision: u64) -> Objects {
        let writes = usize::try_from(revision - FIRST_REVISION).unwrap();
        writes.checked_sub(1).map(|last| self.history[last].1.clone()).unwrap_or_default()
    }

    fn objects(&self) -> Objects {
        self.objects_at(self.revision())
    }

    fn oldest(&self) -> u64 {
        FIRST_REVISION + self.history.len().saturating_sub(self.capacity) as u64
    }

    fn next(&self, after: u64, prefix: &Prefix) -> Option<&Event> {
        self.history.iter().map(|(event, _)| event).find(|event| event.revision > after && prefix.covers(&event.key))
    }

    fn write(&mut self, write: Write) -> Result<Stored, CommitError> {
        let mut objects = self.objects();
        let current = objects.get(&write.key).cloned();
        let seen = match write.expect {
            Expect::Absent => None,
            Expect::Revision(revision) => Some(revision),
        };
        if seen != current.as_ref().map(|stored| stored.revision) || (seen.is_none() && write.put.is_none()) {
            return Err(match (seen, current) {
                (None, Some(current)) => CommitError::Exists(current),
                (_, current) => CommitError::Changed { current },
            });
        }
        let revision = self.revision() + 1;
        let kind = match (&write.put, &current) {
            (None, _) => EventKind::Deleted,
            (Some(_), None) => EventKind::Added,
            (Some(_), Some(_)) => EventKind::Modified,
        };
        let mut object = write.put.unwrap_or_else(|| Value::clone(&current.as_ref().unwrap().object));
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let stored = Stored { revision, object: Arc::new(object) };
        match kind {
            EventKind::Added | EventKind::Modified => objects.insert(write.key.clone(), stored.clone()),
            EventKind::Deleted => objects.remove(&write.key),
        };
        let object = stored.object.clone();
        let previous = current.map(|stored| stored.object);
        self.history.push((Event { revision, kind, key: write.key, object, previous }, objects));
        Ok(stored)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// `stale`: from another revision than the object is at.
    Write { key: Key, stale: bool, delete: bool, mark: u32 },
    /// From now, or from so many revisions ago.
    Watch { prefix: Prefix, ago: Option<u64> },
    /// One watcher reads so many events.
    Read { watcher: usize, events: usize },
}

const RESOURCES: [&str; 3] = ["deployments.apps", "pods", "pods.metrics.k8s.io"];
const NAMESPACES: [&str; 3] = ["", "a", "ab"];
const NAMES: [&str; 3] = ["web", "web-1", "x"];

fn step() -> impl Strategy<Value = Step> {
    let of = |texts: [&'static str; 3]| prop::sample::select(texts.to_vec());
    let key = (of(RESOURCES), of(NAMESPACES), of(NAMES)).prop_map(|(a, b, c)| Key::new(a, b, c));
    let prefix = (of(RESOURCES), prop::option::of(of(NAMESPACES)))
        .prop_map(|(resource, namespace)| Prefix { resource: resource.into(), namespace: namespace.map(Into::into) });
    prop_oneof![
        6 => (key, prop::bool::weighted(0.1), prop::bool::weighted(0.3), any::<u32>())
            .prop_map(|(key, stale, delete, mark)| Step::Write { key, stale, delete, mark }),
        1 => (prefix, prop::option::of(0..30_u64)).prop_map(|(prefix, ago)| Step::Watch { prefix, ago }),
        3 => (any::<usize>(), 1..6_usize).prop_map(|(watcher, events)| Step::Read { watcher, events }),
    ]
}

/// The watcher gives what the model says comes next, and nothing that the model does not know.
fn read_next(watcher: &mut Watcher, position: &mut u64, prefix: &Prefix, model: &Model) -> Result<(), TestCaseError> {
    let oldest = model.oldest();
    match ready(watcher.next()) {
        Some(Ok(event)) => {
            prop_assert!(*position >= oldest, "events that follow a gap");
            prop_assert_eq!(Some(&*event), model.next(*position, prefix));
            *position = event.revision;
        }
        Some(Err(too_old)) => {
            prop_assert_eq!(too_old, TooOld { asked: *position, oldest });
            prop_assert!(*position < oldest);
        }
        None => {
            prop_assert_eq!(None, model.next(*position, prefix));
            *position = model.revision();
        }
    }
    prop_assert_eq!(watcher.position(), *position);
    Ok(())
}

fn listed(view: &View, prefix: &Prefix) -> Objects {
    view.list(prefix, None, None).map(|(key, stored)| (key.clone(), stored.clone())).collect()
}

fn everything(view: &View) -> Objects {
    RESOURCES.iter().flat_map(|resource| listed(view, &Prefix::everywhere(*resource))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_the_model_does(steps in prop::collection::vec(step(), 1..120), capacity in 1..60_usize) {
        let store = Store::in_memory_with(Ring::with_capacity(FIRST_REVISION, capacity));
        let mut model = Model { history: Vec::new(), capacity };
        let mut watchers: Vec<(Watcher, u64, Prefix)> = Vec::new();
        for step in steps {
            match step {
                Step::Write { key, stale, delete, mark } => {
                    let expect = match store.view().get(&key) {
                        Some(stored) => Expect::Revision(stored.revision - u64::from(stale)),
                        None if stale => Expect::Revision(FIRST_REVISION),
                        None => Expect::Absent,
                    };
                    let write = Write { put: (!delete).then(|| object(&key.name, mark)), key, expect };
                    prop_assert_eq!(commit(&store, write.clone()), model.write(write));
                    prop_assert_eq!(store.view().revision(), model.revision());
                    prop_assert_eq!(everything(&store.view()), model.objects());
                }
                Step::Watch { prefix, ago } => {
                    let after = ago.map(|ago| model.revision().saturating_sub(ago));
                    let position = after.unwrap_or(model.revision());
                    let oldest = model.oldest();
                    match store.watch(prefix.clone(), after) {
                        Ok(watcher) => {
                            prop_assert!(position >= oldest);
                            watchers.push((watcher, position, prefix));
                        }
                        Err(error) => {
                            prop_assert!(position < oldest);
                            prop_assert_eq!(error, WatchError::TooOld(TooOld { asked: position, oldest }));
                        }
                    }
                }
                Step::Read { watcher, events } if !watchers.is_empty() => {
                    let chosen = watcher % watchers.len();
                    let (watcher, position, prefix) = &mut watchers[chosen];
                    for _ in 0..events {
                        read_next(watcher, position, prefix, &model)?;
                    }
                }
                Step::Read { .. } => {}
            }
        }
        for (mut watcher, mut position, prefix) in watchers {
            for _ in 0..=model.history.len() {
                read_next(&mut watcher, &mut position, &prefix, &model)?;
            }
        }
    }

    #[test]
    fn a_list_and_the_watch_from_its_revision_are_the_whole_truth(
        steps in prop::collection::vec(step(), 1..80),
        capacity in 1..60_usize,
        resource in prop::sample::select(RESOURCES.to_vec()),
        namespace in prop::option::of(prop::sample::select(NAMESPACES.to_vec())),
    ) {
        let store = Store::in_memory_with(Ring::with_capacity(FIRST_REVISION, capacity));
        let mut model = Model { history: Vec::new(), capacity };
        for step in steps {
            let Step::Write { key, stale: _, delete, mark } = step else { continue };
            let expect = store.view().get(&key).map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
            let write = Write { put: (!delete).then(|| object(&key.name, mark)), key, expect };
            prop_assert_eq!(commit(&store, write.clone()), model.write(write));
        }
        let prefix = Prefix { resource: resource.into(), namespace: namespace.map(Into::into) };
        for revision in FIRST_REVISION..=model.revision() {
            let Some(view) = store.view_at(revision) else {
                prop_assert!(revision < model.oldest());
                continue;
            };
            prop_assert!(revision >= model.oldest());
            prop_assert_eq!(view.revision(), revision);
            prop_assert_eq!(everything(&view), model.objects_at(revision));
            let mut known = listed(&view, &prefix);
            prop_assert_eq!(view.count(&prefix), known.len());
            let mut watcher = store.watch(prefix.clone(), Some(revision)).unwrap();
            while let Some(event) = ready(watcher.next()) {
                let Event { revision, kind, key, object, previous } = Event::clone(&event.unwrap());
                let before = match kind {
                    EventKind::Added | EventKind::Modified => known.insert(key, Stored { revision, object }),
                    EventKind::Deleted => known.remove(&key),
                };
                prop_assert_eq!(before.is_some(), kind != EventKind::Added);
                prop_assert_eq!(before.map(|stored| stored.object), previous);
            }
            prop_assert_eq!(known, listed(&store.view(), &prefix));
        }
        prop_assert!(store.view_at(model.revision() + 1).is_none());
    }

    #[test]
    fn pages_put_together_are_the_list(count in 0..40_usize, page in 1..10_usize) {
        let store = Store::in_memory();
        for n in 0..count {
            commit(&store, create(&Key::new("pods", NAMESPACES[n % 3], format!("p{n}")), 0)).unwrap();
            commit(&store, create(&Key::new(format!("pod{}", ["", "s.x", "t"][n % 3]), "a", format!("p{n}")), 0)).unwrap();
        }
        let view = store.view();
        for prefix in [Prefix::everywhere("pods"), Prefix::in_namespace("pods", "a")] {
            let mut pages: Vec<Key> = Vec::new();
            loop {
                let next: Vec<Key> = view.list(&prefix, pages.last(), Some(page)).map(|(key, _)| key.clone()).collect();
                prop_assert!(next.len() <= page);
                prop_assert!(pages.len() <= 2 * count, "pages without end");
                if next.is_empty() {
                    break;
                }
                pages.extend(next);
            }
            prop_assert_eq!(&pages, &listed(&view, &prefix).into_keys().collect::<Vec<_>>());
            let wanted = if prefix.namespace.is_some() { (count + 1) / 3 } else { count };
            prop_assert_eq!(pages.len(), wanted);
        }
    }
}

#[test]
fn a_view_that_was_kept_outlives_the_ring() {
    let store = Store::in_memory_with(Ring::with_capacity(FIRST_REVISION, 2));
    commit(&store, create(&Key::new("pods", "a", "first"), 0)).unwrap();
    let (kept, forgotten) = (store.view(), FIRST_REVISION);
    store.keep(&kept);
    for n in 0..5 {
        commit(&store, create(&Key::new("pods", "a", format!("later-{n}")), 0)).unwrap();
    }
    assert_eq!(everything(&store.view_at(kept.revision()).unwrap()), everything(&kept));
    assert!(store.view_at(forgotten).is_none());
}

#[test]
fn large_objects_leave_the_ring_sooner() {
    let store = Store::in_memory();
    let text = "x".repeat(1 << 20);
    for n in 0..100 {
        let key = Key::new("configmaps", "a", format!("c{n}"));
        let put = Some(json!({"metadata": {"name": &*key.name}, "data": {"text": text}}));
        commit(&store, Write { key, expect: Expect::Absent, put }).unwrap();
    }
    let revision = store.view().revision();
    let prefix = Prefix::everywhere("configmaps");
    assert!(store.watch(prefix.clone(), Some(revision - 50)).is_ok());
    assert!(matches!(store.watch(prefix, Some(revision - 80)), Err(WatchError::TooOld(_))));
}

#[test]
fn a_watch_from_the_future_is_told_apart() {
    let refused = Store::in_memory().watch(Prefix::everywhere("pods"), Some(9)).err();
    assert_eq!(refused, Some(WatchError::Ahead { asked: 9, current: FIRST_REVISION }));
    assert_eq!(refused.unwrap().to_string(), "Too large resource version: 9, current: 1");
}

#[test]
fn an_object_that_could_not_be_read_again_is_refused() {
    let deep = (0..DEEPEST).fold(json!({}), |inner, _| json!({ "in": inner }));
    let write = Write { key: Key::new("pods", "a", "deep"), expect: Expect::Absent, put: Some(deep) };
    assert_eq!(commit(&Store::in_memory(), write), Err(CommitError::TooDeep));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watchers_that_wait_are_woken_for_every_write_of_many_writers() {
    const WRITERS: u32 = 8;
    const EACH: u32 = 200;
    let store = Store::in_memory();
    let last = FIRST_REVISION + u64::from(WRITERS * EACH);
    let watchers: Vec<_> = (0..4)
        .map(|_| {
            let mut watcher = store.watch(Prefix::everywhere("pods"), None).unwrap();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while watcher.position() < last {
                    seen.push(watcher.next().await.unwrap().revision);
                }
                seen
            })
        })
        .collect();
    for writer in 0..WRITERS {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..EACH {
                let written = store.commit(create(&Key::new("pods", "a", format!("{writer}-{n}")), n)).await.unwrap();
                store.reached(written.revision).await;
                assert!(store.view().revision() >= written.revision);
            }
        });
    }
    let deadline = Duration::from_secs(600);
    timeout(deadline, store.reached(last)).await.expect("every write is made");
    for watcher in watchers {
        let seen = timeout(deadline, watcher).await.expect("no watcher sleeps through a write").unwrap();
        assert_eq!(seen, (FIRST_REVISION + 1..=last).collect::<Vec<_>>());
    }
}

/// The next write always comes just when the watcher looks whether there is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_and_a_writer_that_wait_for_each_other_never_stall() {
    const ROUNDS: u32 = 5000;
    let store = Store::in_memory();
    let mut watcher = store.watch(Prefix::everywhere("pods"), None).unwrap();
    let (seen, mut turns) = tokio::sync::mpsc::channel(1);
    let watching = tokio::spawn(async move {
        for _ in 0..ROUNDS {
            let event = watcher.next().await.unwrap();
            seen.send(event.revision).await.unwrap();
        }
    });
    let game = async {
        for n in 0..ROUNDS {
            let written = store.commit(create(&Key::new("pods", "a", n.to_string()), n)).await.unwrap();
            assert_eq!(turns.recv().await, Some(written.revision));
        }
    };
    timeout(Duration::from_secs(600), game).await.expect("no write is slept through");
    watching.await.unwrap();
}
