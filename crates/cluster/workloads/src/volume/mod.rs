//! Claims and volumes: binding, the provisioner of the class `local`, reclaiming, and the protection of what is in use.

mod binding;
mod copy;
pub(crate) mod local;
pub(crate) mod quantity;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use self::binding::{BIND_COMPLETED, BOUND_BY_CONTROLLER, ForClaim, ForVolume};
use self::local::{PROVISIONER, Storage};
use crate::cache::Cache;
use crate::error::{Error, Result, gone_is_fine};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::pod;
use crate::queue::{self, Queue};
use crate::snapshot::source;
use crate::snapshot::types::{VolumeSnapshot, VolumeSnapshotContent};

const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// Who is to make the volume of a claim; the older name is still read by provisioners.
const ASKED: [&str; 2] = ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];

/// What the controllers of storage look at.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    pub(crate) claims: Arc<Cache<PersistentVolumeClaim>>,
    pub(crate) volumes: Arc<Cache<PersistentVolume>>,
    pub(crate) classes: Arc<Cache<StorageClass>>,
    pub(crate) pods: Arc<Cache<Pod>>,
    pub(crate) snapshots: Arc<Cache<VolumeSnapshot>>,
    pub(crate) contents: Arc<Cache<VolumeSnapshotContent>>,
}

pub(crate) struct Controller {
    client: Client,
    seen: Seen,
    storage: Storage,
    /// Claims by namespace and name, volumes by name alone.
    queue: Arc<Queue>,
    events: Events,
}

impl Controller {
    pub(crate) fn new(client: Client, seen: Seen, storage: Storage, events: &Events) -> Arc<Self> {
        let events = events.of("persistentvolume-controller");
        let controller = Arc::new(Self { client, seen, storage, queue: Arc::default(), events });
        controller.seen.claims.observe(&controller, Self::claim_changed);
        controller.seen.volumes.observe(&controller, Self::volume_changed);
        controller.seen.classes.observe(&controller, |controller, _, _| controller.wake_unbound(|_| true));
        controller.seen.pods.observe(&controller, Self::pod_changed);
        controller.seen.snapshots.observe(&controller, |controller, before, after| {
            let namespace = before.or(after).and_then(|snapshot| snapshot.metadata.namespace.clone());
            controller.wake_unbound(|claim| claim.metadata.namespace == namespace);
        });
        controller
    }

    pub(crate) async fn run(self: Arc<Self>) {
        self.seen.claims.synced().await;
        self.seen.volumes.synced().await;
        self.seen.classes.synced().await;
        self.seen.pods.synced().await;
        queue::work("volume", self.queue.clone(), None, |key| self.look(key)).await;
    }

    fn claim_changed(&self, before: Option<&Arc<PersistentVolumeClaim>>, after: Option<&Arc<PersistentVolumeClaim>>) {
        let Some(claim) = after.or(before) else { return };
        self.queue.add(Key::of(&**claim));
        if let Some(volume) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) {
            self.queue.add(Key::cluster(volume));
        }
    }

    fn volume_changed(&self, before: Option<&Arc<PersistentVolume>>, after: Option<&Arc<PersistentVolume>>) {
        let Some(volume) = after.or(before) else { return };
        self.queue.add(Key::of(&**volume));
        match binding::claim_of(volume) {
            Some(claim) => {
                let of = |text: &Option<String>| text.clone().unwrap_or_default();
                self.queue.add(Key { namespace: of(&claim.namespace), name: of(&claim.name) });
            }
            None => self.wake_unbound(|_| true),
        }
    }

    /// A claim that is to go waits for the pods that use it.
    fn pod_changed(&self, before: Option<&Arc<Pod>>, after: Option<&Arc<Pod>>) {
        let Some(pod) = after.or(before).filter(|pod| after.is_none() || pod::is_finished(pod)) else { return };
        for claim in claims_of(pod) {
            self.queue.add(Key::new(pod.metadata.namespace.as_deref().unwrap_or_default(), claim));
        }
    }

    fn wake_unbound(&self, which: impl Fn(&PersistentVolumeClaim) -> bool) {
        for claim in self.seen.claims.all() {
            if binding::annotation(&*claim, BIND_COMPLETED).is_none() && which(&claim) {
                self.queue.add(Key::of(&*claim));
            }
        }
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        if key.namespace.is_empty() {
            if let Some(volume) = self.seen.volumes.get(&key) {
                self.look_at_volume(&volume).await?;
            }
        } else if let Some(claim) = self.seen.claims.get(&key) {
            self.look_at_claim(&claim).await?;
        }
        Ok(None)
    }

    fn claims(&self, claim: &PersistentVolumeClaim) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), claim.metadata.namespace.as_deref().unwrap_or_default())
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.client.clone())
    }

    async fn look_at_claim(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        if claim.metadata.deletion_timestamp.is_some() {
            if !self.is_used(claim) {
                protect(&self.claims(claim), claim, CLAIM_PROTECTION, false).await?;
            }
            return Ok(());
        }
        if protect(&self.claims(claim), claim, CLAIM_PROTECTION, true).await? || self.give_default_class(claim).await? {
            // The change brings the next look.
            return Ok(());
        }
        let class = self.seen.classes.get(&Key::cluster(binding::class_of_claim(claim)));
        let volumes: Vec<PersistentVolume> = self.seen.volumes.all().iter().map(|volume| (**volume).clone()).collect();
        match binding::for_claim(claim, class.as_deref(), &volumes) {
            ForClaim::Wait(note) => {
                if let Some((weight, reason, message)) = note {
                    self.events.report(claim, weight, reason, message.to_owned());
                }
                self.set_claim_status(claim, json!({"phase": "Pending"})).await?;
            }
            ForClaim::Lost((weight, reason, message)) => {
                if self.set_claim_status(claim, json!({"phase": "Lost"})).await? {
                    self.events.report(claim, weight, reason, message.to_owned());
                }
            }
            ForClaim::Bind(volume) => self.bind(claim, &volume).await?,
            ForClaim::Provision => self.provision(claim, class.as_deref()).await?,
        }
        Ok(())
    }

    fn is_used(&self, claim: &PersistentVolumeClaim) -> bool {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let pods = self.seen.pods.in_namespace(claim.metadata.namespace.as_deref().unwrap_or_default());
        pods.iter()
            .any(|pod| !pod::node(pod).is_empty() && !pod::is_finished(pod) && claims_of(pod).any(|used| used == name))
    }

    /// A claim that names no class gets the default one, also if that came later. Whether it got one.
    async fn give_default_class(&self, claim: &PersistentVolumeClaim) -> Result<bool> {
        let spec = claim.spec.clone().unwrap_or_default();
        if spec.storage_class_name.is_some() || spec.volume_name.is_some_and(|name| !name.is_empty()) {
            return Ok(false);
        }
        let mut classes = self.seen.classes.all();
        classes.retain(|class| binding::annotation(&**class, DEFAULT_CLASS) == Some("true"));
        let Some(class) = classes.into_iter().max_by_key(|class| class.metadata.creation_timestamp.clone()) else {
            return Ok(false);
        };
        patch(&self.claims(claim), claim, json!({"spec": {"storageClassName": class.metadata.name}})).await?;
        Ok(true)
    }

    /// Four writes in the native order; each is left out if it is done already.
    async fn bind(&self, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<()> {
        let uid = binding::claim_of(volume).and_then(|reference| reference.uid.as_ref());
        if uid != claim.metadata.uid.as_ref() {
            let mut change = json!({"spec": {"claimRef": claim.object_ref(&())}});
            if binding::claim_of(volume).is_none() {
                change["metadata"] = json!({"annotations": {BOUND_BY_CONTROLLER: "yes"}});
            }
            patch(&self.volumes(), volume, change).await?;
        }
        self.set_phase(volume, "Bound").await?;
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) == Some(name);
        if !named || binding::annotation(claim, BIND_COMPLETED).is_none() {
            let mut annotations = json!({BIND_COMPLETED: "yes"});
            if !named {
                annotations[BOUND_BY_CONTROLLER] = json!("yes");
            }
            let change = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": name}});
            patch(&self.claims(claim), claim, change).await?;
        }
        let spec = volume.spec.clone().unwrap_or_default();
        let status = json!({"phase": "Bound", "accessModes": spec.access_modes, "capacity": spec.capacity});
        self.set_claim_status(claim, status).await?;
        Ok(())
    }

    /// Whether that changed anything.
    async fn set_claim_status(&self, claim: &PersistentVolumeClaim, status: Value) -> Result<bool> {
        let has = json!(claim.status.clone().unwrap_or_default());
        let same =
            status.as_object().is_some_and(|fields| fields.iter().all(|(key, value)| has.get(key) == Some(value)));
        if !same {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let change = Patch::Merge(json!({"status": status}));
            self.claims(claim).patch_status(name, &PatchParams::default(), &change).await?;
        }
        Ok(!same)
    }

    async fn set_phase(&self, volume: &PersistentVolume, phase: &str) -> Result<()> {
        if volume.status.as_ref().and_then(|status| status.phase.as_deref()) != Some(phase) {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            let change = Patch::Merge(json!({"status": {"phase": phase}}));
            self.volumes().patch_status(name, &PatchParams::default(), &change).await?;
        }
        Ok(())
    }

    async fn provision(&self, claim: &PersistentVolumeClaim, class: Option<&StorageClass>) -> Result<()> {
        self.set_claim_status(claim, json!({"phase": "Pending"})).await?;
        let Some(class) = class else {
            let message = format!("storageclass.storage.k8s.io \"{}\" not found", binding::class_of_claim(claim));
            self.events.report(claim, Weight::Warning, "ProvisioningFailed", message);
            return Ok(());
        };
        let provisioner = class.provisioner.as_str();
        if ASKED.iter().any(|key| binding::annotation(claim, key) != Some(provisioner)) {
            let annotations = json!({ASKED[0]: provisioner, ASKED[1]: provisioner});
            return patch(&self.claims(claim), claim, json!({"metadata": {"annotations": annotations}})).await;
        }
        if provisioner != PROVISIONER {
            let message = format!(
                "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by \
                 the system administrator. If volume creation is delayed, please verify that the provisioner is \
                 running and correctly registered."
            );
            self.events.report(claim, Weight::Normal, "ExternalProvisioning", message);
            return Ok(());
        }
        let (events, key) = (self.events.of(PROVISIONER), Key::of(claim));
        let message = format!("External provisioner is provisioning volume for claim \"{key}\"");
        events.report(claim, Weight::Normal, "Provisioning", message);
        match self.provision_locally(claim, class).await {
            Ok(name) => {
                let message = format!("Successfully provisioned volume {name}");
                events.report(claim, Weight::Normal, "ProvisioningSucceeded", message);
                Ok(())
            }
            Err(error) => {
                let class = class.metadata.name.as_deref().unwrap_or_default();
                let message = format!("failed to provision volume with StorageClass \"{class}\": {error}");
                events.report(claim, Weight::Warning, "ProvisioningFailed", message);
                Err(error)
            }
        }
    }

    async fn provision_locally(&self, claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<String> {
        if claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref()) == Some("Block") {
            return Err(Error::Other("block volumes are not supported: a claim is a directory".to_owned()));
        }
        let from = source::find(claim, &self.seen, &self.storage)?;
        let name = local::volume_name(claim);
        self.storage.make_volume(&name, from).await?;
        let volume = local::volume(claim, class, &self.storage);
        match self.volumes().create(&PostParams::default(), &volume).await.map_err(Error::from) {
            Err(error) if !error.already_exists() => Err(error),
            Ok(_) | Err(_) => Ok(name),
        }
    }

    async fn look_at_volume(&self, volume: &PersistentVolume) -> Result<()> {
        let goes = volume.metadata.deletion_timestamp.is_some();
        if !goes && protect(&self.volumes(), volume, VOLUME_PROTECTION, true).await? {
            return Ok(());
        }
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        let claim =
            binding::claim_of(volume).map(|claim| Key { namespace: of(&claim.namespace), name: of(&claim.name) });
        let claim = claim.and_then(|key| self.seen.claims.get(&key));
        let mut bound = false;
        match binding::for_volume(volume, claim.as_deref()) {
            ForVolume::Nothing => {}
            ForVolume::Phase(phase) => {
                bound = phase == "Bound";
                self.set_phase(volume, phase).await?;
            }
            ForVolume::ReleaseAndDelete => {
                self.set_phase(volume, "Released").await?;
                // Other provisioners delete what they made.
                if local::is_local(volume) {
                    self.reclaim(volume).await?;
                }
            }
        }
        if goes && !bound {
            protect(&self.volumes(), volume, VOLUME_PROTECTION, false).await?;
        }
        Ok(())
    }

    async fn reclaim(&self, volume: &PersistentVolume) -> Result<()> {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        if let Err(error) = self.storage.remove_volume(name).await {
            self.events.report(volume, Weight::Warning, "VolumeFailedDelete", error.to_string());
            return Err(error);
        }
        if volume.metadata.deletion_timestamp.is_none() {
            gone_is_fine(self.volumes().delete(name, &DeleteParams::default()).await)?;
        }
        Ok(())
    }
}

fn claims_of(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str()))
}

/// Sets or takes away a finalizer; whether that changed anything.
pub(crate) async fn protect<K>(api: &Api<K>, object: &K, finalizer: &str, wanted: bool) -> Result<bool>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
    if finalizers.iter().any(|other| other == finalizer) == wanted {
        return Ok(false);
    }
    if wanted {
        finalizers.push(finalizer.to_owned());
    } else {
        finalizers.retain(|other| other != finalizer);
    }
    patch(api, object, json!({"metadata": {"finalizers": finalizers}})).await?;
    Ok(true)
}

/// A merge patch, held to the version that was seen. That the object is gone is fine.
pub(crate) async fn patch<K>(api: &Api<K>, seen: &K, mut change: Value) -> Result<()>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    change["metadata"]["resourceVersion"] = json!(seen.meta().resource_version);
    let name = seen.meta().name.as_deref().unwrap_or_default();
    gone_is_fine(api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await)
}
