//! The pods that commands are run in, in a namespace of their own.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
    runtime::{conditions::is_pod_running, wait::await_condition},
};
use serde_json::json;

/// The notifier that they declare, and what it runs.
pub(crate) const NOTIFIER: &str = "nudge";
pub(crate) const COMMAND: &str = "true";

const DEADLINE: Duration = Duration::from_secs(300);

pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) pods: Vec<String>,
}

impl Place {
    pub(crate) async fn make(client: &Client, image: &str, count: usize) -> Result<Self> {
        let namespace = format!("bench-{}", std::process::id());
        let made: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
        Api::all(client.clone()).create(&PostParams::default(), &made).await.context("failed to make a namespace")?;
        let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let declared = json!([{"name": NOTIFIER, "handler": {"exec": {"command": [COMMAND]}}, "timeoutSeconds": 60}]);
        let mut pods = Vec::new();
        for number in 0..count {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {
                    "name": format!("pod-{number}"),
                    "annotations": {"notifiers.boathook.dev/main": declared.to_string()},
                },
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": image, "command": ["sleep", "100000"]}],
                },
            }))?;
            let pod = api.create(&PostParams::default(), &pod).await.context("failed to create a pod")?;
            pods.push(pod.name_any());
        }
        for pod in &pods {
            let running = await_condition(api.clone(), pod, is_pod_running());
            tokio::time::timeout(DEADLINE, running)
                .await
                .with_context(|| format!("pod `{pod}` did not run after {DEADLINE:?}"))??;
        }
        Ok(Self { client: client.clone(), namespace, pods })
    }

    /// The pod for each number, in turn.
    pub(crate) fn pod(&self, number: usize) -> &str {
        &self.pods[number % self.pods.len()]
    }

    pub(crate) async fn remove(self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client);
        let removed = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
        removed.map(drop).context("failed to remove the namespace")
    }
}
