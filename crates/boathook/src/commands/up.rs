//! `boathook up`: the embedded cluster in the foreground, until a signal ends it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use boathook::embedded::{Embedded, Options};

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
}

impl Up {
    pub(crate) fn run(self) -> Result<ExitCode> {
        boathook::log::to_stderr();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.context("failed to start")?.block_on(self.serve())
    }

    async fn serve(self) -> Result<ExitCode> {
        // Before anything is started: a signal that comes early must end it too.
        let mut interrupt = signal(SignalKind::interrupt()).context("failed to wait for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("failed to wait for signals")?;
        let options = Options {
            data_dir: self.data_dir,
            ephemeral: self.ephemeral,
            port: self.port,
            kubeconfig: self.kubeconfig,
        };
        let mut cluster = Embedded::start(options).await?;
        println!("ready: export KUBECONFIG={}", cluster.kubeconfig().display());
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            died = cluster.died() => {
                cluster.stop().await;
                return Err(died);
            }
        }
        cluster.stop().await;
        Ok(ExitCode::SUCCESS)
    }
}
