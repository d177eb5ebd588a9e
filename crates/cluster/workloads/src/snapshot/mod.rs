//! Snapshots of volumes of the class `local`, as external-snapshotter's controller and sidecar do it together.

mod cut;
pub(crate) mod source;
pub(crate) mod types;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::TypeMeta;
use kube::{Api, Client, Resource};
use serde_json::json;

use self::types::{
    ContentSource, ContentSpec, SnapshotError, SnapshotStatus, VolumeSnapshot, VolumeSnapshotClass,
    VolumeSnapshotContent,
};
use crate::cache::Cache;
use crate::error::{Error, Result, gone_is_fine};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::queue::{self, Queue};
use crate::volume::local::{self, PROVISIONER, Storage};
use crate::volume::{Seen, patch, protect, quantity};

const AS_SOURCE: &str = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
const BOUND: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
const CONTENT: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
const CLAIM_AS_SOURCE: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";
const DEFAULT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";
const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";

pub(crate) struct Controller {
    client: Client,
    seen: Seen,
    classes: Arc<Cache<VolumeSnapshotClass>>,
    storage: Storage,
    /// Snapshots by namespace and name, contents by name alone.
    queue: Arc<Queue>,
    events: Events,
}

impl Controller {
    pub(crate) fn new(
        client: Client,
        seen: Seen,
        classes: Arc<Cache<VolumeSnapshotClass>>,
        storage: Storage,
        events: &Events,
    ) -> Arc<Self> {
        let events = events.of("snapshot-controller");
        let controller = Arc::new(Self { client, seen, classes, storage, queue: Arc::default(), events });
        controller.seen.snapshots.observe(&controller, Self::snapshot_changed);
        controller.seen.contents.observe(&controller, Self::content_changed);
        controller.classes.observe(&controller, |controller, _, _| controller.wake_unready(|_| true));
        controller.seen.claims.observe(&controller, |controller, before, after| {
            let Some(claim) = after.or(before) else { return };
            let namespace = &claim.metadata.namespace;
            controller.wake_unready(|snapshot| snapshot.metadata.namespace == *namespace);
        });
        controller
    }

    pub(crate) async fn run(self: Arc<Self>) {
        self.seen.claims.synced().await;
        self.seen.volumes.synced().await;
        self.classes.synced().await;
        self.seen.snapshots.synced().await;
        self.seen.contents.synced().await;
        queue::work("snapshot", self.queue.clone(), None, |key| self.look(key)).await;
    }

    fn snapshot_changed(&self, before: Option<&Arc<VolumeSnapshot>>, after: Option<&Arc<VolumeSnapshot>>) {
        let Some(snapshot) = after.or(before) else { return };
        self.queue.add(Key::of(&**snapshot));
        let content = snapshot.status.as_ref().and_then(|status| status.bound_volume_snapshot_content_name.as_deref());
        if let Some(content) = content {
            self.queue.add(Key::cluster(content));
        }
    }

    fn content_changed(&self, before: Option<&Arc<VolumeSnapshotContent>>, after: Option<&Arc<VolumeSnapshotContent>>) {
        let Some(content) = after.or(before) else { return };
        self.queue.add(Key::of(&**content));
        self.queue.add(snapshot_of(content));
    }

    fn wake_unready(&self, which: impl Fn(&VolumeSnapshot) -> bool) {
        for snapshot in self.seen.snapshots.all() {
            let ready = snapshot.status.as_ref().and_then(|status| status.ready_to_use) == Some(true);
            if (!ready || snapshot.metadata.deletion_timestamp.is_some()) && which(&snapshot) {
                self.queue.add(Key::of(&*snapshot));
            }
        }
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        if key.namespace.is_empty() {
            if let Some(content) = self.seen.contents.get(&key).filter(|content| content.spec.driver == PROVISIONER) {
                self.look_at_content(&content).await?;
            }
        } else if let Some(snapshot) = self.seen.snapshots.get(&key) {
            self.look_at_snapshot(&key, &snapshot).await?;
        }
        Ok(None)
    }

    fn snapshots(&self, namespace: &str) -> Api<VolumeSnapshot> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn contents(&self) -> Api<VolumeSnapshotContent> {
        Api::all(self.client.clone())
    }

    async fn look_at_snapshot(&self, key: &Key, snapshot: &VolumeSnapshot) -> Result<()> {
        let name = content_name(snapshot);
        let content = self.seen.contents.get(&Key::cluster(&name));
        if content.as_ref().is_some_and(|content| content.spec.driver != PROVISIONER) {
            return Ok(());
        }
        let api = self.snapshots(&key.namespace);
        if snapshot.metadata.deletion_timestamp.is_some() {
            return self.delete_snapshot(&api, snapshot, content.as_deref()).await;
        }
        if let Some(content) = content {
            if self.take_over(&content, snapshot).await? || protect(&api, snapshot, AS_SOURCE, true).await? {
                return Ok(());
            }
            let has = snapshot.status.clone().unwrap_or_default();
            if has.bound_volume_snapshot_content_name.is_some() && protect(&api, snapshot, BOUND, true).await? {
                return Ok(());
            }
            self.write_status(&api, key, snapshot, status_of(&content)).await?;
            return self.release_claim(key, snapshot).await;
        }
        match self.begin(&api, key, snapshot).await {
            Err(error) if matches!(error, Error::Other(_)) => {
                let (reason, doing) = if snapshot.spec.volume_snapshot_class_name.is_none() {
                    ("SetDefaultSnapshotClassFailed", "set default snapshot class")
                } else {
                    ("SnapshotContentCreationFailed", "create snapshot content")
                };
                let message = format!("Failed to {doing} with error {error}");
                self.fail(&api, snapshot, reason, &message).await?;
                Err(error)
            }
            outcome => outcome,
        }
    }

    /// From a new VolumeSnapshot to its content. An error that is a sentence is for the user to read.
    async fn begin(&self, api: &Api<VolumeSnapshot>, key: &Key, snapshot: &VolumeSnapshot) -> Result<()> {
        let Some(claim) = snapshot.spec.source.persistent_volume_claim_name.as_deref() else {
            let content = snapshot.spec.source.volume_snapshot_content_name.clone().unwrap_or_default();
            return Err(Error::Other(format!("VolumeSnapshotContent {content} is missing")));
        };
        let Some(class) = self.class_of(snapshot)? else { return Ok(()) };
        if snapshot.spec.volume_snapshot_class_name.is_none() {
            // Which default it is depends on who made the volume.
            self.bound_claim(&Key::new(&key.namespace, claim))?;
            return patch(api, snapshot, json!({"spec": {"volumeSnapshotClassName": class.metadata.name}})).await;
        }
        if protect(api, snapshot, AS_SOURCE, true).await? {
            return Ok(());
        }
        let (claim, volume) = self.bound_claim(&Key::new(&key.namespace, claim))?;
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &key.namespace);
        if protect(&claims, &claim, CLAIM_AS_SOURCE, true).await? {
            return Ok(());
        }
        let content = content(snapshot, &class, &volume);
        match self.contents().create(&PostParams::default(), &content).await.map_err(Error::from) {
            Err(error) if !error.already_exists() => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let message = format!("Waiting for a snapshot {key} to be created by the CSI driver.");
        self.events.report(snapshot, Weight::Normal, "CreatingSnapshot", message);
        Ok(())
    }

    /// The class that the snapshot names, or the default one; none if it is another driver's.
    fn class_of(&self, snapshot: &VolumeSnapshot) -> Result<Option<Arc<VolumeSnapshotClass>>> {
        let class = match snapshot.spec.volume_snapshot_class_name.as_deref() {
            Some(name) => self.classes.get(&Key::cluster(name)).ok_or_else(|| {
                Error::Other(format!("volumesnapshotclass.snapshot.storage.k8s.io \"{name}\" not found"))
            })?,
            None => {
                let is_default = |class: &Arc<VolumeSnapshotClass>| {
                    let annotations = class.metadata.annotations.as_ref();
                    let marked = annotations.and_then(|annotations| annotations.get(DEFAULT_CLASS)).map(String::as_str);
                    marked == Some("true") && class.driver == PROVISIONER
                };
                let class = self.classes.all().into_iter().find(is_default);
                class.ok_or_else(|| Error::Other("cannot find default snapshot class".to_owned()))?
            }
        };
        Ok(Some(class).filter(|class| class.driver == PROVISIONER))
    }

    fn bound_claim(&self, key: &Key) -> Result<(Arc<PersistentVolumeClaim>, Arc<PersistentVolume>)> {
        let name = &key.name;
        let missing = || {
            Error::Other(format!(
                "failed to retrieve PVC {name} from the lister: \"persistentvolumeclaim \\\"{name}\\\" not found\""
            ))
        };
        let claim = self.seen.claims.get(key).ok_or_else(missing)?;
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        let unbound =
            || Error::Other(format!("the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot"));
        let volume =
            self.seen.volumes.get(&Key::cluster(&volume)).filter(|_| phase == Some("Bound")).ok_or_else(unbound)?;
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
                patch(
                    &self.contents(),
                    content,
                    json!({"spec": {"volumeSnapshotRef": {"uid": snapshot.metadata.uid}}}),
                )
                .await?;
                Ok(true)
            }
            Some(_) | None => {
                Err(Error::Other("VolumeSnapshotContent is not bound to the VolumeSnapshot correctly".to_owned()))
            }
        }
    }

    async fn write_status(
        &self,
        api: &Api<VolumeSnapshot>,
        key: &Key,
        snapshot: &VolumeSnapshot,
        status: SnapshotStatus,
    ) -> Result<()> {
        let before = snapshot.status.clone().unwrap_or_default();
        if before == status {
            return Ok(());
        }
        let change = json!({"status": {
            "boundVolumeSnapshotContentName": status.bound_volume_snapshot_content_name,
            "creationTime": status.creation_time, "readyToUse": status.ready_to_use,
            "restoreSize": status.restore_size, "error": status.error,
        }});
        gone_is_fine(api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(change)).await)?;
        if before.creation_time.is_none() && status.creation_time.is_some() {
            let message = format!("Snapshot {key} was successfully created by the CSI driver.");
            self.events.report(snapshot, Weight::Normal, "SnapshotCreated", message);
        }
        if before.ready_to_use != Some(true) && status.ready_to_use == Some(true) {
            self.events.report(snapshot, Weight::Normal, "SnapshotReady", format!("Snapshot {key} is ready to use."));
        }
        Ok(())
    }

    async fn fail(
        &self,
        api: &Api<VolumeSnapshot>,
        snapshot: &VolumeSnapshot,
        reason: &'static str,
        message: &str,
    ) -> Result<()> {
        let has = snapshot.status.as_ref().and_then(|status| status.error.as_ref());
        if has.is_some_and(|error| error.message.as_deref() == Some(message)) {
            return Ok(());
        }
        let error = SnapshotError { message: Some(message.to_owned()), time: Some(Time(Timestamp::now())) };
        let name = snapshot.metadata.name.as_deref().unwrap_or_default();
        let change = Patch::Merge(json!({"status": {"error": error, "readyToUse": false}}));
        gone_is_fine(api.patch_status(name, &PatchParams::default(), &change).await)?;
        self.events.report(snapshot, Weight::Warning, reason, message.to_owned());
        Ok(())
    }

    /// A claim stays while a snapshot of it is being cut, and no longer.
    async fn release_claim(&self, key: &Key, snapshot: &VolumeSnapshot) -> Result<()> {
        let Some(name) = snapshot.spec.source.persistent_volume_claim_name.as_deref() else { return Ok(()) };
        let busy = |other: &Arc<VolumeSnapshot>| {
            let status = other.status.as_ref();
            other.spec.source.persistent_volume_claim_name.as_deref() == Some(name)
                && other.metadata.deletion_timestamp.is_none()
                && status.is_none_or(|status| status.ready_to_use != Some(true) && status.error.is_none())
        };
        if self.seen.snapshots.in_namespace(&key.namespace).iter().any(busy) {
            return Ok(());
        }
        let Some(claim) = self.seen.claims.get(&Key::new(&key.namespace, name)) else { return Ok(()) };
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &key.namespace);
        protect(&claims, &claim, CLAIM_AS_SOURCE, false).await.map(drop)
    }

    async fn delete_snapshot(
        &self,
        api: &Api<VolumeSnapshot>,
        snapshot: &VolumeSnapshot,
        content: Option<&VolumeSnapshotContent>,
    ) -> Result<()> {
        let key = Key::of(snapshot);
        if self.is_being_restored(&key) {
            let message = "Snapshot is being used to restore a PVC".to_owned();
            self.events.report(snapshot, Weight::Warning, "SnapshotDeletePending", message);
            return Ok(());
        }
        self.release_claim(&key, snapshot).await?;
        let own = |content: &&VolumeSnapshotContent| content.spec.volume_snapshot_ref.uid == snapshot.metadata.uid;
        if let Some(content) = content.filter(own) {
            let annotations = content.metadata.annotations.clone().unwrap_or_default();
            if !annotations.contains_key(BEING_DELETED) {
                let change = json!({"metadata": {"annotations": {BEING_DELETED: "yes"}}});
                return patch(&self.contents(), content, change).await;
            }
            if content.spec.deletion_policy == "Delete" {
                if content.metadata.deletion_timestamp.is_none() {
                    let name = content.metadata.name.as_deref().unwrap_or_default();
                    gone_is_fine(self.contents().delete(name, &DeleteParams::default()).await)?;
                }
                // Its end brings the next look.
                return Ok(());
            }
        }
        let mut finalizers = snapshot.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != AS_SOURCE && finalizer != BOUND);
        patch(api, snapshot, json!({"metadata": {"finalizers": finalizers}})).await
    }

    fn is_being_restored(&self, key: &Key) -> bool {
        let claims = self.seen.claims.in_namespace(&key.namespace);
        claims.iter().any(|claim| {
            let source = claim.spec.as_ref().and_then(|spec| spec.data_source.as_ref());
            let pending = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending");
            pending && source.is_some_and(|source| source.kind == "VolumeSnapshot" && source.name == key.name)
        })
    }
}

fn content_name(snapshot: &VolumeSnapshot) -> String {
    match &snapshot.spec.source.volume_snapshot_content_name {
        Some(name) => name.clone(),
        None => format!("snapcontent-{}", snapshot.metadata.uid.as_deref().unwrap_or_default()),
    }
}

fn snapshot_of(content: &VolumeSnapshotContent) -> Key {
    let reference = &content.spec.volume_snapshot_ref;
    Key::new(reference.namespace.as_deref().unwrap_or_default(), reference.name.as_deref().unwrap_or_default())
}

fn content(snapshot: &VolumeSnapshot, class: &VolumeSnapshotClass, volume: &PersistentVolume) -> VolumeSnapshotContent {
    VolumeSnapshotContent {
        types: Some(TypeMeta::resource::<VolumeSnapshotContent>()),
        metadata: ObjectMeta {
            name: Some(content_name(snapshot)),
            finalizers: Some(vec![CONTENT.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: ContentSpec {
            deletion_policy: class.deletion_policy.clone(),
            driver: class.driver.clone(),
            source: ContentSource { volume_handle: volume.metadata.name.clone(), snapshot_handle: None },
            source_volume_mode: volume.spec.as_ref().and_then(|spec| spec.volume_mode.clone()),
            volume_snapshot_class_name: class.metadata.name.clone(),
            volume_snapshot_ref: snapshot.object_ref(&()),
        },
        status: None,
    }
}

/// What a snapshot says of its content.
fn status_of(content: &VolumeSnapshotContent) -> SnapshotStatus {
    let status = content.status.clone().unwrap_or_default();
    let time = |nanoseconds: i64| {
        let seconds = Timestamp::from_second(nanoseconds / 1_000_000_000);
        seconds.ok().map(Time)
    };
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
        let content = json!(content(&snapshot(), &class, &serde_json::from_value(volume).unwrap()));
        assert_eq!(content["metadata"]["name"], "snapcontent-u");
        assert_eq!(content["spec"]["source"], json!({"volumeHandle": "pvc-1"}));
        assert_eq!(content["spec"]["volumeSnapshotRef"]["kind"], "VolumeSnapshot");
        assert_eq!(content["apiVersion"], "snapshot.storage.k8s.io/v1");
    }

    #[test]
    fn a_snapshot_says_what_its_content_says_in_its_own_units() {
        let mut content = VolumeSnapshotContent::default();
        content.metadata.name = Some("c".to_owned());
        assert_eq!(json!(status_of(&content)), json!({"boundVolumeSnapshotContentName": "c", "readyToUse": false}));
        let status = json!({"creationTime": 1_700_000_000_500_000_000_i64, "readyToUse": true, "restoreSize": 1 << 30});
        content.status = serde_json::from_value(status).unwrap();
        let wanted = json!({"boundVolumeSnapshotContentName": "c", "creationTime": "2023-11-14T22:13:20Z",
                            "readyToUse": true, "restoreSize": "1Gi"});
        assert_eq!(json!(status_of(&content)), wanted);
    }
}
