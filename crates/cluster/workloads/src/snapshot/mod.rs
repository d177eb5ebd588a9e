//! Snapshots of volumes of the class `local`, as external-snapshotter's controller and sidecar do it together.
//!
//! The controller's part is done for every class; what the sidecar does, for those of the driver `local` alone. So a
//! snapshot of a class that nobody serves gets a content, and waits.

mod cut;
pub(crate) mod source;
pub(crate) mod types;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::select_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use self::types::{SnapshotStatus, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::volume::local::{self, PROVISIONER};
use crate::write::{create, gone_is_fine, patch, patch_status, protect, there_is_fine};
use crate::{quantity, queue};

const AS_SOURCE: &str = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
const BOUND: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
const CONTENT: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
const CLAIM_AS_SOURCE: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";
const DEFAULT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";
const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";

pub(crate) struct Controller {
    cluster: Arc<Cluster>,
    events: Events,
}

impl Controller {
    /// Snapshots are looked at by namespace and name, contents by name alone.
    pub(crate) async fn run(cluster: Arc<Cluster>) {
        let events = cluster.events.of("snapshot-controller", None);
        let controller = Self { cluster, events };
        let wakes = select_all([
            controller.cluster.snapshots.wakes(|change| {
                let content = change.latest().status.bound_volume_snapshot_content_name.clone();
                [change.key()].into_iter().chain(content.map(Key::cluster)).collect()
            }),
            controller.cluster.contents.wakes(|change| vec![change.key(), snapshot_of(change.latest())]),
            controller.cluster.snapshot_classes.wakes(|_| controller.unready(controller.cluster.snapshots.all())),
            controller
                .cluster
                .claims
                .wakes(|change| controller.unready(controller.cluster.snapshots.in_namespace(&change.key().namespace))),
        ]);
        queue::work("snapshot", u32::MAX, wakes, |key| controller.look(key)).await;
    }

    fn unready(&self, snapshots: Vec<Arc<VolumeSnapshot>>) -> Vec<Key> {
        let waits = |snapshot: &&Arc<VolumeSnapshot>| {
            !snapshot.status.is_ready() || snapshot.metadata.deletion_timestamp.is_some()
        };
        snapshots.iter().filter(waits).map(|snapshot| Key::of(&**snapshot)).collect()
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        if key.namespace.is_empty() {
            let content = self.cluster.contents.get(&key);
            if let Some(content) = content.filter(|content| content.spec.driver == PROVISIONER) {
                self.look_at_content(&content).await?;
            }
        } else if let Some(snapshot) = self.cluster.snapshots.get(&key) {
            self.look_at_snapshot(&key, &snapshot).await?;
        }
        Ok(None)
    }

    fn snapshots(&self, key: &Key) -> Api<VolumeSnapshot> {
        self.cluster.api(&key.namespace)
    }

    fn contents(&self) -> Api<VolumeSnapshotContent> {
        Api::all(self.cluster.client.clone())
    }

    async fn look_at_snapshot(&self, key: &Key, snapshot: &VolumeSnapshot) -> Result<()> {
        let content = self.cluster.contents.get(&Key::cluster(content_name(snapshot)));
        if snapshot.metadata.deletion_timestamp.is_some() {
            return self.delete_snapshot(key, snapshot, content.as_deref()).await;
        }
        let api = self.snapshots(key);
        if let Some(content) = content {
            let is_bound = snapshot.status.bound_volume_snapshot_content_name.is_some();
            // Each change brings the next look.
            if self.take_over(&content, snapshot).await?
                || protect(&api, snapshot, AS_SOURCE, true).await?
                || (is_bound && protect(&api, snapshot, BOUND, true).await?)
            {
                return Ok(());
            }
            self.write_status(key, snapshot, status_of(&content)).await?;
            return self.release_claim(key, snapshot).await;
        }
        match self.begin(key, snapshot).await {
            Err(error @ Error::Other(_)) => {
                self.fail(key, snapshot, &error).await?;
                Err(error)
            }
            outcome => outcome,
        }
    }

    /// From a new VolumeSnapshot to its content. An error that is a sentence is for the user to read.
    async fn begin(&self, key: &Key, snapshot: &VolumeSnapshot) -> Result<()> {
        let api = self.snapshots(key);
        let Some(claim) = snapshot.spec.source.persistent_volume_claim_name.as_deref() else {
            let content = snapshot.spec.source.volume_snapshot_content_name.clone().unwrap_or_default();
            return Err(Error::Other(format!("VolumeSnapshotContent {content} is missing")));
        };
        let class = self.class_of(snapshot)?;
        if snapshot.spec.volume_snapshot_class_name.is_none() {
            // Which default it is depends on who made the volume.
            self.bound_claim(&Key::new(&key.namespace, claim))?;
            return patch(&api, snapshot, json!({"spec": {"volumeSnapshotClassName": class.metadata.name}})).await;
        }
        if protect(&api, snapshot, AS_SOURCE, true).await? {
            return Ok(());
        }
        let (claim, volume) = self.bound_claim(&Key::new(&key.namespace, claim))?;
        if protect(&self.cluster.api(&key.namespace), &*claim, CLAIM_AS_SOURCE, true).await? {
            return Ok(());
        }
        let content = content(snapshot, &class, &volume);
        there_is_fine(create::<VolumeSnapshotContent>(&self.cluster.client, content).await)?;
        let message = format!("Waiting for a snapshot {key} to be created by the CSI driver.");
        self.events.report(snapshot, Weight::Normal, "CreatingSnapshot", message);
        Ok(())
    }

    /// The class that the snapshot names, or the default one.
    fn class_of(&self, snapshot: &VolumeSnapshot) -> Result<Arc<VolumeSnapshotClass>> {
        let is_default = |class: &Arc<VolumeSnapshotClass>| {
            class.annotations().get(DEFAULT_CLASS).is_some_and(|is| is == "true") && class.driver == PROVISIONER
        };
        let classes = &self.cluster.snapshot_classes;
        let (class, missing) = match &snapshot.spec.volume_snapshot_class_name {
            Some(name) => {
                let missing = format!("volumesnapshotclass.snapshot.storage.k8s.io \"{name}\" not found");
                (classes.get(&Key::cluster(name)), missing)
            }
            None => (classes.all().into_iter().find(is_default), "cannot find default snapshot class".to_owned()),
        };
        class.ok_or(Error::Other(missing))
    }

    fn bound_claim(&self, key: &Key) -> Result<(Arc<PersistentVolumeClaim>, Arc<PersistentVolume>)> {
        let name = &key.name;
        let missing = || {
            Error::Other(format!(
                "failed to retrieve PVC {name} from the lister: \"persistentvolumeclaim \\\"{name}\\\" not found\""
            ))
        };
        let unbound =
            || Error::Other(format!("the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot"));
        let claim = self.cluster.claims.get(key).ok_or_else(missing)?;
        let is_bound = phase(&claim) == Some("Bound");
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).filter(|_| is_bound);
        let volume = volume.and_then(|name| self.cluster.volumes.get(&Key::cluster(name))).ok_or_else(unbound)?;
        if !local::is_local(&volume) {
            return Err(Error::Other(format!("the volume of the PVC {name} is not one of {PROVISIONER}")));
        }
        Ok((claim, volume))
    }

    /// A content made by hand for this snapshot's name becomes its own. Whether it had to.
    async fn take_over(&self, content: &VolumeSnapshotContent, snapshot: &VolumeSnapshot) -> Result<bool> {
        let reference = &content.spec.volume_snapshot_ref;
        let same = reference.name == snapshot.metadata.name && reference.namespace == snapshot.metadata.namespace;
        match &reference.uid {
            Some(uid) if Some(uid) == snapshot.metadata.uid.as_ref() => Ok(false),
            None if same => {
                let change = json!({"spec": {"volumeSnapshotRef": {"uid": snapshot.metadata.uid}}});
                patch(&self.contents(), content, change).await?;
                Ok(true)
            }
            Some(_) | None => {
                Err(Error::Other("VolumeSnapshotContent is not bound to the VolumeSnapshot correctly".to_owned()))
            }
        }
    }

    async fn write_status(&self, key: &Key, snapshot: &VolumeSnapshot, status: SnapshotStatus) -> Result<()> {
        let before = &snapshot.status;
        if *before == status {
            return Ok(());
        }
        patch_status(&self.snapshots(key), snapshot, json!(status)).await?;
        if before.creation_time.is_none() && status.creation_time.is_some() {
            let message = format!("Snapshot {key} was successfully created by the CSI driver.");
            self.events.report(snapshot, Weight::Normal, "SnapshotCreated", message);
        }
        if !before.is_ready() && status.is_ready() {
            self.events.report(snapshot, Weight::Normal, "SnapshotReady", format!("Snapshot {key} is ready to use."));
        }
        Ok(())
    }

    async fn fail(&self, key: &Key, snapshot: &VolumeSnapshot, error: &Error) -> Result<()> {
        let (reason, doing) = match snapshot.spec.volume_snapshot_class_name {
            None => ("SetDefaultSnapshotClassFailed", "set default snapshot class"),
            Some(_) => ("SnapshotContentCreationFailed", "create snapshot content"),
        };
        let message = format!("Failed to {doing} with error {error}");
        if snapshot.status.error.as_ref().is_some_and(|said| said.message.as_ref() == Some(&message)) {
            return Ok(());
        }
        let error = json!({"message": message, "time": Time(Timestamp::now())});
        patch_status(&self.snapshots(key), snapshot, json!({"error": error, "readyToUse": false})).await?;
        self.events.report(snapshot, Weight::Warning, reason, message);
        Ok(())
    }

    /// A claim stays while a snapshot of it is being cut, and no longer.
    async fn release_claim(&self, key: &Key, snapshot: &VolumeSnapshot) -> Result<()> {
        let Some(name) = snapshot.spec.source.persistent_volume_claim_name.as_deref() else { return Ok(()) };
        let busy = |other: &Arc<VolumeSnapshot>| {
            other.spec.source.persistent_volume_claim_name.as_deref() == Some(name)
                && other.metadata.deletion_timestamp.is_none()
                && !other.status.is_ready()
                && other.status.error.is_none()
        };
        if self.cluster.snapshots.in_namespace(&key.namespace).iter().any(busy) {
            return Ok(());
        }
        let Some(claim) = self.cluster.claims.get(&Key::new(&key.namespace, name)) else { return Ok(()) };
        protect(&self.cluster.api(&key.namespace), &*claim, CLAIM_AS_SOURCE, false).await.map(drop)
    }

    async fn delete_snapshot(
        &self,
        key: &Key,
        snapshot: &VolumeSnapshot,
        content: Option<&VolumeSnapshotContent>,
    ) -> Result<()> {
        if self.is_being_restored(key) {
            let message = "Snapshot is being used to restore a PVC";
            self.events.report(snapshot, Weight::Warning, "SnapshotDeletePending", message);
            return Ok(());
        }
        self.release_claim(key, snapshot).await?;
        let own = |content: &&VolumeSnapshotContent| content.spec.volume_snapshot_ref.uid == snapshot.metadata.uid;
        if let Some(content) = content.filter(own) {
            if !content.annotations().contains_key(BEING_DELETED) {
                let change = json!({"metadata": {"annotations": {BEING_DELETED: "yes"}}});
                return patch(&self.contents(), content, change).await;
            }
            if content.spec.deletion_policy == "Delete" {
                if content.metadata.deletion_timestamp.is_none() {
                    gone_is_fine(self.contents().delete(&content.name_any(), &DeleteParams::default()).await)?;
                }
                // Its end brings the next look.
                return Ok(());
            }
        }
        let mut finalizers = snapshot.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != AS_SOURCE && finalizer != BOUND);
        patch(&self.snapshots(key), snapshot, json!({"metadata": {"finalizers": finalizers}})).await
    }

    fn is_being_restored(&self, key: &Key) -> bool {
        self.cluster.claims.in_namespace(&key.namespace).iter().any(|claim| {
            let source = claim.spec.as_ref().and_then(|spec| spec.data_source.as_ref());
            let from_it = source.is_some_and(|source| source.kind == "VolumeSnapshot" && source.name == key.name);
            from_it && phase(claim) == Some("Pending")
        })
    }
}

fn phase(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

fn content_name(snapshot: &VolumeSnapshot) -> String {
    let named = snapshot.spec.source.volume_snapshot_content_name.clone();
    named.unwrap_or_else(|| format!("snapcontent-{}", snapshot.uid().unwrap_or_default()))
}

fn snapshot_of(content: &VolumeSnapshotContent) -> Key {
    let reference = content.spec.volume_snapshot_ref.clone();
    Key::new(reference.namespace.unwrap_or_default(), reference.name.unwrap_or_default())
}

fn content(snapshot: &VolumeSnapshot, class: &VolumeSnapshotClass, volume: &PersistentVolume) -> Value {
    json!({
        "metadata": {"name": content_name(snapshot), "finalizers": [CONTENT]},
        "spec": {
            "deletionPolicy": class.deletion_policy,
            "driver": class.driver,
            "source": {"volumeHandle": volume.name_any()},
            "sourceVolumeMode": volume.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()).unwrap_or("Filesystem"),
            "volumeSnapshotClassName": class.name_any(),
            "volumeSnapshotRef": snapshot.object_ref(&()),
        },
    })
}

/// What a snapshot says of its content.
fn status_of(content: &VolumeSnapshotContent) -> SnapshotStatus {
    let status = content.status.clone();
    let time = |nanoseconds: i64| Timestamp::from_second(nanoseconds / 1_000_000_000).ok().map(Time);
    SnapshotStatus {
        bound_volume_snapshot_content_name: content.metadata.name.clone(),
        creation_time: status.creation_time.and_then(time),
        ready_to_use: Some(status.ready_to_use.unwrap_or_default()),
        restore_size: status.restore_size.map(|size| quantity::of_bytes(size.unsigned_abs())),
        error: status.error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> VolumeSnapshot {
        let value = json!({"metadata": {"name": "s", "namespace": "n", "uid": "u"},
                           "spec": {"source": {"persistentVolumeClaimName": "data"}}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_content_is_named_by_its_snapshots_uid_and_refers_to_both_sides() {
        let class = json!({"metadata": {"name": "local"}, "driver": PROVISIONER, "deletionPolicy": "Delete"});
        let volume = json!({"metadata": {"name": "pvc-1"}, "spec": {"volumeMode": "Filesystem"}});
        let class = serde_json::from_value(class).unwrap();
        let content = content(&snapshot(), &class, &serde_json::from_value(volume).unwrap());
        assert_eq!(content["metadata"]["name"], "snapcontent-u");
        assert_eq!(content["spec"]["source"], json!({"volumeHandle": "pvc-1"}));
        let reference = &content["spec"]["volumeSnapshotRef"];
        assert_eq!(reference["kind"], "VolumeSnapshot");
        assert_eq!(reference["apiVersion"], "snapshot.storage.k8s.io/v1");
    }

    #[test]
    fn a_snapshot_says_what_its_content_says_in_its_own_units() {
        let mut content = VolumeSnapshotContent::default();
        content.metadata.name = Some("c".to_owned());
        let wanted = json!({"boundVolumeSnapshotContentName": "c", "readyToUse": false, "creationTime": null,
                            "restoreSize": null, "error": null});
        assert_eq!(json!(status_of(&content)), wanted);
        let status = json!({"creationTime": 1_700_000_000_500_000_000_i64, "readyToUse": true, "restoreSize": 1 << 30});
        content.status = serde_json::from_value(status).unwrap();
        let wanted = json!({"boundVolumeSnapshotContentName": "c", "creationTime": "2023-11-14T22:13:20Z",
                            "readyToUse": true, "restoreSize": "1Gi", "error": null});
        assert_eq!(json!(status_of(&content)), wanted);
    }
}
