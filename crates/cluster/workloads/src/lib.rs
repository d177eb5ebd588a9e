//! The controllers of the embedded cluster, talking to its API server through a [`kube::Client`] like anyone else.
//!
//! Each controller is a folder: it observes through the shared caches of [`cluster`], decides in pure functions, and acts
//! with calls that may be repeated. What they do, and say, is what Kubernetes' own controllers do and say. `events`,
//! `pod` and `quantity` serve the node too.

mod cache;
mod classes;
mod cluster;
mod deployment;
mod endpoints;
mod error;
pub mod events;
mod garbage;
mod key;
mod kinds;
mod namespace;
mod ownership;
pub mod pod;
pub mod quantity;
mod queue;
mod replica_set;
mod scheduler;
mod snapshot;
mod volume;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::cache::{Cache, Kept};
use self::cluster::Cluster;
pub use self::error::Error;
use self::events::Events;
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
    let mut tasks = Tasks { client: client.clone(), running: JoinSet::new(), listed: Vec::new() };
    let (events, write_events) = Events::new(client.clone());
    tasks.start("events", write_events);
    let named = |name: &str| Config::default().fields(&format!("metadata.name={name}"));
    let cluster = Arc::new(Cluster {
        client,
        events,
        storage: Storage { data_dir: options.data_dir },
        root_ca: options.root_ca,
        nodes: tasks.follow(Config::default()),
        pods: tasks.follow(Config::default()),
        sets: tasks.follow(Config::default()),
        deployments: tasks.follow(Config::default()),
        namespaces: tasks.follow(Config::default()),
        accounts: tasks.follow(named(furniture::ACCOUNT)),
        bundles: tasks.follow(named(furniture::ROOT_CA)),
        definitions: tasks.follow(Config::default()),
        claims: tasks.follow(Config::default()),
        volumes: tasks.follow(Config::default()),
        classes: tasks.follow(Config::default()),
        snapshots: tasks.follow(Config::default()),
        contents: tasks.follow(Config::default()),
        snapshot_classes: tasks.follow(Config::default()),
        services: tasks.follow(Config::default()),
        endpoints: tasks.follow(Config::default()),
        slices: tasks.follow(endpoints::own_slices()),
    });
    tasks.start("classes", classes::run(cluster.clone()));
    // Who acts on half of what there is acts wrongly.
    for mut listed in std::mem::take(&mut tasks.listed) {
        tokio::select! {
            _ = listed.wait_for(|listed| *listed) => {}
            error = tasks.first_to_end() => return error,
        }
    }
    tasks.start("replicaset", replica_set::Controller::run(cluster.clone()));
    tasks.start("deployment", deployment::Controller::run(cluster.clone()));
    tasks.start("namespace", namespace::run(cluster.clone()));
    tasks.start("namespace furniture", furniture::run(cluster.clone()));
    tasks.start("garbage collector", garbage::Controller::run(cluster.clone()));
    tasks.start("volume", volume::Controller::run(cluster.clone()));
    tasks.start("snapshot", snapshot::Controller::run(cluster.clone()));
    tasks.start("scheduler", scheduler::run(cluster.clone()));
    tasks.start("endpoints", endpoints::run(cluster));
    tasks.first_to_end().await
}

/// Every task of the controllers; they end with it.
struct Tasks {
    client: Client,
    running: JoinSet<&'static str>,
    /// Of each cache, whether its first list is complete.
    listed: Vec<watch::Receiver<bool>>,
}

impl Tasks {
    fn start(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(async move {
            task.await;
            name
        });
    }

    fn follow<K: Kept + Resource<DynamicType = ()>>(&mut self, which: Config) -> Arc<Cache<K>> {
        let cache = Arc::new(Cache::default());
        self.listed.push(cache.listed());
        self.start("watch", cache.clone().follow(Api::all(self.client.clone()), which));
        cache
    }

    async fn first_to_end(&mut self) -> Error {
        match self.running.join_next().await {
            Some(Ok(name)) => Error::TaskEnded(name),
            Some(Err(error)) => Error::Other(format!("a controller failed: {error}")),
            None => Error::TaskEnded("none was started"),
        }
    }
}
