//! `boathook agent`: one node's notifications, through its container runtime.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, anyhow};
use boathook_agent::{Agent, Options};
use boathook_api::Signal;
use boathook_runtime::Metrics;
use clap::Args;

use super::{connection::Connection, pages::PagesChoice, signals::Signals};
use crate::output;

#[derive(Args)]
pub(crate) struct AgentCommand {
    #[command(flatten)]
    connection: Connection,
    /// The node's name in the cluster
    #[arg(long, value_name = "NAME")]
    node: String,
    /// Where the node's container runtime listens
    #[arg(long, value_name = "PATH", default_value = "/run/containerd/containerd.sock")]
    cri_socket: PathBuf,
    /// Where it is kept what must be undone: it has to outlive the agent
    #[arg(long, value_name = "DIR", default_value = "/var/lib/boathook-agent")]
    state_dir: PathBuf,
    /// Signals that end or stop a container and may be sent all the same: KILL, STOP, TERM
    #[arg(long, value_name = "SIGNALS", value_delimiter = ',')]
    allow_signals: Vec<Signal>,
    /// How many notifications run at once
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_at_once: u16,
    #[command(flatten)]
    pages: PagesChoice,
}

impl AgentCommand {
    pub(crate) fn run(self) -> Result<ExitCode> {
        crate::log::to_stderr();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.context("failed to start")?.block_on(self.serve())
    }

    async fn serve(self) -> Result<ExitCode> {
        let mut signals = Signals::new()?;
        let client = self.connection.client().await?;
        let options = Options {
            node: self.node,
            cri_socket: self.cri_socket,
            state_dir: self.state_dir,
            allow_signals: self.allow_signals.into_iter().collect(),
            limit: self.max_at_once.into(),
        };
        let metrics = Arc::new(Metrics::default());
        let mut agent = Agent::start(client, options, Arc::clone(&metrics)).await?;
        let pages = self.pages.serve(metrics, agent.figures(), agent.is_ready()).await?;
        output::to_stdout("ready: keeping the ledger");
        let outcome = tokio::select! {
            () = signals.received() => Ok(ExitCode::SUCCESS),
            () = pages => Err(anyhow!("the pages for metrics and health ended")),
            died = agent.died() => Err(anyhow!(died)),
        };
        agent.stop().await;
        outcome
    }
}
