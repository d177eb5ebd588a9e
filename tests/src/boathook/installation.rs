//! Boathook in the cluster of this run: what every process of it needs, and a way to start them.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use boathook_api::{pod_notification::Executor, words};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::DeleteParams, config::Kubeconfig};

use super::{
    accounts::{self, Part},
    api_proxy::ApiProxy,
    api_relay::ApiRelay,
    log::Log,
    node::Node,
    process::{Process, Program},
    role::Role,
    word,
};
use crate::{DEADLINE, cluster::Cluster};

/// Says a controller when it works.
pub const CONTROLLER_READY: &str = "ready: leading, and the webhooks answer";

/// Says a controller that works and does not lead, after half a minute.
pub const CONTROLLER_WAITING: &str = "waiting: another replica leads";

/// Says an agent when it works.
pub const AGENT_READY: &str = "ready: keeping the ledger";

/// What every process of Boathook needs is in the cluster; cheap to copy.
#[derive(Clone)]
pub struct Installation {
    cluster: Cluster,
    node: Node,
    dir: PathBuf,
    started: Arc<AtomicUsize>,
    logs: Arc<Mutex<Vec<Log>>>,
}

impl Installation {
    /// Installs it; logs, kubeconfigs and the agent's ledger lie in `dir`.
    pub async fn of(cluster: Cluster, dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
        boathook_install::apply(&cluster.client, boathook_install::NAMESPACE, DEADLINE).await?;
        let node = Node::of(cluster.client.clone()).await?;
        Ok(Self { cluster, node, dir: dir.to_owned(), started: Arc::default(), logs: Arc::default() })
    }

    /// Starts a controller, and waits until it leads and its webhooks answer.
    pub async fn controller(&self, executor: Executor, more: &[&str]) -> Result<Process> {
        let kubeconfig = accounts::kubeconfig(&self.cluster, Part::Controller(executor)).await?;
        self.controller_with(&kubeconfig, executor, more).await
    }

    /// The same, with a way to the API server that counts what it writes and can stand in its way.
    pub async fn controller_behind_proxy(&self, executor: Executor) -> Result<(Process, ApiProxy)> {
        let mut kubeconfig = accounts::kubeconfig(&self.cluster, Part::Controller(executor)).await?;
        let proxy = ApiProxy::to(self.cluster.config.clone(), &mut kubeconfig).await?;
        Ok((self.controller_with(&kubeconfig, executor, &[]).await?, proxy))
    }

    async fn controller_with(&self, kubeconfig: &Kubeconfig, executor: Executor, more: &[&str]) -> Result<Process> {
        self.write("controller", kubeconfig)?;
        let mut process = self.start_replica("controller", executor, more)?;
        process.says(CONTROLLER_READY).await?;
        Ok(process)
    }

    /// Starts one of several controllers under a name of its own, with a way to the API server that can be closed. It may
    /// be a standby, so nothing is waited for.
    pub async fn replica_behind_relay(&self, name: &str, executor: Executor) -> Result<(Process, ApiRelay)> {
        let mut kubeconfig = accounts::kubeconfig(&self.cluster, Part::Controller(executor)).await?;
        let relay = ApiRelay::to(self, &mut kubeconfig).await?;
        self.write(name, &kubeconfig)?;
        Ok((self.start_replica(name, executor, &[])?, relay))
    }

    /// Starts the controller of this name with the kubeconfig that is there, and waits for nothing.
    pub fn start_replica(&self, name: &str, executor: Executor, more: &[&str]) -> Result<Process> {
        let kubeconfig = self.kubeconfig(name);
        let mut arguments = vec!["controller", "--kubeconfig", &kubeconfig];
        match executor {
            // What a controller is that was told nothing.
            Executor::Api => {}
            Executor::Agent => arguments.extend(["--executor", word(executor)]),
        }
        arguments.extend(more);
        self.start(name, Role::Boathook, &arguments, None)
    }

    /// Starts the node's agent. Its ledger is that of the agents before it.
    pub async fn agent(&self) -> Result<Process> {
        let kubeconfig = accounts::kubeconfig(&self.cluster, Part::Agent).await?;
        self.agent_with(&kubeconfig).await
    }

    /// Starts the node's agent, with a way to the API server that can be closed.
    pub async fn agent_behind_relay(&self) -> Result<(Process, ApiRelay)> {
        let mut kubeconfig = accounts::kubeconfig(&self.cluster, Part::Agent).await?;
        let relay = ApiRelay::to(self, &mut kubeconfig).await?;
        Ok((self.agent_with(&kubeconfig).await?, relay))
    }

    async fn agent_with(&self, kubeconfig: &Kubeconfig) -> Result<Process> {
        self.write("agent", kubeconfig)?;
        self.agent_again().await
    }

    /// Starts the node's agent as the last one was, whether or not the API server can be reached.
    pub async fn agent_again(&self) -> Result<Process> {
        let mut process = self.start_agent()?;
        process.says(AGENT_READY).await?;
        Ok(process)
    }

    /// Likewise, and waits for nothing.
    pub fn start_agent(&self) -> Result<Process> {
        let kubeconfig = self.kubeconfig("agent");
        let (socket, ledger) = (self.node.socket.display().to_string(), self.agent_dir().display().to_string());
        let of_node = ["--node", &self.node.name, "--cri-socket", &socket, "--state-dir", &ledger];
        let arguments = [&["agent", "--kubeconfig", &kubeconfig], &of_node[..]].concat();
        self.start_on_node(Role::Boathook, &arguments)
    }

    /// Where the node's agent keeps its ledger.
    pub fn agent_dir(&self) -> PathBuf {
        self.dir.join("agent")
    }

    /// Takes the lease away from a process that is known to be dead: its successor need not wait until it expires.
    pub async fn bury_leader(&self) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.cluster.client.clone(), boathook_install::NAMESPACE);
        match leases.delete(words::LEASE, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            outcome => outcome.map(drop).context("failed to take the lease away"),
        }
    }

    /// The last lines of every process that was started so far.
    pub fn tails(&self) -> String {
        // Who was killed a hundred times has a hundred logs.
        let logs = self.lock_logs();
        logs[logs.len().saturating_sub(4)..].iter().map(Log::tail).collect()
    }

    /// Starts a process from where the node's pods and its runtime's streams are reached.
    pub(super) fn start_on_node(&self, role: Role, arguments: &[&str]) -> Result<Process> {
        let name = match role {
            Role::Boathook => "agent",
            Role::Relay => "relay",
        };
        self.start(name, role, arguments, self.node.network.clone())
    }

    fn start(&self, name: &str, role: Role, arguments: &[&str], network: Option<PathBuf>) -> Result<Process> {
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let program = Program {
            name: name.to_owned(),
            role,
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            log: self.dir.join(format!("{number:03}-{name}.log")),
            network,
        };
        let process = Process::start(program)?;
        self.lock_logs().push(process.log().clone());
        Ok(process)
    }

    /// Writes the kubeconfig of the part of this name.
    fn write(&self, part: &str, kubeconfig: &Kubeconfig) -> Result<()> {
        let path = self.kubeconfig(part);
        let text = serde_saphyr::to_string(kubeconfig).context("failed to write a kubeconfig")?;
        std::fs::write(&path, text).with_context(|| format!("failed to write `{path}`"))
    }

    fn kubeconfig(&self, part: &str) -> String {
        self.dir.join(format!("{part}.kubeconfig")).display().to_string()
    }

    fn lock_logs(&self) -> std::sync::MutexGuard<'_, Vec<Log>> {
        // A list is whole between two pushes.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
