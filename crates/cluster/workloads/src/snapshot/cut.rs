//! Contents: the copies themselves. Made when a content appears, removed when it goes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::types::VolumeSnapshotContent;
use super::{CONTENT, Controller, snapshot_of};
use crate::error::{Error, Result};
use crate::events::Weight;
use crate::key::Key;
use crate::quantity;
use crate::volume::local;
use crate::write::{patch, patch_status, protect};

/// On a content while its copy is being made.
const BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";

impl Controller {
    pub(super) async fn look_at_content(&self, content: &VolumeSnapshotContent) -> Result<()> {
        if content.metadata.deletion_timestamp.is_some() {
            return self.remove_content(content).await;
        }
        if protect(&self.contents(), content, CONTENT, true).await? {
            return Ok(());
        }
        if content.status.ready_to_use == Some(true) {
            return self.mark(content, false).await.map(drop);
        }
        match self.cut(content).await {
            Err(error) if !error.is_conflict() => {
                let message = format!("Failed to check and update snapshot content: {error}");
                let failure = json!({"message": message, "time": Time(Timestamp::now())});
                patch_status(&self.contents(), content, json!({"error": failure, "readyToUse": false})).await?;
                self.events.report(content, Weight::Warning, "SnapshotCreationFailed", message);
                Err(error)
            }
            outcome => outcome,
        }
    }

    async fn cut(&self, content: &VolumeSnapshotContent) -> Result<()> {
        if let Some(handle) = &content.spec.source.snapshot_handle {
            return self.find_made_by_hand(content, handle).await;
        }
        if self.mark(content, true).await? {
            return Ok(());
        }
        let handle = content.name_any();
        // Asked anew, not of the cache: a copy that is known to be complete must not be made again.
        if self.contents().get_status(&handle).await?.status.ready_to_use == Some(true) {
            return Ok(());
        }
        let name = content.spec.source.volume_handle.clone().unwrap_or_default();
        let missing = || Error::Other(format!("failed to take snapshot of the volume {name}: it is gone"));
        let volume = self.cluster.volumes.get(&Key::cluster(&name)).ok_or_else(missing)?;
        let path = local::path_of(&volume).ok_or_else(missing)?;
        let begun = Timestamp::now();
        self.cluster.storage.cut(path, &handle).await?;
        let capacity =
            volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage").map(quantity::bytes));
        let status = json!({"snapshotHandle": handle, "creationTime": nanoseconds(begun), "readyToUse": true,
                            "restoreSize": capacity, "error": null});
        patch_status(&self.contents(), content, status).await
    }

    /// A content that names a copy which is there already.
    async fn find_made_by_hand(&self, content: &VolumeSnapshotContent, handle: &str) -> Result<()> {
        let made = std::fs::metadata(self.cluster.storage.snapshot(handle)).and_then(|meta| meta.modified());
        let doing = format!("find the snapshot {handle}");
        let made = made.map_err(|source| Error::File { doing, source })?;
        let made = Timestamp::try_from(made).unwrap_or_default();
        let status = json!({"snapshotHandle": handle, "creationTime": nanoseconds(made), "readyToUse": true,
                            "restoreSize": 0, "error": null});
        patch_status(&self.contents(), content, status).await
    }

    /// Sets or takes away the mark that it is being made; whether that changed anything.
    async fn mark(&self, content: &VolumeSnapshotContent, wanted: bool) -> Result<bool> {
        if content.annotations().contains_key(BEING_CREATED) == wanted {
            return Ok(false);
        }
        let value = if wanted { json!("yes") } else { Value::Null };
        patch(&self.contents(), content, json!({"metadata": {"annotations": {BEING_CREATED: value}}})).await?;
        Ok(true)
    }

    /// A content goes only after its snapshot: that one would point to nothing.
    async fn remove_content(&self, content: &VolumeSnapshotContent) -> Result<()> {
        let snapshot = self.cluster.snapshots.get(&snapshot_of(content));
        let own = snapshot.filter(|snapshot| snapshot.metadata.uid == content.spec.volume_snapshot_ref.uid);
        if own.is_some_and(|snapshot| snapshot.metadata.deletion_timestamp.is_none()) {
            return Ok(());
        }
        if content.spec.deletion_policy == "Delete" {
            let handle = content.status.snapshot_handle.clone().unwrap_or_else(|| content.name_any());
            self.cluster.storage.remove_snapshot(&handle).await?;
        }
        protect(&self.contents(), content, CONTENT, false).await.map(drop)
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}
