//! The objects of one kind as last seen, kept by a watch; each change is shown to observers with its before and after.
//!
//! A cache may lag behind the API server, never show a thing that was not: who acts on it must bear that (conflicts on
//! old versions, deterministic names, [`crate::replica_set::expectations`]).

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures::{StreamExt, pin_mut};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::key::Key;

/// What an owner does with before and after of a change.
type Observe<O, K> = fn(&O, Option<&Arc<K>>, Option<&Arc<K>>);
type Observer<K> = Box<dyn Fn(Option<&Arc<K>>, Option<&Arc<K>>) + Send + Sync>;

pub(crate) struct Cache<K> {
    objects: RwLock<BTreeMap<Key, Arc<K>>>,
    observers: Mutex<Vec<Observer<K>>>,
    synced: watch::Sender<bool>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self { objects: RwLock::default(), observers: Mutex::default(), synced: watch::Sender::new(false) }
    }
}

impl<K> Cache<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read(|objects| objects.get(key).cloned())
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let inside = |range: Range<'_, Key, Arc<K>>| {
            range.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| object.clone()).collect()
        };
        self.read(|objects| inside(objects.range(Key::new(namespace, "")..)))
    }

    pub(crate) fn all(&self) -> Vec<Arc<K>> {
        self.read(|objects| objects.values().cloned().collect())
    }

    fn read<T>(&self, look: impl FnOnce(&BTreeMap<Key, Arc<K>>) -> T) -> T {
        look(&self.objects.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `observer` with before and after of every change from now on, as long as `owner` lives. To be called
    /// before the cache is followed, so that none is missed.
    pub(crate) fn observe<O>(&self, owner: &Arc<O>, observer: Observe<O, K>)
    where
        O: Send + Sync + 'static,
    {
        // Weak: the owner holds this cache.
        let owner = Arc::downgrade(owner);
        let call = move |before: Option<&Arc<K>>, after: Option<&Arc<K>>| {
            if let Some(owner) = owner.upgrade() {
                observer(&owner, before, after);
            }
        };
        self.observers.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(call));
    }

    /// Returns once the first list is complete.
    pub(crate) async fn synced(&self) {
        // The sender lives as long as `self`.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Follows the API server for ever; what fails is tried again with back-off.
    pub(crate) async fn follow(self: Arc<Self>, api: Api<K>, which: watcher::Config) {
        // Nobody here reads who owns which field, and it is half of an object; a write without it keeps it.
        let without_managers = |object: &mut K| object.meta_mut().managed_fields = None;
        let events = watcher::watcher(api, which).default_backoff().modify(without_managers);
        pin_mut!(events);
        let mut listed = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(Key::of(&object), Arc::new(object));
                }
                Ok(Event::InitDone) => {
                    self.replace(std::mem::take(&mut listed));
                    self.synced.send_replace(true);
                }
                Ok(Event::Apply(object)) => self.change(Key::of(&object), Some(Arc::new(object))),
                Ok(Event::Delete(object)) => self.change(Key::of(&object), None),
                Err(error) => tracing::debug!("a watch will start anew: {error}"),
            }
        }
    }

    fn replace(&self, listed: BTreeMap<Key, Arc<K>>) {
        let gone: Vec<Key> =
            self.read(|objects| objects.keys().filter(|key| !listed.contains_key(key)).cloned().collect());
        for key in gone {
            self.change(key, None);
        }
        for (key, object) in listed {
            self.change(key, Some(object));
        }
    }

    fn change(&self, key: Key, after: Option<Arc<K>>) {
        let before = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            match after.clone() {
                Some(object) => objects.insert(key, object),
                None => objects.remove(&key),
            }
        };
        if let (Some(before), Some(after)) = (&before, &after)
            && before.meta().resource_version == after.meta().resource_version
        {
            return;
        }
        for observer in self.observers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            observer(before.as_ref(), after.as_ref());
        }
    }
}
