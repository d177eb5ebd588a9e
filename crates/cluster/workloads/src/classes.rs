//! The classes `local` of volumes and snapshots, both the default; made once at the start, then the user's to change.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;

use crate::cluster::Cluster;
use crate::error::Result;
use crate::key::Key;
use crate::queue;
use crate::snapshot::types::VolumeSnapshotClass;
use crate::volume::local::PROVISIONER;
use crate::write::{create, there_is_fine};

const NAME: &str = "local";

pub(crate) async fn run(cluster: Arc<Cluster>) {
    let once = stream::iter([Key::cluster(NAME)]).chain(stream::pending());
    queue::work("classes", u32::MAX, once, |_| make(&cluster)).await;
}

async fn make(cluster: &Cluster) -> Result<Option<Duration>> {
    let named = |default: &str| json!({"name": NAME, "annotations": {default: "true"}});
    let class = json!({
        "metadata": named("storageclass.kubernetes.io/is-default-class"),
        "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    });
    there_is_fine(create::<StorageClass>(&cluster.client, class).await)?;
    let class = json!({
        "metadata": named("snapshot.storage.kubernetes.io/is-default-class"),
        "driver": PROVISIONER, "deletionPolicy": "Delete",
    });
    there_is_fine(create::<VolumeSnapshotClass>(&cluster.client, class).await)?;
    Ok(None)
}
