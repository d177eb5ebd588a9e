//! `boathook up`: the embedded cluster in the foreground, until a signal ends it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::{controller::Choices, signals::Signals};
use crate::embedded::{Embedded, Options};

#[derive(Args)]
pub(crate) struct Up {
    /// Where objects, volumes and images are kept [default: ~/.local/share/boathook]
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    data_dir: Option<PathBuf>,
    /// Keep nothing: a fresh cluster that is gone when it ends
    #[arg(long)]
    ephemeral: bool,
    /// The port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Where the kubeconfig is written [default: `kubeconfig` in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Leave Boathook's own controllers out: a plain cluster with the CRDs
    #[arg(long)]
    no_controller: bool,
    #[command(flatten)]
    controller: Choices,
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
            data_dir: self.data_dir,
            ephemeral: self.ephemeral,
            port: self.port,
            kubeconfig: self.kubeconfig,
        };
        let mut cluster = Embedded::start(options).await?;
        let serving =
            serve_boathook(cluster.client(), cluster.kubeconfig().to_owned(), self.no_controller, self.controller);
        let outcome = tokio::select! {
            () = signals.received() => Ok(()),
            died = cluster.died() => Err(died),
            failed = serving => Err(failed),
        };
        cluster.stop().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

async fn serve_boathook(
    client: kube::Client,
    kubeconfig: PathBuf,
    no_controller: bool,
    choices: Choices,
) -> anyhow::Error {
    if let Err(error) =
        boathook_install::apply(&client, boathook_install::NAMESPACE, std::time::Duration::from_secs(60)).await
    {
        return error.into();
    }
    let options = choices.options(boathook_install::NAMESPACE, boathook_api::pod_notification::Executor::Api);
    let mut service = boathook_controllers::Service::start(client, options, boathook_runtime::Reporter::default());
    service.lease().clone().led().await;
    println!("ready: export KUBECONFIG={}", kubeconfig.display());
    anyhow::anyhow!(service.died().await)
}
