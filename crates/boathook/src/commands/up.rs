//! `boathook up`: the embedded cluster in the foreground, with Boathook in it, until a signal ends it.

use std::{convert::Infallible, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, Error, Result, anyhow};
use boathook_agent::Agent;
use boathook_api::{pod_notification::Executor, words::LEASE};
use boathook_controllers::Service;
use boathook_runtime::lease;
use clap::Args;
use kube::Client;

use super::{controller::Choices, signals::Signals};
use crate::{
    embedded::{self, Embedded, Options},
    output,
};

/// How long the kinds may take to be served.
const INSTALL_DEADLINE: Duration = Duration::from_secs(600);

/// After this time without becoming ready, a person is told which process holds the lease.
const PATIENCE: Duration = Duration::from_secs(3);

const AFTER_HELP: &str = "\
Examples:
  boathook up --ephemeral --agent
  boathook up --data-dir ~/boathook --port 6443

The last line that it prints is the export command for KUBECONFIG. Run it in another terminal; Ctrl-C ends the cluster.

Exit codes:
  0    ended by Ctrl-C or SIGTERM
  1    it could not start, or a part of it failed
  2    the command line is wrong";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Up {
    /// The directory of objects, volumes and images [default: ~/.local/share/boathook]
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    data_dir: Option<PathBuf>,
    /// Start an empty cluster, and remove it when it ends
    #[arg(long)]
    ephemeral: bool,
    /// The port of the API server on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// The file to write the kubeconfig to [default: `kubeconfig` in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Install Boathook's kinds, but do not run its controllers
    #[arg(long)]
    no_controller: bool,
    /// Run the node agent too: it runs the notifications, and can send signals
    #[arg(long)]
    agent: bool,
    #[command(flatten)]
    choices: Choices,
}

/// What of Boathook runs in the cluster.
#[derive(Default)]
struct Parts {
    service: Option<Service>,
    agent: Option<Agent>,
}

impl Up {
    pub(crate) fn run(self) -> Result<ExitCode> {
        crate::log::to_stderr();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.context("failed to start")?.block_on(self.serve())
    }

    async fn serve(self) -> Result<ExitCode> {
        let mut signals = Signals::new()?;
        let options = Options {
            data_dir: self.data_dir.clone(),
            ephemeral: self.ephemeral,
            port: self.port,
            kubeconfig: self.kubeconfig.clone(),
        };
        let mut cluster = Embedded::start(options).await?;
        let mut parts = Parts::default();
        let ended = tokio::select! {
            () = signals.received() => Ok(()),
            failed = self.run_parts(&mut cluster, &mut parts) => Err(failed),
        };
        parts.stop().await;
        cluster.stop().await;
        ended.map(|()| ExitCode::SUCCESS)
    }

    /// Runs until something ends that should not.
    async fn run_parts(&self, cluster: &mut Embedded, parts: &mut Parts) -> Error {
        if let Err(error) = self.start_parts(cluster, parts).await {
            return error;
        }
        output::to_stdout(&format!("ready: export KUBECONFIG={}", cluster.kubeconfig().display()));
        tokio::select! {
            died = cluster.died() => died,
            died = parts.died() => died,
        }
    }

    async fn start_parts(&self, cluster: &mut Embedded, parts: &mut Parts) -> Result<()> {
        let client = cluster.client();
        boathook_install::apply(&client, boathook_install::NAMESPACE, INSTALL_DEADLINE)
            .await
            .context("failed to install Boathook's kinds")?;
        if self.agent {
            let options = boathook_agent::Options {
                node: embedded::NODE.to_owned(),
                cri_socket: cluster.cri_socket(),
                state_dir: cluster.agent_state_dir(),
                allow_signals: [].into(),
                limit: 100,
            };
            parts.agent = Some(Agent::start(client.clone(), options, Arc::default()).await?);
        }
        if !self.no_controller {
            let executor = if self.agent { Executor::Agent } else { Executor::Api };
            let options = self.choices.options(executor);
            let (namespace, identity) = (options.namespace.clone(), options.identity.clone());
            // Without it the lease of an earlier process expires.
            if let Err(error) = cluster.succeed_former_controller(&namespace, &identity).await {
                output::to_stderr(&format!("warning: the lease of an earlier controller is not released: {error:#}"));
            }
            let service = Service::start(client.clone(), options, Arc::default()).await?;
            let ready = service.ready();
            let service = parts.service.insert(service);
            tokio::select! {
                () = ready => {}
                never = say_what_is_waited_for(&client, &namespace, &identity) => match never {},
                died = service.died() => return Err(anyhow!(died)),
                died = cluster.died() => return Err(died),
            }
        }
        Ok(())
    }
}

/// Says after a while which process holds the lease, if another one does.
async fn say_what_is_waited_for(client: &Client, namespace: &str, identity: &str) -> Infallible {
    tokio::time::sleep(PATIENCE).await;
    if let Ok(Some(holder)) = lease::holder(client, namespace).await
        && holder != identity
    {
        output::to_stderr(&format!(
            "waiting: another controller, `{holder}`, holds the lease `{LEASE}` in namespace `{namespace}`. If that process \
             ended without giving the lease back, it expires in at most 15 s; else end it, or use --no-controller"
        ));
    }
    std::future::pending().await
}

impl Parts {
    async fn died(&mut self) -> Error {
        let service = async {
            match &mut self.service {
                Some(service) => service.died().await,
                None => std::future::pending().await,
            }
        };
        let agent = async {
            match &mut self.agent {
                Some(agent) => agent.died().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            died = service => anyhow!(died),
            died = agent => anyhow!(died),
        }
    }

    /// Each lets what it runs end first.
    async fn stop(self) {
        if let Some(service) = self.service {
            service.stop().await;
        }
        if let Some(agent) = self.agent {
            agent.stop().await;
        }
    }
}
