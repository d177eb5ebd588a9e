//! Which cluster the scenarios run on: chosen by the environment, never guessed.
//!
//! Without a word it is the embedded one, started for this run. A kubeconfig in the home directory is not enough, on
//! purpose: the scenarios create and delete namespaces and webhook configurations, and must never do that to a cluster
//! that nobody named.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::{
    embedded::Embedded,
    images::{self, Images},
};

/// Names the kind of cluster: `embedded` or `kubeconfig`.
const CLUSTER_VAR: &str = "BOATHOOK_TEST_CLUSTER";
const KUBECONFIG_VAR: &str = "KUBECONFIG";

const WHAT_TO_DO: &str = "\
unset BOATHOOK_TEST_CLUSTER for the embedded cluster, or start a real one and try again:

    cargo xtask cluster up
    eval \"$(cargo xtask cluster env)\"
    cargo test -p boathook-tests --test scenarios";

/// How long the API server may take to say its version before the run is given up.
const GREETING_DEADLINE: Duration = Duration::from_secs(600);

/// Which cluster it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One of this run alone.
    Embedded,
    /// The cluster of the kubeconfig that `KUBECONFIG` names.
    Kubeconfig,
}

impl Choice {
    pub fn of_the_environment() -> Result<Self> {
        let variable = |name| std::env::var(name).ok();
        choose(variable(CLUSTER_VAR).as_deref(), variable(KUBECONFIG_VAR).as_deref())
    }
}

/// A cluster that has answered. Its clients belong to the runtime that [`Cluster::connect`] ran in.
#[derive(Clone)]
pub struct Cluster {
    pub config: Config,
    /// The same, as a program of its own is told of it.
    pub kubeconfig: Kubeconfig,
    pub client: Client,
    pub images: Images,
}

impl Cluster {
    /// Connects to the chosen cluster and checks that it answers. The second is what runs it, if that is this process.
    pub async fn connect(choice: Choice, lantern: &Path) -> Result<(Self, Option<Embedded>)> {
        match choice {
            Choice::Kubeconfig => {
                let kubeconfig = Kubeconfig::read().with_context(|| {
                    format!("failed to read the kubeconfig that {KUBECONFIG_VAR} names; {WHAT_TO_DO}")
                })?;
                Ok((Self::reach(kubeconfig, images::IMPORTED).await?, None))
            }
            Choice::Embedded => {
                let embedded = Embedded::start(lantern).await?;
                let cluster = Self::reach(embedded.kubeconfig()?, images::EMBEDDED).await?;
                Ok((cluster, Some(embedded)))
            }
        }
    }

    async fn reach(kubeconfig: Kubeconfig, images: Images) -> Result<Self> {
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
        let url = config.cluster_url.clone();
        let client = Client::try_from(config.clone()).with_context(|| format!("failed to make a client for {url}"))?;
        tokio::time::timeout(GREETING_DEADLINE, client.apiserver_version())
            .await
            .map_err(anyhow::Error::from)
            .and_then(|answer| Ok(answer?))
            .with_context(|| format!("the cluster at {url} does not answer; see `cargo xtask cluster status`"))?;
        Ok(Self { config, kubeconfig, client, images })
    }
}

fn choose(cluster: Option<&str>, kubeconfig: Option<&str>) -> Result<Choice> {
    match cluster {
        None | Some("" | "embedded") => Ok(Choice::Embedded),
        Some("kubeconfig") if kubeconfig.is_none_or(str::is_empty) => {
            bail!("{CLUSTER_VAR}=kubeconfig needs {KUBECONFIG_VAR} to name a kubeconfig; {WHAT_TO_DO}")
        }
        Some("kubeconfig") => Ok(Choice::Kubeconfig),
        Some(other) => {
            bail!("{CLUSTER_VAR}=`{other}` is not a cluster, there are `embedded` and `kubeconfig`; {WHAT_TO_DO}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_is_used_only_when_both_variables_say_so() {
        assert_eq!(choose(Some("kubeconfig"), Some("/tmp/k")).unwrap(), Choice::Kubeconfig);
        for kubeconfig in [None, Some("")] {
            let refusal = choose(Some("kubeconfig"), kubeconfig).unwrap_err().to_string();
            assert!(refusal.contains("KUBECONFIG to name a kubeconfig"), "{refusal}");
        }
    }

    #[test]
    fn a_cluster_that_nobody_named_is_never_taken() {
        for cluster in [None, Some(""), Some("embedded")] {
            assert_eq!(choose(cluster, Some("/tmp/k")).unwrap(), Choice::Embedded, "{cluster:?}");
        }
    }

    #[test]
    fn an_unknown_choice_is_quoted_and_says_what_to_do() {
        let refusal = choose(Some("minikube"), Some("/tmp/k")).unwrap_err().to_string();
        for said in ["`minikube`", "unset BOATHOOK_TEST_CLUSTER", "cargo xtask cluster env", "--test scenarios"] {
            assert!(refusal.contains(said), "{refusal}");
        }
    }
}
