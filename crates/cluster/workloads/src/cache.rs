//! The objects of one kind as last seen, kept by a watch; each change is shown to observers with its before and after.
//!
//! A cache may lag behind the API server, never show a thing that was not: who acts on it must bear that (conflicts on
//! old versions, deterministic names, [`crate::replica_set::expectations`]).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc;
use futures::stream::{self, BoxStream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::key::Key;

/// Any kind of object.
pub(crate) trait Kept: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static {}

impl<K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static> Kept for K {}

pub(crate) struct Cache<K> {
    state: Mutex<State<K>>,
    listed: watch::Sender<bool>,
}

struct State<K> {
    objects: BTreeMap<Key, Arc<K>>,
    observers: Vec<mpsc::UnboundedSender<Change<K>>>,
}

/// An object before and after a change; one of them at least is there.
#[derive(Clone)]
pub(crate) struct Change<K> {
    pub(crate) before: Option<Arc<K>>,
    pub(crate) after: Option<Arc<K>>,
}

impl<K: Resource> Change<K> {
    /// As it is, or was at its end.
    pub(crate) fn latest(&self) -> &Arc<K> {
        self.after.as_ref().or(self.before.as_ref()).expect("a change has a before or an after")
    }

    pub(crate) fn key(&self) -> Key {
        Key::of(&**self.latest())
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let state = State { objects: BTreeMap::new(), observers: Vec::new() };
        Self { state: Mutex::new(state), listed: watch::Sender::new(false) }
    }
}

impl<K: Kept> Cache<K> {
    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.state().objects.get(key).cloned()
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let state = self.state();
        let from = state.objects.range(Key::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| object.clone()).collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<K>> {
        self.state().objects.values().cloned().collect()
    }

    /// The keys that `wake` names for what is there, and for every change from now on.
    pub(crate) fn wakes<'a>(&self, wake: impl Fn(Change<K>) -> Vec<Key> + Send + 'a) -> BoxStream<'a, Key> {
        let (observer, changes) = mpsc::unbounded();
        let mut state = self.state();
        let there = state.objects.values().map(|object| Change { before: None, after: Some(object.clone()) });
        let there: Vec<Change<K>> = there.collect();
        state.observers.push(observer);
        stream::iter(there).chain(changes).flat_map(move |change| stream::iter(wake(change))).boxed()
    }

    /// True once the first list is complete.
    pub(crate) fn listed(&self) -> watch::Receiver<bool> {
        self.listed.subscribe()
    }

    /// Follows the API server for ever; what fails is tried again with back-off.
    pub(crate) async fn follow(self: Arc<Self>, api: Api<K>, which: watcher::Config) {
        // Nobody here reads who owns which field, and it is half of an object; a write without it keeps it.
        let without_managers = |object: &mut K| object.meta_mut().managed_fields = None;
        let mut events = pin!(watcher::watcher(api, which).default_backoff().modify(without_managers));
        let mut listed = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(Key::of(&object), Arc::new(object));
                }
                Ok(Event::InitDone) => {
                    self.replace(std::mem::take(&mut listed));
                    self.listed.send_replace(true);
                }
                Ok(Event::Apply(object)) => self.change(Key::of(&object), Some(Arc::new(object))),
                Ok(Event::Delete(object)) => self.change(Key::of(&object), None),
                Err(error) => tracing::debug!("a watch will start anew: {error}"),
            }
        }
    }

    fn replace(&self, listed: BTreeMap<Key, Arc<K>>) {
        let gone: Vec<Key> = self.state().objects.keys().filter(|key| !listed.contains_key(key)).cloned().collect();
        gone.into_iter().for_each(|key| self.change(key, None));
        listed.into_iter().for_each(|(key, object)| self.change(key, Some(object)));
    }

    fn change(&self, key: Key, after: Option<Arc<K>>) {
        let mut state = self.state();
        let before = match after.clone() {
            Some(object) => state.objects.insert(key, object),
            None => state.objects.remove(&key),
        };
        let version = |object: &Arc<K>| object.meta().resource_version.clone();
        if before.as_ref().map(version) != after.as_ref().map(version) {
            let change = Change { before, after };
            state.observers.retain(|observer| observer.unbounded_send(change.clone()).is_ok());
        }
    }
}
