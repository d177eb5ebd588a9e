//! The slice of `VolumeSnapshot` that scenarios use. It is a custom resource of the external snapshotter, so
//! k8s-openapi does not have it.

use std::borrow::Cow;

use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Resource, core::TypeMeta};
use serde::{Deserialize, Serialize};

pub(crate) const GROUP: &str = "snapshot.storage.k8s.io";
pub(crate) const KIND: &str = "VolumeSnapshot";
const VERSION: &str = "v1";

/// A snapshot of this claim, of the cluster's default class.
pub fn snapshot(name: &str, claim: &str) -> VolumeSnapshot {
    VolumeSnapshot {
        types: TypeMeta { api_version: format!("{GROUP}/{VERSION}"), kind: KIND.to_owned() },
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: VolumeSnapshotSpec {
            source: VolumeSnapshotSource { persistent_volume_claim_name: Some(claim.to_owned()) },
            volume_snapshot_class_name: None,
        },
        status: None,
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct VolumeSnapshot {
    #[serde(flatten)]
    pub types: TypeMeta,
    pub metadata: ObjectMeta,
    pub spec: VolumeSnapshotSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<VolumeSnapshotStatus>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotSpec {
    pub source: VolumeSnapshotSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_snapshot_class_name: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotSource {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSnapshotStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_volume_snapshot_content_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_to_use: Option<bool>,
    /// Kept as it came, for the failure's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<serde_json::Value>,
}

/// The snapshot is cut and a claim can be restored from it.
pub fn is_ready(snapshot: &VolumeSnapshot) -> bool {
    snapshot.status.as_ref().is_some_and(|status| status.ready_to_use == Some(true))
}

impl Resource for VolumeSnapshot {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "volumesnapshots".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_written_as_its_custom_resource_wants_it() {
        let value = serde_json::to_value(snapshot("cut", "data")).unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "apiVersion": "snapshot.storage.k8s.io/v1",
                "kind": "VolumeSnapshot",
                "metadata": {"name": "cut"},
                "spec": {"source": {"persistentVolumeClaimName": "data"}},
            })
        );
    }
}
