//! Which cluster a command speaks to: kubectl's flags, with kubectl's meaning.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Connection {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod's own account]
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

impl Connection {
    /// How the cluster is reached, and the namespace that the kubeconfig's context names.
    pub(crate) async fn config(&self) -> Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (Some(file), _) => {
                let kubeconfig = Kubeconfig::read_from(file);
                let kubeconfig = kubeconfig.with_context(|| format!("failed to read `{}`", file.display()))?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await?
            }
            (None, Some(_)) => Config::from_kubeconfig(&options).await?,
            (None, None) => Config::infer().await.context(
                "no cluster is known: set KUBECONFIG, or start one here with `boathook up` and do as its last line says",
            )?,
        };
        Ok(config)
    }

    pub(crate) async fn client(&self) -> Result<Client> {
        boathook_runtime::client(self.config().await?).context("failed to make a client")
    }
}
