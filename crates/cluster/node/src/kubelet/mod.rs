//! Pods of this node, through the API server, as a kubelet carries them out.
//!
//! `Node::start` registers the node and keeps one worker for each pod that is bound to it.
//! `sessions` is the side that the API server calls for exec, attach and logs.

mod addresses;
mod backoff;
mod create;
mod cri;
mod environment;
mod expand;
mod fields;
mod files;
mod https;
mod lifecycle;
mod pod;
mod probe;
mod proxy;
mod registration;
mod registry;
mod report;
mod sessions;
mod size_limit;
mod slot;
mod start;
mod status;
mod volumes;
mod worker;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use boathook_workloads::events::Events;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::runtime::container::Runtime;
use crate::runtime::image::Images;
use addresses::Addresses;
use cri::Execs;
use pod::PodExt;
use registry::Registry;
use worker::{Update, Worker};

pub use registration::VERSION;
pub use sessions::{Session, SessionError, Sessions};
pub use volumes::CSI_DRIVER;

/// What a node needs to know.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub name: String,
    /// Its address, and that of pods on the host network.
    pub address: String,
    /// Pods, logs and images are kept here.
    pub dir: PathBuf,
    /// The directories of persistent volumes of `CSI_DRIVER`, each named by its handle.
    pub persistent_volumes: PathBuf,
    /// Directories on the way to volumes and images. Pods of other users must be able to pass through them where volumes
    /// cannot be mounted.
    pub passages: Vec<PathBuf>,
    /// Where `Sessions::redeem` is served over HTTP: what CRI's exec answers begins with it.
    pub streams: String,
}

impl NodeConfig {
    /// Where a node of this configuration keeps its images: `image load` may write there while it runs.
    pub fn images(&self) -> Images {
        Images::new(&self.dir.join("images"))
    }
}

/// What all workers of a node share.
struct Shared {
    client: Client,
    address: String,
    dir: PathBuf,
    persistent: PathBuf,
    runtime: Runtime,
    images: Images,
    addresses: Addresses,
    events: Events,
    registry: Registry,
    execs: Execs,
}

impl Shared {
    fn pod_dir(&self, uid: &str) -> PathBuf {
        self.dir.join("pods").join(uid)
    }
}

/// Why a node did not start.
#[derive(Debug)]
pub enum NodeError {
    /// A directory of its own could not be used.
    Directory(std::io::Error),
    /// The API server did not take the Node object.
    Registration(kube::Error),
}

impl std::fmt::Display for NodeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NodeError::Directory(error) => write!(formatter, "failed to use the node's directory: {error}"),
            NodeError::Registration(error) => write!(formatter, "failed to register the node: {error}"),
        }
    }
}

impl std::error::Error for NodeError {}

/// A running node. Dropped or shut down, it ends every process of its pods.
pub struct Node {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Node {
    pub async fn start(client: Client, config: NodeConfig) -> Result<Node, NodeError> {
        std::fs::create_dir_all(&config.dir).map_err(NodeError::Directory)?;
        let runtime = Runtime::open(&config.dir.join("runtime")).await.map_err(NodeError::Directory)?;
        runtime.open_passages(&config.passages).map_err(NodeError::Directory)?;
        let socket = config.dir.join("cri.sock");
        let listener = boathook_cri::listen(&socket).map_err(NodeError::Directory)?;
        let registered = registration::register(&client, &config.name, &config.address, &socket).await;
        let node = registered.map_err(NodeError::Registration)?;
        let (events, write_events) = Events::new(client.clone());
        let shared = Arc::new(Shared {
            client: client.clone(),
            address: config.address.clone(),
            persistent: config.persistent_volumes.clone(),
            runtime,
            images: config.images(),
            addresses: Addresses::from_anywhere(),
            events: events.of("kubelet", Some(&config.name)),
            registry: Registry::default(),
            execs: Execs::new(config.streams),
            dir: config.dir,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(write_events);
        tasks.spawn(registration::keep_lease(client.clone(), node));
        tasks.spawn(proxy::run(client));
        tasks.spawn(cri::serve(listener, shared.clone()));
        tasks.spawn(watch_pods(shared.clone(), config.name));
        Ok(Node { shared, tasks })
    }

    /// Exec, attach and logs of this node's pods.
    pub fn sessions(&self) -> Arc<dyn Sessions> {
        self.shared.clone()
    }

    /// Ends every process. The pods stay as they are in the API server: the next start runs them again.
    pub async fn shut_down(mut self) {
        self.tasks.shutdown().await;
        for live in self.shared.registry.kill_all() {
            live.container.running.wait().await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.shared.registry.kill_all();
    }
}

/// A pod's worker, seen from outside.
struct Handle {
    updates: watch::Sender<Update>,
    task: JoinHandle<()>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch_pods(shared: Arc<Shared>, node: String) {
    let pods: Api<Pod> = Api::all(shared.client.clone());
    let of_node = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
    let mut events = std::pin::pin!(watcher(pods, of_node).default_backoff());
    let mut workers: HashMap<String, Handle> = HashMap::new();
    let mut listed = HashSet::new();
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Init)) => listed.clear(),
            Ok(Some(watcher::Event::InitApply(pod))) => {
                listed.insert(pod.uid_text().to_owned());
                update(&shared, &mut workers, pod);
            }
            Ok(Some(watcher::Event::InitDone)) => {
                for (_, gone) in workers.iter().filter(|(uid, _)| !listed.contains(*uid)) {
                    gone.updates.send_replace(Update::Gone);
                }
                remove_orphans(&shared.dir.join("pods"), &listed, &workers);
            }
            Ok(Some(watcher::Event::Apply(pod))) => update(&shared, &mut workers, pod),
            Ok(Some(watcher::Event::Delete(pod))) => {
                if let Some(worker) = workers.get(pod.uid_text()) {
                    worker.updates.send_replace(Update::Gone);
                }
            }
            Ok(None) => return,
            Err(error) => tracing::warn!(%error, "the watch of this node's pods broke; it is taken up again"),
        }
        workers.retain(|_, worker| !worker.task.is_finished());
    }
}

fn update(shared: &Arc<Shared>, workers: &mut HashMap<String, Handle>, pod: Pod) {
    if let Some(worker) = workers.get(pod.uid_text()) {
        worker.updates.send_replace(Update::Pod(Box::new(pod)));
        return;
    }
    let uid = pod.uid_text().to_owned();
    let (updates, receive) = watch::channel(Update::Pod(Box::new(pod.clone())));
    let task = tokio::spawn(Worker::run(shared.clone(), pod, receive));
    workers.insert(uid, Handle { updates, task });
}

/// Directories of pods that went while this node did not run.
fn remove_orphans(pods: &Path, listed: &HashSet<String>, workers: &HashMap<String, Handle>) {
    for entry in std::fs::read_dir(pods).into_iter().flatten().flatten() {
        let uid = entry.file_name().to_string_lossy().into_owned();
        if !listed.contains(&uid) && !workers.contains_key(&uid) {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}
