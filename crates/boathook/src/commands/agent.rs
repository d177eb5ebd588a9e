//! `boathook agent`: one node's notifications, through its container runtime.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, Result, anyhow};
use boathook_agent::{Agent, Options};
use boathook_api::Signal;
use boathook_runtime::Metrics;
use clap::Args;

use super::{connection::Connection, pages::PagesChoice, signals::Signals};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  boathook agent --node \"$NODE_NAME\"
  boathook agent --node worker-1 --cri-socket /run/crio/crio.sock --allow-signals TERM

The controller must run with --executor agent. To install both on a cluster, see docs/notifications.md.

Exit codes:
  0    ended by Ctrl-C or SIGTERM
  1    it could not start, or a part of it failed
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AgentCommand {
    #[command(flatten)]
    connection: Connection,
    /// The name of the node on which the agent runs
    #[arg(long, value_name = "NAME")]
    node: String,
    /// The socket of the node's container runtime (CRI)
    #[arg(long, value_name = "PATH", default_value = "/run/containerd/containerd.sock")]
    cri_socket: PathBuf,
    /// The directory of the ledger; it must survive a restart of the pod
    #[arg(long, value_name = "DIR", default_value = "/var/lib/boathook-agent")]
    state_dir: PathBuf,
    /// Also allow signals that end or stop a container: KILL, STOP, TERM
    #[arg(long, value_name = "SIGNALS", value_delimiter = ',')]
    allow_signals: Vec<Signal>,
    /// The most notifications that run at once
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
            () = pages => Err(anyhow!("the server of the metrics and health pages ended")),
            died = agent.died() => Err(anyhow!(died)),
        };
        agent.stop().await;
        outcome
    }
}
