//! The kinds of `snapshot.storage.k8s.io/v1`, as far as they are needed here.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use kube::core::TypeMeta;
use serde::{Deserialize, Serialize};

pub(crate) const GROUP: &str = "snapshot.storage.k8s.io";

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct VolumeSnapshot {
    #[serde(flatten)]
    pub(crate) types: Option<TypeMeta>,
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: SnapshotSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<SnapshotStatus>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotSpec {
    #[serde(default)]
    pub(crate) source: SnapshotSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) volume_snapshot_class_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) persistent_volume_claim_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) volume_snapshot_content_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bound_volume_snapshot_content_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) creation_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_to_use: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restore_size: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<SnapshotError>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct SnapshotError {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct VolumeSnapshotContent {
    #[serde(flatten)]
    pub(crate) types: Option<TypeMeta>,
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: ContentSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<ContentStatus>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentSpec {
    #[serde(default)]
    pub(crate) deletion_policy: String,
    #[serde(default)]
    pub(crate) driver: String,
    #[serde(default)]
    pub(crate) source: ContentSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_volume_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) volume_snapshot_class_name: Option<String>,
    #[serde(default)]
    pub(crate) volume_snapshot_ref: ObjectReference,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) volume_handle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot_handle: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot_handle: Option<String>,
    /// In nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) creation_time: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_to_use: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restore_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<SnapshotError>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VolumeSnapshotClass {
    #[serde(flatten)]
    pub(crate) types: Option<TypeMeta>,
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) driver: String,
    #[serde(default)]
    pub(crate) deletion_policy: String,
}

macro_rules! resource {
    ($kind:ident, $plural:literal, $scope:ty) => {
        impl Resource for $kind {
            type DynamicType = ();
            type Scope = $scope;

            fn kind(_: &()) -> Cow<'_, str> {
                stringify!($kind).into()
            }

            fn group(_: &()) -> Cow<'_, str> {
                GROUP.into()
            }

            fn version(_: &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural(_: &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(VolumeSnapshot, "volumesnapshots", NamespaceResourceScope);
resource!(VolumeSnapshotContent, "volumesnapshotcontents", ClusterResourceScope);
resource!(VolumeSnapshotClass, "volumesnapshotclasses", ClusterResourceScope);
