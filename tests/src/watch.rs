//! Waiting by watching: list, then watch, through closed watches and expired resource versions.
//!
//! A [`Watch`] keeps what is there now and every change it saw, in the API server's order, so that a scenario can
//! also say what never happened in between. A wait that is not met says what it waited for and shows the objects it
//! saw and the namespace's Events.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use anyhow::{Context, Result, anyhow, bail, ensure};
use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Ctx, report};

/// What can be watched here: every typed object.
pub trait Watchable:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + 'static> Watchable for K {}

/// One change, with the object as it was after it (for a deletion: last).
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// Created or changed.
    Is(K),
    Gone(K),
}

/// What a watch has seen.
pub struct Seen<K> {
    /// What is there now, by name.
    pub now: BTreeMap<String, K>,
    changes: Vec<Change<K>>,
    listed: bool,
    gap: bool,
}

impl<K> Seen<K> {
    /// Every change since the watch began (the objects of the first list come first). An error if the watch had to
    /// list again, because then some change may be missing and nothing can be said about what never happened.
    pub fn history(&self) -> Result<&[Change<K>]> {
        ensure!(!self.gap, "the watch fell behind and listed again: its history has a gap");
        Ok(&self.changes)
    }
}

/// A watch on the objects of one kind, all or some of them.
pub struct Watch<K: Watchable> {
    events: BoxStream<'static, watcher::Result<watcher::Event<K>>>,
    seen: Seen<K>,
    relist: BTreeMap<String, K>,
    last_error: Option<String>,
    selected_by: String,
    client: Client,
    /// Whose Events a failure shows.
    namespace: String,
}

impl<K: Watchable> Watch<K> {
    /// `namespace` is the one whose Events a failure shows; `api` may be of another scope.
    pub(crate) fn new(api: Api<K>, config: watcher::Config, namespace: &str) -> Self {
        let selectors = [config.field_selector.as_deref(), config.label_selector.as_deref()];
        let selectors: Vec<_> = selectors.into_iter().flatten().collect();
        Self {
            selected_by: if selectors.is_empty() { "all".to_owned() } else { selectors.join(", ") },
            client: api.clone().into_client(),
            events: watcher(api, config).default_backoff().boxed(),
            seen: Seen { now: BTreeMap::new(), changes: vec![], listed: false, gap: false },
            relist: BTreeMap::new(),
            last_error: None,
            namespace: namespace.to_owned(),
        }
    }

    /// Watches until the predicate holds. It is asked first when the list is complete, then after each change.
    pub async fn until(
        &mut self,
        deadline: Duration,
        what: &str,
        mut holds: impl FnMut(&Seen<K>) -> bool,
    ) -> Result<&Seen<K>> {
        let watching = async {
            while !(self.seen.listed && holds(&self.seen)) {
                self.step().await?;
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(deadline, watching).await {
            Ok(Ok(())) => Ok(&self.seen),
            Ok(Err(error)) => Err(error).with_context(|| format!("failed to watch until {what}")),
            Err(_) => Err(anyhow!("waited {deadline:?} in vain until {what}\n{}", self.report().await)),
        }
    }

    async fn step(&mut self) -> Result<()> {
        let Some(event) = self.events.next().await else { bail!("the watch has ended") };
        match event {
            Ok(watcher::Event::Init) => self.relist.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                self.relist.insert(object.name_any(), object);
            }
            Ok(watcher::Event::InitDone) => self.seen.replace(std::mem::take(&mut self.relist)),
            Ok(watcher::Event::Apply(object)) => self.seen.is(object),
            Ok(watcher::Event::Delete(object)) => self.seen.gone(object),
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) if is_final(status.code) => {
                bail!("{} cannot be listed: {}", K::plural(&()), status.message)
            }
            // The watcher goes on by itself, after a pause.
            Err(error) => self.last_error = Some(error.to_string()),
        }
        Ok(())
    }

    /// The last state of every object ever seen, then the Events.
    async fn report(&mut self) -> String {
        let mut last = BTreeMap::new();
        for change in &self.seen.changes {
            let (object, gone) = match change {
                Change::Is(object) => (object, false),
                Change::Gone(object) => (object, true),
            };
            let (versions, ..) = last.get(&object.name_any()).copied().unwrap_or((0, object, false));
            last.insert(object.name_any(), (versions + 1, object, gone));
        }
        let titled: Vec<_> = last
            .into_iter()
            .map(|(name, (versions, object, gone))| {
                let gone = if gone { "; gone now, this is its last state" } else { "" };
                (format!("{} `{name}` (versions seen: {versions}{gone})", K::kind(&())), report::object(object))
            })
            .collect();
        let objects = match titled.as_slice() {
            [] if !self.seen.listed => format!("--- the list of {} never came\n", K::plural(&())),
            [] => format!("--- no {} seen ({})\n", K::kind(&()), self.selected_by),
            titled => report::objects(titled),
        };
        let error = self.last_error.as_ref().map(|error| format!("--- the watch's last error\n{error}\n"));
        objects + &error.unwrap_or_default() + &report::events_in(&self.client, &self.namespace).await
    }
}

impl<K: Watchable> Seen<K> {
    fn is(&mut self, object: K) {
        self.now.insert(object.name_any(), object.clone());
        self.changes.push(Change::Is(object));
    }

    fn gone(&mut self, object: K) {
        self.now.remove(&object.name_any());
        self.changes.push(Change::Gone(object));
    }

    fn replace(&mut self, listed: BTreeMap<String, K>) {
        self.gap = self.listed;
        self.listed = true;
        let lost: Vec<_> =
            self.now.values().filter(|object| !listed.contains_key(&object.name_any())).cloned().collect();
        lost.into_iter().for_each(|object| self.gone(object));
        for object in listed.into_values() {
            let known = self.now.get(&object.name_any()).and_then(ResourceExt::resource_version);
            if known != object.resource_version() {
                self.is(object);
            }
        }
    }
}

/// Asking again does not help: no such resource, or not for us.
fn is_final(code: u16) -> bool {
    matches!(code, 400..=405)
}

impl Ctx {
    /// Watches the one object of that name until the predicate holds for it, and returns it.
    pub async fn watch_until<K>(
        &self,
        deadline: Duration,
        name: &str,
        what: &str,
        mut holds: impl FnMut(&K) -> bool,
    ) -> Result<K>
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        let mut watch = self.watch_by(watcher::Config::default().fields(&format!("metadata.name={name}")));
        let what = format!("{} `{name}` {what}", K::kind(&()));
        let seen = watch.until(deadline, &what, |seen| seen.now.get(name).is_some_and(&mut holds)).await?;
        seen.now.get(name).cloned().context("the object that the predicate held for is not there")
    }

    /// A watch on the scenario's objects with these labels (`app=web`; empty: all). It has listed them when this
    /// returns, so everything that happens from now on is in its history.
    pub async fn watch<K>(&self, labels: &str) -> Result<Watch<K>>
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        let config = watcher::Config::default();
        let mut watch = self.watch_by(if labels.is_empty() { config } else { config.labels(labels) });
        watch.until(crate::DEADLINE, &format!("the {} are listed", K::plural(&())), |_| true).await?;
        Ok(watch)
    }

    fn watch_by<K>(&self, config: watcher::Config) -> Watch<K>
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        Watch::new(self.api(), config, self.namespace())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(name: &str, version: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.into());
        map.metadata.resource_version = Some(version.into());
        map
    }

    fn listed(maps: &[ConfigMap]) -> BTreeMap<String, ConfigMap> {
        maps.iter().map(|map| (map.name_any(), map.clone())).collect()
    }

    fn words(changes: &[Change<ConfigMap>]) -> Vec<String> {
        let word =
            |verb: &str, map: &ConfigMap| format!("{} {verb} {}", map.name_any(), map.resource_version().unwrap());
        changes
            .iter()
            .map(|change| match change {
                Change::Is(map) => word("is", map),
                Change::Gone(map) => word("gone", map),
            })
            .collect()
    }

    #[test]
    fn a_history_holds_every_change_in_order() {
        let mut seen = Seen { now: BTreeMap::new(), changes: vec![], listed: false, gap: false };
        seen.replace(listed(&[map("a", "1")]));
        seen.is(map("b", "2"));
        seen.gone(map("a", "3"));
        assert_eq!(words(seen.history().unwrap()), ["a is 1", "b is 2", "a gone 3"]);
        assert_eq!(seen.now.keys().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_second_list_shows_what_changed_meanwhile_and_breaks_the_history() {
        let mut seen = Seen { now: BTreeMap::new(), changes: vec![], listed: false, gap: false };
        seen.replace(listed(&[map("a", "1"), map("b", "1")]));
        seen.replace(listed(&[map("b", "1"), map("c", "5")]));
        assert_eq!(words(&seen.changes), ["a is 1", "b is 1", "a gone 1", "c is 5"]);
        assert!(seen.history().unwrap_err().to_string().contains("gap"));
    }
}
