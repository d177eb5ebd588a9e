//! The classes `local` of volumes and snapshots, both the default; made once at the start, then the user's to change.

use std::time::Duration;

use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::core::TypeMeta;
use kube::{Api, Client};

use crate::error::Error;
use crate::snapshot::types::VolumeSnapshotClass;
use crate::volume::local::PROVISIONER;

const NAME: &str = "local";
/// The definitions of snapshots may come after us.
const RETRY: Duration = Duration::from_millis(500);

pub(crate) async fn make(client: Client) {
    let class = StorageClass {
        metadata: named("storageclass.kubernetes.io/is-default-class"),
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("Immediate".to_owned()),
        ..StorageClass::default()
    };
    until_made(&Api::all(client.clone()), &class).await;
    let class = VolumeSnapshotClass {
        types: Some(TypeMeta::resource::<VolumeSnapshotClass>()),
        metadata: named("snapshot.storage.kubernetes.io/is-default-class"),
        driver: PROVISIONER.to_owned(),
        deletion_policy: "Delete".to_owned(),
    };
    until_made(&Api::all(client), &class).await;
}

fn named(default: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_owned()),
        annotations: Some([(default.to_owned(), "true".to_owned())].into()),
        ..ObjectMeta::default()
    }
}

async fn until_made<K>(api: &Api<K>, class: &K)
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    while let Err(error) = api.create(&PostParams::default(), class).await.map_err(Error::from) {
        if error.already_exists() {
            return;
        }
        tracing::debug!("the class `{NAME}` will be made later: {error}");
        tokio::time::sleep(RETRY).await;
    }
}
