//! `boathook controller`: the controllers, against the cluster of a kubeconfig.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use boathook_api::pod_notification::Executor;
use boathook_controllers::{Service, pod_notification, service};
use boathook_runtime::{Reporter, execution::Limits};
use clap::{Args, ValueEnum};

use super::{connection::Connection, gates::FeatureGates, signals::Signals};

#[derive(Args)]
pub(crate) struct Controller {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    pub(crate) choices: Choices,
}

/// What `boathook controller` and `boathook up` let a person choose alike.
#[derive(Args, Clone, Debug)]
pub(crate) struct Choices {
    /// The features that are on or off, as NAME=true|false
    #[arg(long, value_name = "GATES", default_value = "")]
    feature_gates: FeatureGates,
    /// How many notifications run at once on one node
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_per_node: u16,
    /// How many notifications run at once in one namespace
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_per_namespace: u16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExecutorChoice {
    /// The controller, through the API server's exec
    Api,
    /// The agent of each node (`boathook agent`)
    Agent,
}

impl Choices {
    pub(crate) fn options(&self, namespace: &str, executor: Executor) -> service::Options {
        let limits = Limits { per_node: self.max_per_node.into(), per_namespace: self.max_per_namespace.into() };
        let enabled = self.feature_gates.container_notifier;
        let pod_notifications = pod_notification::Options { executor, enabled, limits };
        service::Options { namespace: namespace.to_owned(), pod_notifications }
    }
}

impl Controller {
    pub(crate) fn run(self) -> Result<ExitCode> {
        crate::log::to_stderr();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.context("failed to start")?.block_on(self.serve())
    }

    async fn serve(self) -> Result<ExitCode> {
        let mut signals = Signals::new()?;
        let client = self.connection.client().await?;
        let options = self.choices.options(boathook_install::NAMESPACE, Executor::Api);
        let mut service = Service::start(client, options, Reporter::default());
        let lease = service.lease().clone();
        tokio::select! {
            () = signals.received() => {}
            died = service.died() => return Err(anyhow!(died)),
            () = lease.led() => {
                println!("leading");
                tokio::select! {
                    () = signals.received() => {}
                    died = service.died() => return Err(anyhow!(died)),
                }
            }
        }
        service.stop().await;
        Ok(ExitCode::SUCCESS)
    }
}
