//! The controllers of the embedded cluster, talking to its API server through a [`kube::Client`] like anyone else.
//!
//! Each controller is a folder: it observes through a shared [`cache`], decides in pure functions, and acts with calls
//! that may be repeated. What they do, and say, is what Kubernetes' own controllers do and say.

mod cache;
mod classes;
mod deployment;
mod endpoints;
mod error;
mod events;
mod garbage;
mod key;
mod kinds;
mod namespace;
mod ownership;
mod pod;
mod queue;
mod replica_set;
mod snapshot;
mod volume;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use self::cache::Cache;
pub use self::error::Error;
use self::namespace::furniture;
pub use self::volume::local::PROVISIONER;
use self::volume::local::Storage;

/// What the controllers cannot ask the API server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The certificate (PEM) of the authority that signed the API server's: each namespace's `kube-root-ca.crt`.
    pub root_ca: String,
    /// Where the volumes and snapshots of the class `local` are kept.
    pub data_dir: PathBuf,
}

/// Runs all controllers until the future is dropped; it returns only if one of their tasks ended, which none should.
pub async fn run(client: Client, options: Options) -> Error {
    let mut tasks = Tasks { client: client.clone(), running: JoinSet::new() };
    let (events, write_events) = events::channel(client.clone());
    tasks.start("events", write_events);

    let (pods, sets, deployments) = (Arc::default(), Arc::default(), Arc::default());
    let controller = replica_set::Controller::new(client.clone(), Arc::clone(&sets), Arc::clone(&pods), &events);
    tasks.start("replicaset", controller.run());
    let controller = deployment::Controller::new(
        client.clone(),
        Arc::clone(&deployments),
        Arc::clone(&sets),
        Arc::clone(&pods),
        &events,
    );
    tasks.start("deployment", controller.run());

    let (namespaces, accounts, bundles) = (Arc::default(), Arc::default(), Arc::default());
    tasks.start("namespace", namespace::Controller::new(client.clone(), Arc::clone(&namespaces)).run());
    let controller = furniture::Controller::new(
        client.clone(),
        options.root_ca,
        Arc::clone(&namespaces),
        Arc::clone(&accounts),
        Arc::clone(&bundles),
    );
    tasks.start("namespace furniture", controller.run());

    let definitions = Arc::default();
    tasks.start("garbage collector", garbage::Controller::new(client.clone(), Arc::clone(&definitions)).run());

    let storage = Storage { data_dir: options.data_dir };
    let seen = volume::Seen { pods: Arc::clone(&pods), ..volume::Seen::default() };
    let controller = volume::Controller::new(client.clone(), seen.clone(), storage.clone(), &events);
    tasks.start("volume", controller.run());
    let snapshot_classes = Arc::default();
    let controller =
        snapshot::Controller::new(client.clone(), seen.clone(), Arc::clone(&snapshot_classes), storage, &events);
    tasks.start("snapshot", controller.run());
    let (services, endpoints, slices) = (Arc::default(), Arc::default(), Arc::default());
    let controller = endpoints::Controller::new(
        client.clone(),
        Arc::clone(&services),
        Arc::clone(&pods),
        Arc::clone(&endpoints),
        Arc::clone(&slices),
    );
    tasks.start("endpoints", controller.run());
    tasks.start("classes", async {
        classes::make(client).await;
        std::future::pending().await
    });

    tasks.follow(pods);
    tasks.follow(sets);
    tasks.follow(deployments);
    tasks.follow(namespaces);
    // One in each namespace.
    tasks.follow_some(accounts, watcher::Config::default().fields(&format!("metadata.name={}", furniture::ACCOUNT)));
    tasks.follow_some(bundles, watcher::Config::default().fields(&format!("metadata.name={}", furniture::ROOT_CA)));
    tasks.follow(definitions);
    tasks.follow(seen.claims);
    tasks.follow(seen.volumes);
    tasks.follow(seen.classes);
    tasks.follow(seen.snapshots);
    tasks.follow(seen.contents);
    tasks.follow(snapshot_classes);
    tasks.follow(services);
    tasks.follow(endpoints);
    tasks.follow_some(slices, endpoints::Controller::own_slices());
    tasks.first_to_end().await
}

/// Every task of the controllers; they end with it.
struct Tasks {
    client: Client,
    running: JoinSet<&'static str>,
}

impl Tasks {
    fn start(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(async move {
            task.await;
            name
        });
    }

    fn follow<K>(&mut self, cache: Arc<Cache<K>>)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        self.follow_some(cache, watcher::Config::default());
    }

    fn follow_some<K>(&mut self, cache: Arc<Cache<K>>, which: watcher::Config)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    {
        self.start("watch", cache.follow(Api::all(self.client.clone()), which));
    }

    async fn first_to_end(mut self) -> Error {
        match self.running.join_next().await {
            Some(Ok(name)) => Error::TaskEnded(name),
            Some(Err(error)) => Error::Other(format!("a controller failed: {error}")),
            None => Error::TaskEnded("none was started"),
        }
    }
}
