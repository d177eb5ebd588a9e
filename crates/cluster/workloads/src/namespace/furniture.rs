//! What every namespace has: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt`.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::select_all;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::PostParams;
use serde_json::json;

use crate::cluster::Cluster;
use crate::error::Result;
use crate::key::Key;
use crate::queue;
use crate::write::{create, made_is_fine};

pub(crate) const ACCOUNT: &str = "default";
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";

const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

pub(crate) async fn run(cluster: Arc<Cluster>) {
    let wakes = select_all([
        cluster.namespaces.wakes(|change| vec![change.key()]),
        cluster.accounts.wakes(|change| vec![Key::cluster(change.key().namespace)]),
        cluster.bundles.wakes(|change| vec![Key::cluster(change.key().namespace)]),
    ]);
    queue::work("namespace furniture", u32::MAX, wakes, |key| look(&cluster, key)).await;
}

async fn look(cluster: &Cluster, key: Key) -> Result<Option<Duration>> {
    let there = cluster.namespaces.get(&key);
    if there.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()) {
        return Ok(None);
    }
    if cluster.accounts.get(&Key::new(&key.name, ACCOUNT)).is_none() {
        let account = json!({"metadata": {"name": ACCOUNT, "namespace": key.name}});
        made_is_fine(create::<ServiceAccount>(&cluster.client, account).await)?;
    }
    let data = Some([("ca.crt".to_owned(), cluster.root_ca.clone())].into());
    match cluster.bundles.get(&Key::new(&key.name, ROOT_CA)) {
        Some(bundle) if bundle.data == data => {}
        Some(bundle) => {
            let bundle = ConfigMap { data, ..(*bundle).clone() };
            let api = cluster.api::<ConfigMap>(&key.name);
            made_is_fine(api.replace(ROOT_CA, &PostParams::default(), &bundle).await)?;
        }
        None => {
            let annotations = json!({"kubernetes.io/description": DESCRIPTION});
            let metadata = json!({"name": ROOT_CA, "namespace": key.name, "annotations": annotations});
            let bundle = json!({"metadata": metadata, "data": data});
            made_is_fine(create::<ConfigMap>(&cluster.client, bundle).await)?;
        }
    }
    Ok(None)
}
