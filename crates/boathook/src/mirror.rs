//! Objects as the API server has them now: a watch that is begun anew when it breaks.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use futures::{StreamExt, stream::BoxStream};
use kube::{
    Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};

use crate::{
    access::{Attempt, explained},
    objects::{Kind, resource},
    pods::Scope,
};

/// What the API server has of one kind in one namespace, as far as it was selected.
pub(crate) struct Mirror<K> {
    scope: Scope,
    events: BoxStream<'static, Result<Event<K>, watcher::Error>>,
    objects: BTreeMap<String, K>,
    /// What a list that is under way has brought so far.
    listed: BTreeMap<String, K>,
    ready: bool,
}

impl<K: Kind + Send + Sync + 'static> Mirror<K> {
    pub(crate) fn new(client: &Client, namespace: &str, config: watcher::Config) -> Self {
        let scope = Scope::Namespace(namespace.to_owned());
        let events = watcher(scope.api::<K>(client), config).default_backoff().boxed();
        Self { scope, events, objects: BTreeMap::new(), listed: BTreeMap::new(), ready: false }
    }

    /// Waits for the next event. An answer that will not change is an error; anything else may be better the next time.
    pub(crate) async fn next(&mut self) -> Result<()> {
        // The stream of a watcher has no end.
        let Some(event) = self.events.next().await else { return std::future::pending().await };
        match event {
            Ok(Event::Init) => self.listed.clear(),
            Ok(Event::InitApply(object)) => _ = self.listed.insert(object.name_any(), object),
            Ok(Event::InitDone) => {
                self.objects = std::mem::take(&mut self.listed);
                self.ready = true;
            }
            Ok(Event::Apply(object)) => _ = self.objects.insert(object.name_any(), object),
            Ok(Event::Delete(object)) => _ = self.objects.remove(&object.name_any()),
            Err(watcher::Error::InitialListFailed(error)) => self.give_up_if_refused(error, "list")?,
            Err(watcher::Error::WatchStartFailed(error)) => self.give_up_if_refused(error, "watch")?,
            Err(_) => {}
        }
        Ok(())
    }

    fn give_up_if_refused(&self, error: kube::Error, verb: &'static str) -> Result<()> {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404) => {
                bail!(explained(error, Attempt { verb, resource: &resource::<K>(), scope: &self.scope }))
            }
            _ => Ok(()),
        }
    }

    /// Whether what is there is known.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(crate) fn get(&self, name: &str) -> Option<&K> {
        self.objects.get(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &K> {
        self.objects.values()
    }
}
