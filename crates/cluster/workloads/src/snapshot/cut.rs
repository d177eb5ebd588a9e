//! Contents: the copies themselves. Made when a content appears, removed when it goes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::types::{SnapshotError, VolumeSnapshotContent};
use super::{CONTENT, Controller, snapshot_of};
use crate::error::{Error, Result, gone_is_fine};
use crate::events::Weight;
use crate::key::Key;
use crate::volume::{local, patch, protect, quantity};

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
        if content.status.as_ref().is_some_and(|status| status.ready_to_use == Some(true)) {
            return self.mark(content, false).await.map(drop);
        }
        match self.cut(content).await {
            Err(error) if !error.is_conflict() => {
                let message = format!("Failed to check and update snapshot content: {error}");
                let failure = SnapshotError { message: Some(message.clone()), time: Some(Time(Timestamp::now())) };
                self.write_content_status(content, json!({"error": failure, "readyToUse": false})).await?;
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
        let handle = content.metadata.name.clone().unwrap_or_default();
        // Asked anew, not of the cache: a copy that is known to be complete must not be made again.
        let fresh = self.contents().get_status(&handle).await?.status;
        if fresh.is_some_and(|status| status.ready_to_use == Some(true)) {
            return Ok(());
        }
        let name = content.spec.source.volume_handle.clone().unwrap_or_default();
        let missing = || Error::Other(format!("failed to take snapshot of the volume {name}: it is gone"));
        let volume = self.seen.volumes.get(&Key::cluster(&name)).ok_or_else(missing)?;
        let path = local::path_of(&volume).ok_or_else(missing)?;
        let begun = Timestamp::now();
        self.storage.cut(path, &handle).await?;
        let capacity =
            volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()?.get("storage").map(quantity::bytes));
        let status = json!({"snapshotHandle": handle, "creationTime": nanoseconds(begun), "readyToUse": true,
                            "restoreSize": capacity, "error": null});
        self.write_content_status(content, status).await
    }

    /// A content that names a copy which is there already.
    async fn find_made_by_hand(&self, content: &VolumeSnapshotContent, handle: &str) -> Result<()> {
        let made = std::fs::metadata(self.storage.snapshot(handle)).and_then(|meta| meta.modified());
        let made = made.map_err(Error::file(format!("find the snapshot {handle}")))?;
        let made = Timestamp::try_from(made).unwrap_or_default();
        let status = json!({"snapshotHandle": handle, "creationTime": nanoseconds(made), "readyToUse": true,
                            "restoreSize": 0, "error": null});
        self.write_content_status(content, status).await
    }

    /// Sets or takes away the mark that it is being made; whether that changed anything.
    async fn mark(&self, content: &VolumeSnapshotContent, wanted: bool) -> Result<bool> {
        let annotations = content.metadata.annotations.as_ref();
        if annotations.is_some_and(|annotations| annotations.contains_key(BEING_CREATED)) == wanted {
            return Ok(false);
        }
        let value = if wanted { json!("yes") } else { Value::Null };
        patch(&self.contents(), content, json!({"metadata": {"annotations": {BEING_CREATED: value}}})).await?;
        Ok(true)
    }

    async fn write_content_status(&self, content: &VolumeSnapshotContent, status: Value) -> Result<()> {
        let name = content.metadata.name.as_deref().unwrap_or_default();
        let change = Patch::Merge(json!({"status": status}));
        gone_is_fine(self.contents().patch_status(name, &PatchParams::default(), &change).await)
    }

    /// A content goes only after its snapshot: that one would point to nothing.
    async fn remove_content(&self, content: &VolumeSnapshotContent) -> Result<()> {
        let snapshot = self.seen.snapshots.get(&snapshot_of(content));
        let uid = &content.spec.volume_snapshot_ref.uid;
        let needed = |snapshot: &super::VolumeSnapshot| {
            snapshot.metadata.deletion_timestamp.is_none() && snapshot.metadata.uid == *uid
        };
        if snapshot.is_some_and(|snapshot| needed(&snapshot)) {
            return Ok(());
        }
        if content.spec.deletion_policy == "Delete" {
            let made = content.status.as_ref().and_then(|status| status.snapshot_handle.as_deref());
            let handle = made.or(content.metadata.name.as_deref()).unwrap_or_default();
            self.storage.remove_snapshot(handle).await?;
        }
        protect(&self.contents(), content, CONTENT, false).await.map(drop)
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}
