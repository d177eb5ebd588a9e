//! Where rollouts are measured; and the pods that hooks would run in, by themselves.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::{StreamExt, future::try_join_all};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{self, Pod},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, PostParams, WatchParams},
    runtime::wait::{Condition, await_condition},
};
use serde::de::DeserializeOwned;
use serde_json::json;

/// The command of every hook.
pub(super) const COMMAND: &str = "true";

const DEADLINE: Duration = Duration::from_secs(300);

/// On the pods that run what hooks would.
const BARE: &str = "bare";

pub(super) struct Namespace {
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) image: &'static str,
}

impl Namespace {
    pub(super) async fn make(client: &Client, image: &'static str) -> Result<Self> {
        let name = format!("bench-{}", std::process::id());
        let made: v1::Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        Api::all(client.clone()).create(&PostParams::default(), &made).await.context("failed to make a namespace")?;
        Ok(Self { client: client.clone(), name, image })
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// As many pods at once as there are Deployments, stage after stage: how many milliseconds that takes.
    pub(super) async fn run_hooks(&self, count: usize, stages: usize) -> Result<f64> {
        let begun = Instant::now();
        for stage in 0..stages {
            let names: Vec<_> = (0..count).map(|number| format!("{BARE}-{stage}-{number}")).collect();
            try_join_all(names.iter().map(|name| self.run_pod(name))).await?;
        }
        let time = begun.elapsed().as_secs_f64() * 1000.0;
        let bare = ListParams::default().labels(BARE);
        self.api::<Pod>().delete_collection(&DeleteParams::default(), &bare).await.context("failed to tidy up")?;
        self.until_no_pods(BARE).await?;
        Ok(time)
    }

    async fn run_pod(&self, name: &str) -> Result<()> {
        let containers = json!([{"name": "main", "image": self.image, "command": [COMMAND]}]);
        let pod = json!({"metadata": {"name": name, "labels": {BARE: ""}},
            "spec": {"restartPolicy": "OnFailure", "containers": containers}});
        let pods: Api<Pod> = self.api();
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await.context("failed to create a pod")?;
        let succeeded = |pod: Option<&Pod>| {
            let status = pod.and_then(|pod| pod.status.as_ref());
            status.and_then(|status| status.phase.as_deref()) == Some("Succeeded")
        };
        until(pods, name, succeeded).await
    }

    /// Until no pod has this label.
    pub(super) async fn until_no_pods(&self, label: &str) -> Result<()> {
        let pods: Api<Pod> = self.api();
        let gone = async {
            loop {
                let there = pods.list_metadata(&ListParams::default().labels(label)).await?;
                if there.items.is_empty() {
                    return anyhow::Ok(());
                }
                let version = there.metadata.resource_version.context("a list has a version")?;
                let how = WatchParams::default().labels(label).timeout(60);
                // Whatever happens to one of them, they are looked at again.
                pods.watch_metadata(&how, &version).await?.boxed().next().await;
            }
        };
        tokio::time::timeout(DEADLINE, gone).await.with_context(|| format!("pods were there after {DEADLINE:?}"))?
    }

    pub(super) async fn remove(self) -> Result<()> {
        let namespaces: Api<v1::Namespace> = Api::all(self.client);
        let removed = namespaces.delete(&self.name, &DeleteParams::default()).await;
        removed.map(drop).context("failed to remove the namespace")
    }
}

pub(super) async fn until<K>(api: Api<K>, name: &str, condition: impl Condition<K>) -> Result<()>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource<DynamicType = ()> + 'static,
{
    let found = tokio::time::timeout(DEADLINE, await_condition(api, name, condition)).await;
    found.with_context(|| format!("`{name}` did not come to its end within {DEADLINE:?}"))??;
    Ok(())
}
