//! Boathook in the cluster of this run: what every process of it needs, and a way to start them.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use boathook_api::pod_notification::Executor;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::DeleteParams, config::Kubeconfig};

use super::{
    log::Log,
    process::{Process, Program},
    word,
};
use crate::{DEADLINE, cluster::Cluster};

/// Says a controller when it works.
const READY: &str = "ready: leading, and the webhooks answer";

/// What every process of Boathook needs is in the cluster; cheap to copy.
#[derive(Clone)]
pub struct Installation {
    cluster: Cluster,
    dir: PathBuf,
    started: Arc<AtomicUsize>,
    logs: Arc<Mutex<Vec<Log>>>,
}

impl Installation {
    /// Installs it; logs and kubeconfigs lie in `dir`.
    pub async fn of(cluster: Cluster, dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("failed to make `{}`", dir.display()))?;
        boathook_install::apply(&cluster.client, boathook_install::NAMESPACE, DEADLINE).await?;
        Ok(Self { cluster, dir: dir.to_owned(), started: Arc::default(), logs: Arc::default() })
    }

    /// Starts a controller, and waits until it leads.
    pub async fn controller(&self, executor: Executor, more: &[&str]) -> Result<Process> {
        let mut process = self.start_controller(executor, more)?;
        process.says(READY).await?;
        Ok(process)
    }

    /// Starts a controller, which need not lead.
    pub fn start_controller(&self, executor: Executor, more: &[&str]) -> Result<Process> {
        let kubeconfig = self.kubeconfig("controller", &self.cluster.kubeconfig)?;
        let mut arguments = vec!["controller", "--kubeconfig", &kubeconfig];
        match executor {
            // What a controller is that was told nothing.
            Executor::Api => {}
            Executor::Agent => arguments.extend(["--executor", word(executor)]),
        }
        arguments.extend(more);
        self.start("controller", &arguments, None)
    }

    /// Takes the lease away from a process that is known to be dead: its successor need not wait until it expires.
    pub async fn bury_leader(&self) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.cluster.client.clone(), boathook_install::NAMESPACE);
        match leases.delete(boathook_api::words::LEASE, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            outcome => outcome.map(drop).context("failed to take the lease away"),
        }
    }

    /// The last lines of every process that was started so far.
    pub fn tails(&self) -> String {
        self.lock_logs().iter().map(Log::tail).collect()
    }

    fn start(&self, name: &str, arguments: &[&str], network: Option<PathBuf>) -> Result<Process> {
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let program = Program {
            name: name.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            log: self.dir.join(format!("{number:03}-{name}.log")),
            network,
        };
        let process = Process::start(program)?;
        self.lock_logs().push(process.log().clone());
        Ok(process)
    }

    /// Writes the kubeconfig of the part of this name, and returns its path.
    fn kubeconfig(&self, part: &str, kubeconfig: &Kubeconfig) -> Result<String> {
        let path = self.dir.join(format!("{part}.kubeconfig"));
        let text = serde_saphyr::to_string(kubeconfig).context("failed to write a kubeconfig")?;
        std::fs::write(&path, text).with_context(|| format!("failed to write `{}`", path.display()))?;
        Ok(path.display().to_string())
    }

    fn lock_logs(&self) -> std::sync::MutexGuard<'_, Vec<Log>> {
        // A list is whole between two pushes.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
