//! The run loop that every controller shares: one look at an object at a time, many objects at once.
//!
//! It watches one kind and calls a [`Reconcile`] for each object that changed, was named by a trigger, or asked to be
//! looked at again. What fails is tried again with a back-off by class of error and by object; whoever was out of date
//! gets the object as the API server has it, not as the watch has it. An object that cannot be read, and a reconcile
//! that panics, harm themselves alone. When it is told to stop, it begins nothing more and lets what runs finish.

mod turn;

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt::Debug,
    marker::PhantomData,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt, Stream, StreamExt, future,
    stream::{self, BoxStream, SelectAll},
};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        controller::{Action, Config, Controller, Error},
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};

use self::turn::Turns;
use crate::{
    Metrics,
    error_class::{Classified, ErrorClass, chain},
    lenient::{Lenient, watched},
    watches::Watches,
};

/// How long what runs may go on after the stop.
const GRACE: Duration = Duration::from_secs(10);

/// How many objects are looked at at once. Urgent ones come on top.
const CONCURRENCY: usize = 64;

/// A look at the API server takes this long at most.
const LOOK_DEADLINE: Duration = Duration::from_secs(10);

/// What one controller does about one object.
pub trait Reconcile<K: Kind>: Send + Sync + 'static {
    type Error: Classified + Send + 'static;

    /// Looks at the object and does what is due. Returns after what time to look again, if nothing changes before.
    /// Never called twice at once for one object.
    fn reconcile(&self, object: Arc<K>) -> impl Future<Output = Result<Option<Duration>, Self::Error>> + Send;

    /// From when on the object must not wait behind others: an undo of it is due.
    fn urgent_at(&self, object: &K) -> Option<Timestamp> {
        let _ = object;
        None
    }

    /// The object is no more. Another one of its name may be there already: what was kept for it is known by its UID.
    fn gone(&self, object: &ObjectRef<K>) {
        let _ = object;
    }
}

/// Any kind of ours: namespaced, and known at compile time.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A run loop before it runs.
pub struct RunLoop<K: Kind> {
    client: Client,
    watch: watcher::Config,
    /// Which objects it keeps and looks at; absent: all of them.
    only: Option<fn(&K) -> bool>,
    watches: Watches,
    store: (Store<Lenient<K>>, Writer<Lenient<K>>),
    /// Whether the watch has told of every object once.
    listed: watch::Sender<bool>,
    triggers: SelectAll<BoxStream<'static, ObjectRef<K>>>,
    concurrency: usize,
    metrics: Arc<Metrics>,
}

impl<K: Kind> RunLoop<K> {
    /// Over the objects of all namespaces that `watch` selects.
    pub fn new(client: Client, watch: watcher::Config) -> Self {
        let (reader, writer) = reflector::store();
        let (store, triggers) = ((reader, writer), SelectAll::new());
        let (watches, metrics) = (Watches::default(), Arc::default());
        let listed = watch::Sender::new(false);
        Self { client, watch, only: None, watches, store, listed, triggers, concurrency: CONCURRENCY, metrics }
    }

    /// Keeps and looks at these objects only, for what no selector of the API server can select. An unreadable
    /// object is not selected.
    pub fn only(mut self, only: fn(&K) -> bool) -> Self {
        self.only = Some(only);
        self
    }

    /// How many objects are looked at at once.
    #[cfg(test)]
    fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Counts failures here.
    pub fn metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Registers its watch here.
    pub fn watches(mut self, watches: &Watches) -> Self {
        self.watches = watches.clone();
        self
    }

    /// The objects as the watch has them: maybe a moment out of date.
    pub fn store(&self) -> Store<Lenient<K>> {
        self.store.0.clone()
    }

    /// Waits until the store has every object. [`Store::wait_until_ready`] wakes only its last caller, and the run loop
    /// is one.
    pub fn listed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut listed = self.listed.subscribe();
        async move {
            if listed.wait_for(|listed| *listed).await.is_err() {
                // The run loop has ended.
                future::pending().await
            }
        }
    }

    /// Also looks at the objects that this stream names.
    pub fn on(mut self, trigger: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        self.triggers.push(trigger.boxed());
        self
    }

    /// Also looks at the objects that are sent here, for example when something that was begun for them has ended.
    pub fn channel(&mut self) -> mpsc::UnboundedSender<ObjectRef<K>> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        self.triggers.push(stream::poll_fn(move |context| receiver.poll_recv(context)).boxed());
        sender
    }

    /// Runs until `stop`, and then until what was begun has finished, at most 10 s.
    pub async fn run<R: Reconcile<K>>(self, reconcile: Arc<R>, stop: impl Future<Output = ()> + Send + 'static) {
        let Self { client, watch, only, watches, store, listed, triggers, concurrency, metrics } = self;
        let (reader, writer) = store;
        let kept = reader.clone();
        let events = watched::<Lenient<K>>(client.clone(), watch, &watches)
            .filter_map(move |event| future::ready(selected(event, only, &kept)));
        let (store, turns) = (reader.clone(), Turns::new(concurrency));
        let desk =
            Arc::new(Desk { client, reconcile, metrics, store, turns, failures: Mutex::default(), _kind: PhantomData });
        let stop = stop.shared();
        let has_listed = listed.subscribe();
        let (noticing, named) = (Arc::clone(&desk), Arc::clone(&desk));
        let told = events.reflect(writer).inspect(move |event| match event {
            Ok(watcher::Event::InitDone) => drop(listed.send_replace(true)),
            Ok(watcher::Event::Apply(object)) => noticing.notice(object),
            Ok(watcher::Event::Init | watcher::Event::InitApply(_) | watcher::Event::Delete(_)) | Err(_) => {}
        });
        let objects = told.touched_objects();
        let results = Controller::for_stream(objects, reader)
            .reconcile_on(triggers.map(|object| leniently(&object)).inspect(move |object| named.notice_named(object)))
            // Without a limit: `Turns` has one that urgent objects pass.
            .with_config(Config::default().concurrency(0))
            .graceful_shutdown_on(stop.clone())
            .run(
                |object, desk: Arc<Desk<K, R>>| desk.look(object),
                |_, never: &Infallible, _| match *never {},
                Arc::clone(&desk),
            );
        let finished = results.for_each(|result| {
            if let Err(Error::ObjectNotFound(object)) = result {
                desk.forget(object.namespace.as_deref(), &object.name);
            }
            future::ready(())
        });
        let closing = Arc::clone(&desk);
        let too_late = stop.then(|()| async move {
            closing.turns.close();
            // The controller begins nothing before the list, and does not end without it.
            let has_listed = *has_listed.borrow();
            if has_listed {
                tokio::time::sleep(GRACE).await;
                tracing::warn!(kind = %K::kind(&()), "stopped before all reconciliations had ended");
            }
        });
        future::select(std::pin::pin!(finished), std::pin::pin!(too_late)).await;
    }
}

/// What an event means for a store that keeps only some objects: an object that is no longer selected is gone.
fn selected<K: Kind>(
    event: watcher::Result<watcher::Event<Lenient<K>>>,
    only: Option<fn(&K) -> bool>,
    kept: &Store<Lenient<K>>,
) -> Option<watcher::Result<watcher::Event<Lenient<K>>>> {
    let Some(only) = only else { return Some(event) };
    let is_selected = |object: &Lenient<K>| object.0.as_ref().is_ok_and(only);
    let is_kept = |object: &Lenient<K>| kept.get(&ObjectRef::from_obj(object)).is_some();
    match event {
        Ok(watcher::Event::Apply(object)) if !is_selected(&object) => {
            is_kept(&object).then_some(Ok(watcher::Event::Delete(object)))
        }
        Ok(watcher::Event::InitApply(object)) if !is_selected(&object) => None,
        Ok(watcher::Event::Delete(object)) if !is_kept(&object) => None,
        event => Some(event),
    }
}

fn leniently<K: Kind>(object: &ObjectRef<K>) -> ObjectRef<Lenient<K>> {
    let lenient = ObjectRef::new(&object.name);
    match &object.namespace {
        Some(namespace) => lenient.within(namespace),
        None => lenient,
    }
}

/// How often an object has failed in a row, and whether it must be read from the API server next time.
#[derive(Clone, Copy, Default)]
struct Failures {
    in_a_row: u32,
    stale: bool,
}

/// By namespace and name.
type Key = (Option<String>, String);

/// Where objects come to be looked at.
struct Desk<K: Kind, R> {
    client: Client,
    reconcile: Arc<R>,
    metrics: Arc<Metrics>,
    store: Store<Lenient<K>>,
    turns: Turns,
    /// Of those objects alone whose last look failed.
    failures: Mutex<HashMap<Key, Failures>>,
    _kind: PhantomData<fn() -> K>,
}

impl<K: Kind, R: Reconcile<K>> Desk<K, R> {
    /// Lets the object pass those that wait, if it is urgent.
    fn notice(&self, object: &Lenient<K>) {
        if self.urgent_at(object).is_some() {
            self.turns.became_urgent();
        }
    }

    /// The same of an object that a trigger names.
    fn notice_named(&self, object: &ObjectRef<Lenient<K>>) {
        if let Some(object) = self.store.get(object) {
            self.notice(&object);
        }
    }

    fn urgent_at(&self, object: &Lenient<K>) -> Option<Timestamp> {
        self.reconcile.urgent_at(object.0.as_ref().ok()?)
    }

    async fn look(self: Arc<Self>, seen: Arc<Lenient<K>>) -> Result<Action, Infallible> {
        let reference = ObjectRef::from_obj(&*seen);
        let latest = || self.store.get(&reference).unwrap_or_else(|| Arc::clone(&seen));
        let Some(_turn) = self.turns.next(|| self.urgent_at(&latest())).await else {
            // The loop stops.
            return Ok(Action::await_change());
        };
        let seen = latest();
        let key = (seen.namespace(), seen.name_any());
        let before = self.failures().get(&key).copied().unwrap_or_default();
        let again = match AssertUnwindSafe(self.attempt(&seen, before)).catch_unwind().await {
            Ok(Ok(again)) => {
                self.failures().remove(&key);
                again
            }
            Ok(Err((class, error))) => Some(self.failed(key, before, class, &error)),
            Err(_) => Some(self.failed(key, before, ErrorClass::Invalid, "the reconciliation panicked")),
        };
        let again = again.map(|again| no_later(again, self.urgent_at(&seen), Timestamp::now()));
        Ok(again.map_or_else(Action::await_change, Action::requeue))
    }

    async fn attempt(&self, seen: &Lenient<K>, before: Failures) -> Result<Option<Duration>, (ErrorClass, String)> {
        let fresh = if before.stale { self.fetch(seen).await? } else { Some(seen.clone()) };
        match fresh {
            // The watch will tell.
            None => Ok(None),
            Some(Lenient(Ok(object))) => {
                let outcome = self.reconcile.reconcile(Arc::new(object)).await;
                outcome.map_err(|error| (error.class(), chain(&error)))
            }
            Some(Lenient(Err(unreadable))) => {
                // Nothing but a change of the object can help, and that is seen by the watch.
                let object = describe::<K>(&unreadable.metadata.namespace, &seen.name_any());
                tracing::warn!(
                    object,
                    error = unreadable.error,
                    "skipped an object that cannot be read: fix the object"
                );
                Ok(None)
            }
        }
    }

    async fn fetch(&self, seen: &Lenient<K>) -> Result<Option<Lenient<K>>, (ErrorClass, String)> {
        let api: Api<Lenient<K>> = match seen.namespace() {
            Some(namespace) => Api::namespaced(self.client.clone(), &namespace),
            None => Api::all(self.client.clone()),
        };
        let name = seen.name_any();
        match tokio::time::timeout(LOOK_DEADLINE, api.get_opt(&name)).await {
            Ok(answer) => answer.map_err(|error| (error.class(), chain(&error))),
            Err(_) => Err((ErrorClass::Transient, "the API server did not answer in time".to_owned())),
        }
    }

    fn failed(&self, key: Key, before: Failures, class: ErrorClass, error: &str) -> Duration {
        // Until a look has succeeded, an object stays one to be read afresh.
        let failures =
            Failures { in_a_row: before.in_a_row.saturating_add(1), stale: before.stale || class.is_stale() };
        self.metrics.failure(&K::kind(&()), class);
        let again = class.delay(failures.in_a_row);
        let object = describe::<K>(&key.0, &key.1);
        match class {
            // Two who write at once are every day's business.
            ErrorClass::Conflict if failures.in_a_row == 1 => tracing::debug!(object, error, "conflict, retrying"),
            _ => tracing::warn!(object, error, ?again, failures = failures.in_a_row, "failed, retrying"),
        }
        self.failures().insert(key, failures);
        again
    }

    fn forget(&self, namespace: Option<&str>, name: &str) {
        self.failures().remove(&(namespace.map(str::to_owned), name.to_owned()));
        let object = ObjectRef::new(name);
        self.reconcile.gone(&match namespace {
            Some(namespace) => object.within(namespace),
            None => object,
        });
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Failures>> {
        // A map is whole between two writes, also when a panic came in between.
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pause that does not go on beyond the moment at which the object is urgent. If it is urgent already, the pause is that
/// of any other object.
fn no_later(pause: Duration, urgent_at: Option<Timestamp>, now: Timestamp) -> Duration {
    match urgent_at.filter(|at| *at > now).map(|at| Duration::try_from(at.duration_since(now))) {
        Some(Ok(until)) => pause.min(until),
        Some(Err(_)) | None => pause,
    }
}

fn describe<K: Kind>(namespace: &Option<String>, name: &str) -> String {
    format!("{} {}/{name}", K::kind(&()), namespace.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
