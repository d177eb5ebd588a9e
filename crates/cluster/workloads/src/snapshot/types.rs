//! The kinds of `snapshot.storage.k8s.io/v1`, as far as they are read here.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use serde::{Deserialize, Serialize};

pub(crate) const GROUP: &str = "snapshot.storage.k8s.io";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeSnapshot {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: SnapshotSpec,
    pub(crate) status: SnapshotStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SnapshotSpec {
    pub(crate) source: SnapshotSource,
    pub(crate) volume_snapshot_class_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SnapshotSource {
    pub(crate) persistent_volume_claim_name: Option<String>,
    pub(crate) volume_snapshot_content_name: Option<String>,
}

/// Written as a merge patch, in which what is not said is taken away.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SnapshotStatus {
    pub(crate) bound_volume_snapshot_content_name: Option<String>,
    pub(crate) creation_time: Option<Time>,
    pub(crate) ready_to_use: Option<bool>,
    pub(crate) restore_size: Option<Quantity>,
    pub(crate) error: Option<SnapshotError>,
}

impl SnapshotStatus {
    pub(crate) fn is_ready(&self) -> bool {
        self.ready_to_use == Some(true)
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct SnapshotError {
    pub(crate) message: Option<String>,
    pub(crate) time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct VolumeSnapshotContent {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: ContentSpec,
    pub(crate) status: ContentStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContentSpec {
    pub(crate) deletion_policy: String,
    pub(crate) driver: String,
    pub(crate) source: ContentSource,
    pub(crate) volume_snapshot_ref: ObjectReference,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContentSource {
    pub(crate) volume_handle: Option<String>,
    pub(crate) snapshot_handle: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContentStatus {
    pub(crate) snapshot_handle: Option<String>,
    /// In nanoseconds since 1970.
    pub(crate) creation_time: Option<i64>,
    pub(crate) ready_to_use: Option<bool>,
    pub(crate) restore_size: Option<i64>,
    pub(crate) error: Option<SnapshotError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VolumeSnapshotClass {
    pub(crate) metadata: ObjectMeta,
    pub(crate) driver: String,
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
