//! The embedded cluster put together: store, API server, controllers, and the files that people reach it by.

mod api_service;
mod files;
mod former_controller;
mod scratch;
mod sessions;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow};
use boathook_apiserver::access::{Tokens, User};
use boathook_apiserver::api::Api;
use boathook_apiserver::server::{self, Listener, Streams};
use boathook_apiserver::store::{OpenError, Store};
use boathook_node::kubelet::{Node, NodeConfig};
use tokio::task::JoinSet;

use files::Credentials;
use scratch::Scratch;

/// The name of its only node.
pub const NODE: &str = "boathook";

/// Who Boathook itself is when it runs beside the cluster, in one process with it.
const OWN_USER: &str = "boathook";

/// What a person may choose.
#[derive(Default)]
pub struct Options {
    pub data_dir: Option<PathBuf>,
    /// Nothing is kept: objects live in memory, the rest in a folder that goes with the cluster.
    pub ephemeral: bool,
    /// 0: a free one.
    pub port: u16,
    pub kubeconfig: Option<PathBuf>,
}

/// A running cluster. Dropped, it ends.
pub struct Embedded {
    kubeconfig: PathBuf,
    dir: PathBuf,
    client: kube::Client,
    tasks: JoinSet<anyhow::Error>,
    node: Node,
    /// Removed with the cluster: after the node, whose pods use it.
    _scratch: Option<Scratch>,
}

/// Adds the images of an archive to a cluster's data directory, whether it runs or not. Returns their names.
pub fn load_images(data_dir: Option<PathBuf>, archive: &Path) -> Result<Vec<String>> {
    let dir = files::dir_to_add_to(data_dir)?;
    let loaded = node_config(&dir, String::new()).images().load(archive);
    loaded.with_context(|| format!("failed to load the images of `{}`", archive.display()))
}

/// That another process runs a cluster in this data directory, and what to do.
fn in_use(dir: &Path) -> Error {
    let dir = dir.display();
    anyhow!(
        "the data directory `{dir}` is in use: another process runs a cluster in it; use that cluster with export \
         KUBECONFIG={dir}/kubeconfig, end it with Ctrl-C, or start a second one with --ephemeral or another --data-dir"
    )
}

fn node_config(dir: &Path, streams: String) -> NodeConfig {
    NodeConfig {
        name: NODE.to_owned(),
        address: "127.0.0.1".to_owned(),
        persistent_volumes: dir.join("volumes"),
        dir: dir.join("node"),
        passages: files::passages(dir),
        streams,
    }
}

impl Embedded {
    /// Starts everything and returns when it serves.
    pub async fn start(options: Options) -> Result<Self> {
        let (dir, scratch) = files::data_dir(&options)?;
        let store = match options.ephemeral {
            true => Store::in_memory(),
            false => Store::open(&dir.join("store")).map_err(|error| match error {
                OpenError::InUse { .. } => in_use(&dir),
                other => Error::new(other),
            })?,
        };
        let credentials = Credentials::in_dir(&dir)?;
        let admin = User::authenticated("admin", &["system:masters"]);
        // Not the person's: what Boathook may do and others may not is told by who asks.
        let (own, own_token) = (User::authenticated(OWN_USER, &["system:masters"]), files::token());
        let users = [(credentials.admin_token.clone(), admin), (own_token.clone(), own)];
        let tokens = Tokens::new(&credentials.signing_key, users);
        let api = Api::new(store, tokens).await.context("failed to write the objects that every cluster has")?;
        let client = |program| server::client(Arc::clone(&api), &credentials.admin_token, program);

        let address = SocketAddr::from(([127, 0, 0, 1], options.port));
        let (chain, key) = credentials.tls()?;
        let listener = Listener::bind(address, chain, key).await?;
        let address = listener.address().context("failed to read the port")?;
        let kubeconfig = options.kubeconfig.unwrap_or_else(|| dir.join("kubeconfig"));
        files::write_private(&kubeconfig, &credentials.kubeconfig(address))?;

        let mut tasks = JoinSet::new();
        let serving = Arc::clone(&api);
        tasks.spawn(async move {
            listener.serve(serving).await;
            anyhow!("the API server ended")
        });
        let options = boathook_workloads::Options { root_ca: credentials.ca.clone(), data_dir: dir.join("volumes") };
        let controllers = boathook_workloads::run(client("kube-controller-manager"), options);
        tasks.spawn(async move { anyhow!("the controllers ended: {}", controllers.await) });
        api_service::publish(&client("kube-apiserver"), address)
            .await
            .context("failed to publish the API server's own Service")?;
        let streams = Streams::bind().await.context("failed to listen for the streams of execs")?;
        let config = node_config(&dir, streams.url().context("failed to read the port")?);
        let node = Node::start(client("kubelet"), config).await.context("failed to start the node")?;
        api.set_sessions(Arc::new(sessions::NodeSessions(node.sessions())));
        let redeem = sessions::NodeSessions(node.sessions());
        tasks.spawn(async move {
            streams.serve(move |token| redeem.redeem(token)).await;
            anyhow!("the streams of execs ended")
        });
        let client = server::client(Arc::clone(&api), &own_token, "boathook");
        Ok(Self { kubeconfig, dir, client, tasks, node, _scratch: scratch })
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where its container runtime listens.
    pub fn cri_socket(&self) -> PathBuf {
        self.dir.join("node").join("cri.sock")
    }

    /// Where an agent on its node may keep what it must not lose.
    pub fn agent_state_dir(&self) -> PathBuf {
        self.dir.join("agent")
    }

    /// Prepares the cluster for a controller in this process: an earlier one of the same data directory has ended, and its
    /// lease is given back.
    pub async fn succeed_former_controller(&self, namespace: &str, identity: &str) -> Result<()> {
        former_controller::succeed(&self.dir, &self.client, namespace, identity).await
    }

    /// A client with every right, in this process, as a user of its own.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Waits until a part has ended by itself, which none should, and says which.
    pub async fn died(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(Ok(error)) => error,
            Some(Err(error)) => anyhow!("a part of the cluster panicked: {error}"),
            None => anyhow!("no part of the cluster runs"),
        }
    }

    /// Ends everything.
    pub async fn stop(mut self) {
        self.node.shut_down().await;
        self.tasks.shutdown().await;
    }
}
