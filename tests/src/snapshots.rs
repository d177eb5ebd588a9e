//! VolumeSnapshots as scenarios use them. They are custom resources of the external snapshotter, so k8s-openapi does not
//! have them; Boathook's own slice is enough.

use boathook_api::volume_snapshot::{VolumeSnapshotSource, VolumeSnapshotSpec};
use kube::core::ObjectMeta;

pub use boathook_api::volume_snapshot::{VolumeSnapshot, VolumeSnapshotContent};

pub(crate) const GROUP: &str = "snapshot.storage.k8s.io";
pub(crate) const KIND: &str = "VolumeSnapshot";

/// A snapshot of this claim, of the cluster's default class.
pub fn snapshot(name: &str, claim: &str) -> VolumeSnapshot {
    let source = VolumeSnapshotSource {
        persistent_volume_claim_name: Some(claim.to_owned()),
        ..VolumeSnapshotSource::default()
    };
    VolumeSnapshot {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: VolumeSnapshotSpec { volume_snapshot_class_name: None, source },
        status: None,
    }
}

/// The snapshot is cut and a claim can be restored from it.
pub fn is_ready(snapshot: &VolumeSnapshot) -> bool {
    snapshot.status.as_ref().is_some_and(|status| status.ready_to_use == Some(true))
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
