//! All controllers of one process: they run for the lease, and whoever leads works.
//!
//! Told to stop, it starts nothing more, lets what runs end and writes that down; then it gives the lease back.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use boathook_api::{
    ApplicationSnapshot, DeploymentLifecycle, ExecutionHook, Notification, PodNotification,
    volume_snapshot::VolumeSnapshot,
};
use boathook_decide::pod_notification::{last_round, owes_undo};
use boathook_runtime::{
    Clock, Deadlines, Elapsed, Lease, Metrics, Reporter, RunLoop, Watches,
    lease::{self, candidate},
    lenient::Lenient,
    webhook::{self, Reach, Readiness, Wanted, Webhooks},
};
use futures::{FutureExt, Stream, StreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Client, Resource,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use snafu::Snafu;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    application_snapshot,
    deployment_lifecycle::{self, ReplicaSetMetadata},
    execution_hook, notification, pod_notification,
    refusals::Refusals,
    volume_snapshot, webhooks,
};

/// How long handlers and undos that run may go on after the stop.
const GRACE: Duration = Duration::from_secs(30);

/// What a person may choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// The holder of the lease while this process leads: [`boathook_runtime::identity`].
    pub identity: String,
    /// Where the lease is.
    pub namespace: String,
    pub pod_notifications: pod_notification::Options,
    /// Where the webhooks listen.
    pub webhook_listen: SocketAddr,
    /// How the API server reaches them. Absent: by the address that they listen on.
    pub webhook_reach: Option<Reach>,
}

#[derive(Debug, Snafu)]
pub enum StartError {
    #[snafu(transparent)]
    Webhooks { source: webhook::Error },
    #[snafu(transparent)]
    Reviews { source: webhooks::Error },
}

/// The controllers, started.
pub struct Service {
    lease: Lease,
    webhooks: Readiness,
    watches: Watches,
    controller: Arc<pod_notification::Controller>,
    pod_notifications: Store<Lenient<PodNotification>>,
    metrics: Arc<Metrics>,
    /// Those that work, and need the lease.
    loops: JoinSet<&'static str>,
    stop_loops: watch::Sender<bool>,
    candidate: JoinSet<&'static str>,
    stop_candidate: watch::Sender<bool>,
    /// Those that may end at any time.
    others: JoinSet<&'static str>,
}

impl Service {
    /// Starts everything. It is ready when [`Service::ready`] says so.
    pub async fn start(client: Client, options: Options, metrics: Arc<Metrics>) -> Result<Self, StartError> {
        let identity = options.identity.clone();
        let running_for = lease::Options::new(&options.namespace, &identity);
        let (candidate, lease) = candidate(client.clone(), running_for, Clock::of_the_machine());
        let watches = Watches::default();
        let webhooks = bind_webhooks(client.clone(), &identity, &options, Arc::clone(&metrics), &watches).await?;
        let (reporter, telling) = Reporter::new(client.clone(), "boathook-controller", &identity, Arc::clone(&metrics));

        let all = watcher::Config::default;
        let mut notifications =
            RunLoop::<Notification>::new(client.clone(), all()).metrics(Arc::clone(&metrics)).watches(&watches);
        let mut pod_notifications =
            RunLoop::<PodNotification>::new(client.clone(), all()).metrics(Arc::clone(&metrics)).watches(&watches);
        let mut hooks =
            RunLoop::<ExecutionHook>::new(client.clone(), all()).metrics(Arc::clone(&metrics)).watches(&watches);
        let mut snapshots =
            RunLoop::<ApplicationSnapshot>::new(client.clone(), all()).metrics(Arc::clone(&metrics)).watches(&watches);
        let lifecycles =
            RunLoop::<DeploymentLifecycle>::new(client.clone(), all()).metrics(Arc::clone(&metrics)).watches(&watches);
        let seen_lifecycles = lifecycles.store();
        let mut marked_deployments = RunLoop::<Deployment>::new(client.clone(), all())
            .only(deployment_lifecycle::is_marked_deployment)
            .metrics(Arc::clone(&metrics))
            .watches(&watches);
        let mut marked_sets = RunLoop::<ReplicaSetMetadata>::new(client.clone(), all())
            .only(deployment_lifecycle::is_marked_replica_set)
            .metrics(Arc::clone(&metrics))
            .watches(&watches);
        let orphans = Arc::new(deployment_lifecycle::Orphans {
            client: client.clone(),
            lease: lease.clone(),
            lifecycles: seen_lifecycles.clone(),
            listed: lifecycles.listed().boxed().shared(),
            least_age: deployment_lifecycle::RESTORE_TIME,
        });
        let (seen_notifications, seen_pod_notifications) = (notifications.store(), pod_notifications.store());
        let (seen_hooks, seen_snapshots) = (hooks.store(), snapshots.store());
        let (volume_snapshots, of_volume_snapshots) =
            application_snapshot::watch_snapshots(client.clone(), seen_snapshots.clone(), &watches);
        let of_hooks = execution_hook::Controller {
            client: client.clone(),
            identity: identity.clone(),
            lease: lease.clone(),
            children: seen_pod_notifications.clone(),
            snapshots: seen_snapshots.clone(),
            reporter: reporter.clone(),
            parents: snapshots.channel(),
            refusals: Refusals::default(),
            deadlines: Deadlines::new(Clock::of_the_machine()),
            begun: execution_hook::Begun::default(),
        };
        let of_snapshots = application_snapshot::Controller::new(application_snapshot::Surroundings {
            client: client.clone(),
            identity: identity.clone(),
            lease: lease.clone(),
            reporter: reporter.clone(),
            all: seen_snapshots.clone(),
            hooks: seen_hooks.clone(),
            snapshots: volume_snapshots,
            look_again: snapshots.channel(),
            deadlines: Deadlines::new(Clock::of_the_machine()),
        });
        let verdicts =
            RunLoop::<VolumeSnapshot>::new(client.clone(), all()).metrics(Arc::clone(&metrics)).watches(&watches);
        let seen_verdicts = verdicts.store();
        let of_verdicts = volume_snapshot::Controller {
            client: client.clone(),
            lease: lease.clone(),
            reporter: reporter.clone(),
            snapshots: seen_snapshots.clone(),
        };
        let of_lifecycles = deployment_lifecycle::Controller {
            client: client.clone(),
            lease: lease.clone(),
            reporter: reporter.clone(),
            refusals: Refusals::default(),
            stages: Elapsed::new(Clock::of_the_machine()),
            orphans: deployment_lifecycle::Wakes {
                deployments: marked_deployments.channel(),
                replica_sets: marked_sets.channel(),
                marked: marked_sets.store(),
            },
        };
        let of_notifications = notification::Controller {
            client: client.clone(),
            lease: lease.clone(),
            enabled: options.pod_notifications.enabled,
            children: seen_pod_notifications.clone(),
            reporter: reporter.clone(),
            made: notification::Made::default(),
        };
        let surroundings = pod_notification::Surroundings {
            client: client.clone(),
            identity,
            lease: lease.clone(),
            reporter,
            metrics: Arc::clone(&metrics),
            look_again: pod_notifications.channel(),
            parents: notifications.channel(),
            hooks: hooks.channel(),
            clock: Clock::of_the_machine(),
        };
        let controller = Arc::new(pod_notification::Controller::new(options.pod_notifications, surroundings));
        let notifications = notifications
            .on(notification::triggers(client.clone(), seen_notifications.clone(), &watches))
            .on(all_when_leadership_changes(&lease, seen_notifications));
        let of_ending_pods = pod_notification::triggers(client.clone(), seen_pod_notifications.clone(), &watches);
        let noted = Arc::clone(&controller);
        let pod_notifications = pod_notifications
            .on(of_ending_pods.inspect(move |object| noted.pod_is_ending(object)))
            .on(all_when_leadership_changes(&lease, seen_pod_notifications.clone()));
        let hooks = hooks.on(all_when_leadership_changes(&lease, seen_hooks));
        let lifecycles = lifecycles
            .on(deployment_lifecycle::triggers(&client, seen_lifecycles.clone(), &watches))
            .on(all_when_leadership_changes(&lease, seen_lifecycles));
        let (seen_deployments, seen_sets) = (marked_deployments.store(), marked_sets.store());
        let marked_deployments = marked_deployments.on(all_when_leadership_changes(&lease, seen_deployments));
        let marked_sets = marked_sets.on(all_when_leadership_changes(&lease, seen_sets));
        let snapshots = snapshots
            .on(of_volume_snapshots)
            .on(application_snapshot::triggers(client, seen_snapshots.clone(), &watches))
            .on(all_when_leadership_changes(&lease, seen_snapshots));
        let verdicts = verdicts.on(all_when_leadership_changes(&lease, seen_verdicts));

        let stop_loops = watch::Sender::new(false);
        let mut loops = JoinSet::new();
        let (stop, working) = (stopped(&stop_loops), Arc::clone(&controller));
        spawn(&mut loops, "the loop over PodNotifications", pod_notifications.run(working, stop));
        let stop = stopped(&stop_loops);
        spawn(&mut loops, "the loop over Notifications", notifications.run(Arc::new(of_notifications), stop));
        let stop = stopped(&stop_loops);
        spawn(&mut loops, "the loop over ExecutionHooks", hooks.run(Arc::new(of_hooks), stop));
        let stop = stopped(&stop_loops);
        spawn(&mut loops, "the loop over ApplicationSnapshots", snapshots.run(Arc::new(of_snapshots), stop));
        let stop = stopped(&stop_loops);
        spawn(&mut loops, "the loop over DeploymentLifecycles", lifecycles.run(Arc::new(of_lifecycles), stop));
        let (stop, of_deployments) = (stopped(&stop_loops), Arc::clone(&orphans));
        spawn(&mut loops, "the loop over marked Deployments", marked_deployments.run(of_deployments, stop));
        let stop = stopped(&stop_loops);
        spawn(&mut loops, "the loop over marked ReplicaSets", marked_sets.run(orphans, stop));
        let stop = stopped(&stop_loops);
        spawn(&mut loops, "the loop over VolumeSnapshots", verdicts.run(Arc::new(of_verdicts), stop));
        let (stop_candidate, mut leading) = (watch::Sender::new(false), JoinSet::new());
        spawn(&mut leading, "the candidate for the lease", candidate.run(stopped(&stop_candidate)));
        let (readiness, mut others) = (webhooks.readiness(), JoinSet::new());
        spawn(&mut others, "the webhooks", webhooks.run(lease.clone()));
        spawn(&mut others, "the writer of Events", telling);
        Ok(Self {
            lease,
            webhooks: readiness,
            watches,
            controller,
            pod_notifications: seen_pod_notifications,
            metrics,
            loops,
            stop_loops,
            candidate: leading,
            stop_candidate,
            others,
        })
    }

    /// Waits until this process leads and its webhooks answer.
    pub fn ready(&self) -> impl Future<Output = ()> + Send + 'static {
        let (lease, webhooks) = (self.lease.clone(), self.webhooks.clone());
        async move {
            lease.led().await;
            webhooks.ready().await;
        }
    }

    /// Whether it can serve, leader or not, and is heard by the API server and hears it; else what is missing.
    pub fn is_ready(&self) -> impl Fn() -> Result<(), String> + Send + Sync + 'static {
        let (webhooks, watches) = (self.webhooks.clone(), self.watches.clone());
        move || match webhooks.is_ready() {
            true => watches.ready(),
            false => Err("the API server does not yet reach the webhooks".to_owned()),
        }
    }

    /// Brings those figures up to date that nobody counts as they change.
    pub fn figures(&self) -> impl Fn() + Send + Sync + 'static {
        let (metrics, lease, all) = (Arc::clone(&self.metrics), self.lease.clone(), self.pod_notifications.clone());
        move || {
            metrics.set_leadership(lease.leadership());
            let objects = all.state();
            let is_owed = |object: &&PodNotification| owes_undo(object) || last_round(object).is_some();
            let owed = objects.iter().filter_map(|object| object.0.as_ref().ok()).filter(is_owed);
            metrics.set_undos_owed(owed.count());
        }
    }

    /// Waits until a part has ended by itself, which none should, and says which.
    pub async fn died(&mut self) -> String {
        let ended = tokio::select! {
            Some(ended) = self.loops.join_next() => ended,
            Some(ended) = self.candidate.join_next() => ended,
            Some(ended) = self.others.join_next() => ended,
            else => return "every part of the controller has ended".to_owned(),
        };
        match ended {
            Ok(part) => format!("{part} ended"),
            Err(error) => format!("a part of the controller panicked: {error}"),
        }
    }

    /// Ends everything in order.
    pub async fn stop(mut self) {
        self.controller.close();
        let mut under_way = self.controller.runs().under_way();
        if tokio::time::timeout(GRACE, under_way.wait_for(|count| *count == 0)).await.is_err() {
            tracing::warn!("some handlers did not end within {GRACE:?} of the stop: their outcome will be unknown");
        }
        // Nobody works without the lease, so it is given back last.
        self.stop_loops.send_replace(true);
        while self.loops.join_next().await.is_some() {}
        self.stop_candidate.send_replace(true);
        while self.candidate.join_next().await.is_some() {}
        self.others.shutdown().await;
    }
}

async fn bind_webhooks(
    client: Client,
    identity: &str,
    options: &Options,
    metrics: Arc<Metrics>,
    watches: &Watches,
) -> Result<Webhooks, StartError> {
    let (reviews, own) = webhooks::reviews(client.clone()).await?;
    let serving = webhook::Options {
        listen: options.webhook_listen,
        reach: options.webhook_reach.clone(),
        identity: identity.to_owned(),
        namespace: options.namespace.clone(),
        watches: watches.clone(),
    };
    let wanted = |reach: &Reach| Wanted {
        validating: boathook_install::webhooks::validating(&own, |path| reach.client_config(path)),
        mutating: boathook_install::webhooks::mutating(&own, |path| reach.client_config(path)),
    };
    Ok(Webhooks::bind(client, serving, reviews, metrics, wanted).await?)
}

fn spawn(tasks: &mut JoinSet<&'static str>, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    tasks.spawn(async move {
        task.await;
        name
    });
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

#[cfg(test)]
mod tests {
    use boathook_api::{
        pod_notification::{Executor, State},
        words::LEASE,
    };
    use boathook_runtime::execution::Limits;
    use k8s_openapi::api::coordination::v1;
    use kube::{Api, api::PostParams, runtime::reflector};
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::{
        test_container::{FREEZE, cluster_with_pod},
        webhooks::test_asks::client_with_kinds,
    };

    const DEADLINE: Duration = Duration::from_secs(600);

    fn one() -> PodNotification {
        let spec = json!({"podName": "db-0", "notifier": "freeze"});
        let mut one = PodNotification::new("one", serde_json::from_value(spec).unwrap());
        one.metadata.namespace = Some("default".to_owned());
        one
    }

    #[tokio::test]
    async fn stop_waits_for_a_running_handler_and_gives_the_lease_back_last() {
        let (client, container) = cluster_with_pod().await;
        let limits = Limits { per_node: 9, per_namespace: 9 };
        let options = Options {
            identity: boathook_runtime::identity(),
            namespace: "default".to_owned(),
            pod_notifications: pod_notification::Options { executor: Executor::Api, enabled: true, limits },
            webhook_listen: ([127, 0, 0, 1], 0).into(),
            webhook_reach: None,
        };
        let service = Service::start(client.clone(), options, Arc::default()).await.unwrap();
        let api: Api<PodNotification> = Api::namespaced(client.clone(), "default");
        api.create(&PostParams::default(), &one()).await.unwrap();
        timeout(DEADLINE, container.begun(1)).await.unwrap();

        let controller = Arc::clone(&service.controller);
        let stopping = tokio::spawn(service.stop());
        // As long as this takes, a stop that does not wait has ended.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert!(!stopping.is_finished());
        let leases: Api<v1::Lease> = Api::namespaced(client, "default");
        let holder = async || leases.get(LEASE).await.unwrap().spec.unwrap().holder_identity;
        assert!(holder().await.is_some(), "the next leader would take the handler for lost");
        container.end_freeze();
        timeout(DEADLINE, stopping).await.unwrap().unwrap();
        assert_eq!(api.get("one").await.unwrap().status.unwrap().state, State::Succeeded);
        assert_eq!((holder().await, container.commands()), (None, vec![FREEZE.to_owned()]));
        assert_eq!(*controller.runs().under_way().borrow(), 0);
    }

    #[tokio::test]
    async fn change_of_leadership_wakes_every_object() {
        let client = client_with_kinds().await;
        let (candidate, lease) = candidate(client, lease::Options::new("default", "me"), Clock::of_the_machine());
        let (store, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Apply(Lenient(Ok(one()))));
        let mut woken = std::pin::pin!(all_when_leadership_changes(&lease, store));
        let _leading = tokio::spawn(candidate.run(std::future::pending()));
        let next = timeout(DEADLINE, woken.next()).await.unwrap();
        assert_eq!(next, Some(ObjectRef::new("one").within("default")));
    }
}
