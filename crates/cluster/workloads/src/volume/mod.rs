//! Claims and volumes: binding, the provisioner of the class `local`, reclaiming, and the protection of what is in use.

mod binding;
mod copy;
pub(crate) mod local;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::select_all;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::DeleteParams;
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use self::binding::{BIND_COMPLETED, BOUND_BY_CONTROLLER, ForClaim, ForVolume};
use self::local::PROVISIONER;
use crate::cache::Change;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::snapshot::source;
use crate::write::{create, gone_is_fine, patch, patch_status, protect, there_is_fine};
use crate::{pod, queue};

const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// Who is to make the volume of a claim; the older name is still read by provisioners.
const ASKED: [&str; 2] = ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];

pub(crate) struct Controller {
    cluster: Arc<Cluster>,
    events: Events,
}

impl Controller {
    /// Claims are looked at by namespace and name, volumes by name alone.
    pub(crate) async fn run(cluster: Arc<Cluster>) {
        let events = cluster.events.of("persistentvolume-controller", None);
        let controller = Self { cluster, events };
        let wakes = select_all([
            controller.cluster.claims.wakes(|change| {
                let volume = change.latest().spec.as_ref().and_then(|spec| spec.volume_name.clone());
                [change.key()].into_iter().chain(volume.map(Key::cluster)).collect()
            }),
            controller.cluster.volumes.wakes(|change| controller.volume_changed(&change)),
            controller.cluster.classes.wakes(|_| controller.unbound(|_| true)),
            controller.cluster.pods.wakes(|change| pod_changed(&change)),
            controller.cluster.snapshots.wakes(|change| {
                let namespace = change.latest().namespace();
                controller.unbound(|claim| claim.metadata.namespace == namespace)
            }),
        ]);
        queue::work("volume", u32::MAX, wakes, |key| controller.look(key)).await;
    }

    fn volume_changed(&self, change: &Change<PersistentVolume>) -> Vec<Key> {
        let claims = match binding::claim_of(change.latest()) {
            Some(claim) => vec![claim],
            None => self.unbound(|_| true),
        };
        [vec![change.key()], claims].concat()
    }

    fn unbound(&self, which: impl Fn(&PersistentVolumeClaim) -> bool) -> Vec<Key> {
        let mut claims = self.cluster.claims.all();
        claims.retain(|claim| !claim.annotations().contains_key(BIND_COMPLETED) && which(claim));
        claims.iter().map(|claim| Key::of(&**claim)).collect()
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        if key.namespace.is_empty() {
            if let Some(volume) = self.cluster.volumes.get(&key) {
                self.look_at_volume(&volume).await?;
            }
        } else if let Some(claim) = self.cluster.claims.get(&key) {
            self.look_at_claim(&claim).await?;
        }
        Ok(None)
    }

    fn claims(&self, claim: &PersistentVolumeClaim) -> Api<PersistentVolumeClaim> {
        self.cluster.api(&claim.namespace().unwrap_or_default())
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.cluster.client.clone())
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
        let class = self.cluster.classes.get(&Key::cluster(binding::class_of_claim(claim)));
        match binding::for_claim(claim, class.as_deref(), &self.cluster.volumes.all()) {
            ForClaim::Wait(note) => {
                if let Some((weight, reason, message)) = note {
                    self.events.report(claim, weight, reason, message);
                }
                self.set_claim_status(claim, json!({"phase": "Pending"})).await?;
            }
            ForClaim::Lost(reason, message) => {
                if self.set_claim_status(claim, json!({"phase": "Lost"})).await? {
                    self.events.report(claim, Weight::Warning, reason, message);
                }
            }
            ForClaim::Bind(volume) => self.bind(claim, &volume).await?,
            ForClaim::Provision => self.provision(claim, class.as_deref()).await?,
        }
        Ok(())
    }

    fn is_used(&self, claim: &PersistentVolumeClaim) -> bool {
        let Key { namespace, name } = Key::of(claim);
        let uses = |pod: &Pod| {
            !pod::node(pod).is_empty() && !pod::is_finished(pod) && pod::claims(pod).any(|used| used == name)
        };
        self.cluster.pods.in_namespace(&namespace).iter().any(|pod| uses(pod))
    }

    /// A claim that names no class gets the default one, also if that came later. Whether it got one.
    async fn give_default_class(&self, claim: &PersistentVolumeClaim) -> Result<bool> {
        let spec = claim.spec.clone().unwrap_or_default();
        if spec.storage_class_name.is_some() || spec.volume_name.is_some_and(|name| !name.is_empty()) {
            return Ok(false);
        }
        let mut classes = self.cluster.classes.all();
        classes.retain(|class| class.annotations().get(DEFAULT_CLASS).is_some_and(|is| is == "true"));
        let youngest = classes.into_iter().max_by_key(|class| class.creation_timestamp());
        let Some(class) = youngest else { return Ok(false) };
        patch(&self.claims(claim), claim, json!({"spec": {"storageClassName": class.name_any()}})).await?;
        Ok(true)
    }

    /// Four writes in the native order; each is left out if it is done already.
    async fn bind(&self, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<()> {
        let spec = volume.spec.clone().unwrap_or_default();
        if spec.claim_ref.as_ref().and_then(|reference| reference.uid.as_ref()) != claim.metadata.uid.as_ref() {
            let mut change = json!({"spec": {"claimRef": claim.object_ref(&())}});
            if spec.claim_ref.is_none() {
                change["metadata"] = json!({"annotations": {BOUND_BY_CONTROLLER: "yes"}});
            }
            patch(&self.volumes(), volume, change).await?;
        }
        self.set_phase(volume, "Bound").await?;
        let name = volume.name_any();
        let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()) == Some(&name);
        if !named || !claim.annotations().contains_key(BIND_COMPLETED) {
            let mut annotations = json!({BIND_COMPLETED: "yes"});
            if !named {
                annotations[BOUND_BY_CONTROLLER] = json!("yes");
            }
            let change = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": name}});
            patch(&self.claims(claim), claim, change).await?;
        }
        let status = json!({"phase": "Bound", "accessModes": spec.access_modes, "capacity": spec.capacity});
        self.set_claim_status(claim, status).await?;
        Ok(())
    }

    /// Whether that changed anything.
    async fn set_claim_status(&self, claim: &PersistentVolumeClaim, status: Value) -> Result<bool> {
        let has = json!(claim.status);
        let differs = status.as_object().into_iter().flatten().any(|(key, value)| has.get(key) != Some(value));
        if differs {
            patch_status(&self.claims(claim), claim, status).await?;
        }
        Ok(differs)
    }

    async fn set_phase(&self, volume: &PersistentVolume, phase: &str) -> Result<()> {
        if volume.status.as_ref().and_then(|status| status.phase.as_deref()) != Some(phase) {
            patch_status(&self.volumes(), volume, json!({"phase": phase})).await?;
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
        if ASKED.iter().any(|key| claim.annotations().get(*key).is_none_or(|asked| asked != provisioner)) {
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
        let (events, key) = (self.events.of(PROVISIONER, None), Key::of(claim));
        let message = format!("External provisioner is provisioning volume for claim \"{key}\"");
        events.report(claim, Weight::Normal, "Provisioning", message);
        match self.provision_locally(claim, class).await {
            Ok(name) => {
                let message = format!("Successfully provisioned volume {name}");
                events.report(claim, Weight::Normal, "ProvisioningSucceeded", message);
                Ok(())
            }
            Err(error) => {
                let class = class.name_any();
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
        let storage = &self.cluster.storage;
        let name = local::volume_name(claim);
        storage.make_volume(&name, source::find(claim, &self.cluster)?).await?;
        let volume = local::volume(claim, class, storage);
        there_is_fine(create::<PersistentVolume>(&self.cluster.client, volume).await)?;
        Ok(name)
    }

    async fn look_at_volume(&self, volume: &PersistentVolume) -> Result<()> {
        let goes = volume.metadata.deletion_timestamp.is_some();
        if !goes && protect(&self.volumes(), volume, VOLUME_PROTECTION, true).await? {
            return Ok(());
        }
        let claim = binding::claim_of(volume).and_then(|key| self.cluster.claims.get(&key));
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
        let name = volume.name_any();
        if let Err(error) = self.cluster.storage.remove_volume(&name).await {
            self.events.report(volume, Weight::Warning, "VolumeFailedDelete", error.to_string());
            return Err(error);
        }
        if volume.metadata.deletion_timestamp.is_none() {
            gone_is_fine(self.volumes().delete(&name, &DeleteParams::default()).await)?;
        }
        Ok(())
    }
}

/// A claim that is to go waits for the pods that use it.
fn pod_changed(change: &Change<Pod>) -> Vec<Key> {
    let pod = change.latest();
    let ended = change.after.is_none() || pod::is_finished(pod);
    pod::claims(pod).filter(|_| ended).map(|claim| Key::beside(&**pod, claim)).collect()
}
