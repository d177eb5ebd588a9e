//! A builder for volume claims. They name no class: every test cluster has a default one. And their attachment to a node,
//! which the drivers of the test clusters have no need of.

use anyhow::{Context, Result};
use k8s_openapi::{
    api::{
        core::v1::{
            PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedLocalObjectReference, VolumeResourceRequirements,
        },
        storage::v1::{VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec},
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{Ctx, DEADLINE, snapshots};

/// Room for what the scenarios write, a few megabytes.
const SIZE: &str = "64Mi";

/// An empty volume for one node.
pub fn claim(name: &str) -> ClaimBuilder {
    let requests = [("storage".to_owned(), Quantity(SIZE.to_owned()))].into();
    let spec = PersistentVolumeClaimSpec {
        access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
        resources: Some(VolumeResourceRequirements { requests: Some(requests), ..Default::default() }),
        ..PersistentVolumeClaimSpec::default()
    };
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ClaimBuilder { claim: PersistentVolumeClaim { metadata, spec: Some(spec), status: None } }
}

pub struct ClaimBuilder {
    claim: PersistentVolumeClaim,
}

impl ClaimBuilder {
    /// With what the snapshot holds instead of empty.
    pub fn restored_from(mut self, snapshot: &str) -> Self {
        self.claim.spec.get_or_insert_default().data_source = Some(TypedLocalObjectReference {
            api_group: Some(snapshots::GROUP.to_owned()),
            kind: snapshots::KIND.to_owned(),
            name: snapshot.to_owned(),
        });
        self
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.claim.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        self
    }

    pub fn build(self) -> PersistentVolumeClaim {
        self.claim
    }
}

impl Ctx {
    /// Says of the claim's volume that it is attached to a node, in the name of an attacher that nobody serves: so it stays
    /// as it is written here, and goes with the scenario.
    pub async fn attach(&self, claim: &str) -> Result<()> {
        let volume_of = |claim: &PersistentVolumeClaim| claim.spec.as_ref()?.volume_name.clone();
        let bound = self.watch_until(DEADLINE, claim, "is bound", |claim| volume_of(claim).is_some()).await?;
        let name = format!("{}-{claim}", self.namespace());
        let spec = VolumeAttachmentSpec {
            attacher: "nobody.boathook.dev".to_owned(),
            node_name: "nowhere".to_owned(),
            source: VolumeAttachmentSource {
                persistent_volume_name: volume_of(&bound),
                ..VolumeAttachmentSource::default()
            },
        };
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        self.create_cluster_scoped(VolumeAttachment { metadata, spec, status: None }).await?;
        let attached = Patch::Merge(json!({"status": {"attached": true}}));
        let api: Api<VolumeAttachment> = Api::all(self.client());
        let written = api.patch_status(&name, &PatchParams::default(), &attached).await;
        written.map(drop).with_context(|| format!("failed to write the status of VolumeAttachment `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_claim_names_its_snapshot_and_no_class() {
        let spec = claim("copy").restored_from("cut").build().spec.unwrap();
        let source = spec.data_source.unwrap();
        assert_eq!((source.kind.as_str(), source.name.as_str()), ("VolumeSnapshot", "cut"));
        assert_eq!(source.api_group.as_deref(), Some("snapshot.storage.k8s.io"));
        assert_eq!(spec.storage_class_name, None);
    }
}
