//! Where and which: kubectl's flags for namespaces, labels and output, with kubectl's meaning.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use kube::Client;

use super::connection::Connection;
use crate::{
    output::{duration, format::Format},
    pods::Scope,
};

/// One namespace.
#[derive(Args, Clone, Debug)]
pub(crate) struct Here {
    #[command(flatten)]
    connection: Connection,
    /// The namespace [default: that of the kubeconfig's context]
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

/// One namespace, or all.
#[derive(Args, Clone, Debug)]
pub(crate) struct Where {
    #[command(flatten)]
    here: Here,
    /// Look in all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

/// `-o`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Shape {
    /// The output format [default: a table]
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// `--wait` and `--timeout`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Waiting {
    /// Wait for the end and report the result; false: only create the object
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    wait: bool,
    /// The same as --wait=false
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// How long to wait, for example 30s or 1h30m
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
}

impl Waiting {
    pub(crate) fn wait(&self) -> bool {
        self.wait && !self.no_wait
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl Here {
    /// A client, and the namespace.
    pub(crate) async fn client(&self) -> Result<(Client, String)> {
        let config = self.connection.config().await?;
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok((boathook_runtime::client(config).context("failed to make a client")?, namespace))
    }
}

impl Where {
    /// A client, and where it is to look.
    pub(crate) async fn client(&self) -> Result<(Client, Scope)> {
        let (client, namespace) = self.here.client().await?;
        Ok((client, if self.all_namespaces { Scope::AllNamespaces } else { Scope::Namespace(namespace) }))
    }
}

impl Shape {
    pub(crate) fn format(&self) -> Format {
        self.output.unwrap_or_default()
    }
}

/// A pod's name; `pod/NAME` is one too, as kubectl prints them.
pub(crate) fn pod_name(given: &str) -> Result<String, String> {
    let name = given.strip_prefix("pod/").or_else(|| given.strip_prefix("pods/")).unwrap_or(given);
    match name.split_once('/') {
        Some((kind, _)) => {
            Err(format!("unsupported kind `{kind}`: give a pod's name, or select pods with -l SELECTOR"))
        }
        None if name.is_empty() => Err("give a pod's name".to_owned()),
        None => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_named_as_kubectl_names_it() {
        assert_eq!(pod_name("web-0").as_deref(), Ok("web-0"));
        assert_eq!(pod_name("pod/web-0").as_deref(), Ok("web-0"));
        assert!(pod_name("deployment/web").unwrap_err().contains("-l SELECTOR"));
        assert!(pod_name("pod/").is_err());
    }
}
