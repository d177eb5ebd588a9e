//! Which cluster the scenarios run on: chosen by the environment, never guessed.
//!
//! A kubeconfig in the home directory is not enough, on purpose: the scenarios create and delete namespaces and
//! webhook configurations, and must never do that to a cluster that nobody named.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::{Client, Config, config::KubeConfigOptions};

/// Names the kind of cluster: `kubeconfig`.
const CLUSTER_VAR: &str = "BOATHOOK_TEST_CLUSTER";
const KUBECONFIG_VAR: &str = "KUBECONFIG";

const WHAT_TO_DO: &str = "\
start a real one and try again:

    cargo xtask cluster up
    eval \"$(cargo xtask cluster env)\"
    cargo test -p boathook-tests --test scenarios";

/// How long the API server may take to say its version before the run is given up.
const GREETING_DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// The cluster of the kubeconfig that `KUBECONFIG` names.
    Kubeconfig,
}

/// A cluster that has answered. Its client belongs to the runtime that [`Cluster::connect`] ran in.
#[derive(Clone)]
pub struct Cluster {
    pub config: Config,
    pub client: Client,
}

impl Cluster {
    /// Connects to the cluster that the environment names, and checks that it answers.
    pub async fn connect() -> Result<Self> {
        let variable = |name| std::env::var(name).ok();
        match choose(variable(CLUSTER_VAR).as_deref(), variable(KUBECONFIG_VAR).as_deref())? {
            Choice::Kubeconfig => Self::from_kubeconfig().await,
        }
    }

    async fn from_kubeconfig() -> Result<Self> {
        let config = Config::from_kubeconfig(&KubeConfigOptions::default())
            .await
            .with_context(|| format!("failed to read the kubeconfig that {KUBECONFIG_VAR} names; {WHAT_TO_DO}"))?;
        let url = config.cluster_url.clone();
        let client = Client::try_from(config.clone()).with_context(|| format!("failed to make a client for {url}"))?;
        tokio::time::timeout(GREETING_DEADLINE, client.apiserver_version())
            .await
            .map_err(anyhow::Error::from)
            .and_then(|answer| Ok(answer?))
            .with_context(|| format!("the cluster at {url} does not answer; see `cargo xtask cluster status`"))?;
        Ok(Self { config, client })
    }
}

fn choose(cluster: Option<&str>, kubeconfig: Option<&str>) -> Result<Choice> {
    match cluster {
        Some("kubeconfig") if kubeconfig.is_none_or(str::is_empty) => {
            bail!("{CLUSTER_VAR}=kubeconfig needs {KUBECONFIG_VAR} to name a kubeconfig; {WHAT_TO_DO}")
        }
        Some("kubeconfig") => Ok(Choice::Kubeconfig),
        None | Some("" | "embedded") => {
            bail!("there is no embedded cluster yet, so the scenarios need a real one; {WHAT_TO_DO}")
        }
        Some(other) => {
            bail!("{CLUSTER_VAR}=`{other}` is not a cluster, the only one so far is `kubeconfig`; {WHAT_TO_DO}")
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
    fn a_refused_choice_says_what_to_do() {
        for cluster in [None, Some(""), Some("embedded"), Some("minikube")] {
            let refusal = choose(cluster, Some("/tmp/k")).unwrap_err().to_string();
            for command in ["cargo xtask cluster up", "cargo xtask cluster env", "--test scenarios"] {
                assert!(refusal.contains(command), "{cluster:?}: {refusal}");
            }
        }
    }

    #[test]
    fn an_unknown_choice_is_quoted() {
        let refusal = choose(Some("minikube"), None).unwrap_err().to_string();
        assert!(refusal.contains("`minikube`"), "{refusal}");
    }
}
