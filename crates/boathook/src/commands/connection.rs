//! Which cluster a command speaks to: kubectl's flags, with kubectl's meaning.

use std::path::PathBuf;

use anyhow::{Context, Error, Result, anyhow, ensure};
use boathook_runtime::error_class::chain;
use clap::Args;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::server;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Connection {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod's service account]
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

impl Connection {
    /// How the cluster is reached, and the namespace that the kubeconfig's context names.
    pub(crate) async fn config(&self) -> Result<Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (Some(file), _) => {
                ensure!(file.exists(), "--kubeconfig names `{}`, which does not exist: correct it", file.display());
                let kubeconfig = Kubeconfig::read_from(file)
                    .with_context(|| format!("failed to read kubeconfig `{}`", file.display()))?;
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                config.with_context(|| self.unusable(&format!("kubeconfig `{}`", file.display())))?
            }
            (None, Some(context)) => {
                ensure!(
                    !named_files().is_empty() || default_file().is_some(),
                    "failed to use context `{context}`: there is no kubeconfig, set KUBECONFIG or --kubeconfig"
                );
                Config::from_kubeconfig(&options).await.with_context(|| self.unusable(&default_kubeconfig()))?
            }
            (None, None) => match Config::infer().await {
                Ok(config) => config,
                Err(_) => return Err(no_cluster(&options).await),
            },
        };
        server::remember(&config, &self.source());
        Ok(config)
    }

    /// That the chosen context cannot be used.
    fn unusable(&self, source: &str) -> String {
        match &self.context {
            Some(context) => format!("failed to use context `{context}` of {source}"),
            None => format!("failed to use {source}"),
        }
    }

    /// Where the address of the API server comes from.
    fn source(&self) -> String {
        match &self.kubeconfig {
            Some(file) => format!("kubeconfig `{}`", file.display()),
            None => default_kubeconfig(),
        }
    }

    pub(crate) async fn client(&self) -> Result<Client> {
        boathook_runtime::client(self.config().await?).context("failed to make a client")
    }
}

/// The files that `KUBECONFIG` names.
fn named_files() -> Vec<PathBuf> {
    let value = std::env::var_os("KUBECONFIG").unwrap_or_default();
    std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// `~/.kube/config`, if it exists.
fn default_file() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".kube/config")).filter(|file| file.exists())
}

/// The kubeconfig without `--kubeconfig`, for a sentence.
fn default_kubeconfig() -> String {
    let named: Vec<_> = named_files().iter().map(|file| format!("`{}`", file.display())).collect();
    match (named.is_empty(), default_file()) {
        (false, _) => format!("kubeconfig {}, from KUBECONFIG", named.join(", ")),
        (true, Some(file)) => format!("kubeconfig `{}`", file.display()),
        (true, None) => "the service account of this pod".to_owned(),
    }
}

/// Why no cluster is known, and what to do.
async fn no_cluster(options: &KubeConfigOptions) -> Error {
    let start = "start a cluster on this machine with `boathook up` and run the export command that it prints";
    let named = named_files();
    if let Some(missing) = named.iter().find(|file| !file.exists()) {
        return anyhow!("KUBECONFIG names `{}`, which does not exist: correct it, or {start}", missing.display());
    }
    match (default_file(), Config::from_kubeconfig(options).await) {
        (None, _) if named.is_empty() => anyhow!("no cluster is configured: set KUBECONFIG, or {start}"),
        (_, Err(error)) => anyhow!("failed to use {}: {}", default_kubeconfig(), chain(&error)),
        (_, Ok(_)) => anyhow!("failed to use {}", default_kubeconfig()),
    }
}
