//! The storage of the class `local`: a claim is a directory below the data directory, a snapshot a copy of one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::{binding, copy};
use crate::error::{Error, Result};
use crate::quantity;

/// The name under which classes ask for it, and snapshots.
pub const PROVISIONER: &str = "boathook.dev/local";

const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Where claims and snapshots are kept.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    pub(crate) data_dir: PathBuf,
}

impl Storage {
    pub(crate) fn volume(&self, name: &str) -> PathBuf {
        self.data_dir.join("volumes").join(name)
    }

    pub(crate) fn snapshot(&self, handle: &str) -> PathBuf {
        self.data_dir.join("snapshots").join(handle)
    }

    /// Makes the directory of a volume, empty or as a copy; one that is there stays.
    pub(crate) async fn make_volume(&self, name: &str, from: Option<PathBuf>) -> Result<()> {
        let to = self.volume(name);
        let doing = format!("make the volume {name}");
        blocking(doing, move || {
            if to.exists() {
                return Ok(());
            }
            match from {
                Some(from) => copy::tree(&from, &to),
                None => {
                    fs::create_dir_all(&to)?;
                    // Any user of a container may write, as on a freshly formatted volume of the hostpath driver.
                    fs::set_permissions(&to, fs::Permissions::from_mode(0o777))
                }
            }
        })
        .await
    }

    /// Copies a volume as it is during this call. A copy that is there was left by a crash before anybody knew of it:
    /// it would be older than it says, so it goes.
    pub(crate) async fn cut(&self, volume: PathBuf, handle: &str) -> Result<()> {
        let to = self.snapshot(handle);
        let doing = format!("cut the snapshot {handle}");
        blocking(doing, move || {
            copy::remove(&to)?;
            copy::tree(&volume, &to)
        })
        .await
    }

    pub(crate) async fn remove_volume(&self, name: &str) -> Result<()> {
        let path = self.volume(name);
        blocking(format!("remove the volume {name}"), move || copy::remove(&path)).await
    }

    pub(crate) async fn remove_snapshot(&self, handle: &str) -> Result<()> {
        let path = self.snapshot(handle);
        blocking(format!("remove the snapshot {handle}"), move || copy::remove(&path)).await
    }
}

async fn blocking(doing: String, work: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> Result<()> {
    let outcome = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    outcome.map_err(|source| Error::File { doing, source })
}

pub(crate) fn is_local(volume: &PersistentVolume) -> bool {
    volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER)
}

/// The directory of a volume, wherever it comes from.
pub(crate) fn path_of(volume: &PersistentVolume) -> Option<PathBuf> {
    volume.spec.as_ref()?.host_path.as_ref().map(|source| PathBuf::from(&source.path))
}

pub(crate) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

/// The volume for a claim, with every access mode that the claim asks for.
pub(crate) fn volume(claim: &PersistentVolumeClaim, class: &StorageClass, storage: &Storage) -> Value {
    let name = volume_name(claim);
    let spec = claim.spec.clone().unwrap_or_default();
    json!({
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "accessModes": spec.access_modes,
            "capacity": {"storage": quantity::of_bytes(binding::wanted_bytes(claim))},
            "claimRef": claim.object_ref(&()),
            "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "storageClassName": class.name_any(),
            "volumeMode": spec.volume_mode,
            "hostPath": {"path": storage.volume(&name), "type": "Directory"},
        },
    })
}
