//! All controllers of one process: they run for the lease, and whoever leads works.
//!
//! Told to stop, it starts nothing more, lets what runs end and writes that down; then it gives the lease back.

use std::{sync::Arc, time::Duration};

use boathook_api::{Notification, PodNotification};
use boathook_runtime::{
    Clock, Lease, Reporter, RunLoop, identity,
    lease::{self, candidate},
    lenient::Lenient,
};
use futures::{Stream, StreamExt, stream};
use kube::{
    Client, Resource,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use tokio::{sync::watch, task::JoinSet};

use crate::{notification, pod_notification};

/// How long handlers and undos that run may go on after the stop.
const GRACE: Duration = Duration::from_secs(30);

/// What a person may choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the lease is.
    pub namespace: String,
    pub pod_notifications: pod_notification::Options,
}

/// The controllers, started.
pub struct Service {
    lease: Lease,
    controller: Arc<pod_notification::Controller>,
    tasks: JoinSet<&'static str>,
    stop_loops: watch::Sender<bool>,
    stop_candidate: watch::Sender<bool>,
}

impl Service {
    pub fn start(client: Client, options: Options, reporter: Reporter) -> Self {
        let identity = identity();
        let (stop_loops, stop_candidate) = (watch::Sender::new(false), watch::Sender::new(false));
        let running_for = lease::Options::new(&options.namespace, &identity);
        let (candidate, lease) = candidate(client.clone(), running_for, Clock::of_the_machine());

        let mut notifications = RunLoop::<Notification>::new(client.clone(), watcher::Config::default());
        let mut pod_notifications = RunLoop::<PodNotification>::new(client.clone(), watcher::Config::default());
        let enabled = options.pod_notifications.enabled;
        let controller = Arc::new(pod_notification::Controller::new(
            client.clone(),
            identity,
            options.pod_notifications,
            lease.clone(),
            reporter.clone(),
            pod_notifications.channel(),
            notifications.channel(),
        ));
        let of_notifications = notification::Controller {
            client: client.clone(),
            lease: lease.clone(),
            enabled,
            children: pod_notifications.store(),
            reporter,
        };
        let pods = notification::triggers(client, notifications.store());
        let changed = all_when_leadership_changes(&lease, notifications.store());
        let notifications = notifications.on(pods).on(changed);
        let changed = all_when_leadership_changes(&lease, pod_notifications.store());
        let pod_notifications = pod_notifications.on(changed);

        let mut tasks = JoinSet::new();
        let (stop, working) = (stopped(&stop_loops), Arc::clone(&controller));
        tasks.spawn(async move {
            pod_notifications.run(working, stop).await;
            "the loop over PodNotifications"
        });
        let stop = stopped(&stop_loops);
        tasks.spawn(async move {
            notifications.run(Arc::new(of_notifications), stop).await;
            "the loop over Notifications"
        });
        let stop = stopped(&stop_candidate);
        tasks.spawn(async move {
            candidate.run(stop).await;
            "the candidate for the lease"
        });
        Self { lease, controller, tasks, stop_loops, stop_candidate }
    }

    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Waits until a part has ended by itself, which none should, and says which.
    pub async fn died(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Ok(part)) => format!("{part} ended"),
            Some(Err(error)) => format!("a part of the controller panicked: {error}"),
            None => "nothing runs".to_owned(),
        }
    }

    /// Ends everything in order.
    pub async fn stop(mut self) {
        self.controller.close();
        let mut under_way = self.controller.runs().under_way();
        let ended = tokio::time::timeout(GRACE, under_way.wait_for(|count| *count == 0)).await;
        if ended.is_err() {
            tracing::warn!("some handlers had not ended {GRACE:?} after the stop: their outcome will be unknown");
        }
        self.stop_loops.send_replace(true);
        // The loops first: nobody works without the lease.
        while self.tasks.len() > 1 && self.tasks.join_next().await.is_some() {}
        self.stop_candidate.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Ends when it is told to, or when nobody is left to tell.
fn stopped(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + 'static {
    let mut stop = stop.subscribe();
    async move {
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

/// Every object, each time that this process may do more or less than before.
fn all_when_leadership_changes<K>(
    lease: &Lease,
    store: Store<Lenient<K>>,
) -> impl Stream<Item = ObjectRef<K>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    let changes = stream::unfold(lease.changes(), async |mut changes| {
        changes.changed().await.ok()?;
        Some(((), changes))
    });
    changes.flat_map(move |()| {
        let all: Vec<_> = store.state().iter().map(|object| named(object.as_ref())).collect();
        stream::iter(all)
    })
}

fn named<K: Resource<DynamicType = ()>>(object: &Lenient<K>) -> ObjectRef<K> {
    let metadata = object.meta();
    let reference = ObjectRef::new(metadata.name.as_deref().unwrap_or_default());
    match &metadata.namespace {
        Some(namespace) => reference.within(namespace),
        None => reference,
    }
}
