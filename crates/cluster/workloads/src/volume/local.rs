//! The storage of the class `local`: a claim is a directory below the data directory, a snapshot a copy of one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::binding::{self, PROVISIONED_BY};
use super::{copy, quantity};
use crate::error::{Error, Result};

/// The name under which classes ask for it, and snapshots.
pub const PROVISIONER: &str = "boathook.dev/local";

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
    let outcome = tokio::task::spawn_blocking(work).await;
    outcome.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(Error::file(doing))
}

pub(crate) fn is_local(volume: &PersistentVolume) -> bool {
    binding::annotation(volume, PROVISIONED_BY) == Some(PROVISIONER)
}

/// The directory of a volume, wherever it comes from.
pub(crate) fn path_of(volume: &PersistentVolume) -> Option<PathBuf> {
    volume.spec.as_ref()?.host_path.as_ref().map(|source| PathBuf::from(&source.path))
}

pub(crate) fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

/// The volume for a claim, with every access mode that the claim asks for.
pub(crate) fn volume(claim: &PersistentVolumeClaim, class: &StorageClass, storage: &Storage) -> PersistentVolume {
    let name = volume_name(claim);
    let spec = claim.spec.clone().unwrap_or_default();
    let capacity = quantity::of_bytes(binding::wanted_bytes(claim));
    let path = storage.volume(&name).display().to_string();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: Some([("storage".to_owned(), capacity)].into()),
            claim_ref: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("PersistentVolumeClaim".to_owned()),
                field_path: None,
                ..claim.object_ref(&())
            }),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone().or(Some("Delete".to_owned())),
            storage_class_name: class.metadata.name.clone(),
            mount_options: class.mount_options.clone(),
            volume_mode: spec.volume_mode,
            host_path: Some(HostPathVolumeSource { path, type_: Some("Directory".to_owned()) }),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}
