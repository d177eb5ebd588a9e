//! Deployments: the template's ReplicaSet grows, the others shrink, as the strategy says.

mod numbers;
mod proportion;
mod revision;
mod rollout;
mod status;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};

use self::rollout::{Plan, Step};
use crate::cache::Cache;
use crate::error::{Error, Result, gone_is_fine};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::ownership::{self, Claim};
use crate::queue::{self, Queue};

/// After so many failures a Deployment is left alone until something changes, as the native controller does.
const RETRIES: u32 = 15;

pub(crate) struct Controller {
    client: Client,
    deployments: Arc<Cache<Deployment>>,
    sets: Arc<Cache<ReplicaSet>>,
    pods: Arc<Cache<Pod>>,
    queue: Arc<Queue>,
    events: Events,
}

impl Controller {
    pub(crate) fn new(
        client: Client,
        deployments: Arc<Cache<Deployment>>,
        sets: Arc<Cache<ReplicaSet>>,
        pods: Arc<Cache<Pod>>,
        events: &Events,
    ) -> Arc<Self> {
        let events = events.of("deployment-controller");
        let controller = Arc::new(Self { client, deployments, sets, pods, queue: Arc::default(), events });
        controller.deployments.observe(&controller, Self::deployment_changed);
        controller.sets.observe(&controller, Self::set_changed);
        controller.pods.observe(&controller, Self::pod_changed);
        controller
    }

    pub(crate) async fn run(self: Arc<Self>) {
        self.deployments.synced().await;
        self.sets.synced().await;
        self.pods.synced().await;
        queue::work("deployment", self.queue.clone(), Some(RETRIES), |key| self.look(key)).await;
    }

    fn deployment_changed(&self, _: Option<&Arc<Deployment>>, after: Option<&Arc<Deployment>>) {
        if let Some(deployment) = after {
            self.queue.add(Key::of(&**deployment));
        }
    }

    fn set_changed(&self, before: Option<&Arc<ReplicaSet>>, after: Option<&Arc<ReplicaSet>>) {
        let owners = [before, after].map(|set| set.and_then(|set| self.owner(set)));
        for owner in owners.into_iter().flatten() {
            self.queue.add(owner);
        }
        if let Some(set) = after.filter(|set| ownership::controller_of(&set.metadata).is_none()) {
            self.wake_those_that_may_adopt(set);
        }
    }

    /// A pod that is gone matters to those who recreate: the last one opens the way for the new.
    fn pod_changed(&self, before: Option<&Arc<Pod>>, after: Option<&Arc<Pod>>) {
        let (Some(pod), None) = (before, after) else { return };
        let Some(controller) = ownership::controller_of(&pod.metadata) else { return };
        let key = Key::new(pod.metadata.namespace.as_deref().unwrap_or_default(), &controller.name);
        let Some(owner) = self.sets.get(&key).and_then(|set| self.owner(&set)) else { return };
        if self.deployments.get(&owner).is_some_and(|deployment| !numbers::is_rolling(&deployment)) {
            self.queue.add(owner);
        }
    }

    fn owner(&self, set: &ReplicaSet) -> Option<Key> {
        let controller = ownership::controller_of(&set.metadata).filter(|owner| owner.kind == Deployment::kind(&()))?;
        let key = Key::new(set.metadata.namespace.as_deref()?, &controller.name);
        let same = |deployment: &Arc<Deployment>| deployment.metadata.uid.as_ref() == Some(&controller.uid);
        self.deployments.get(&key).filter(same).map(|_| key)
    }

    fn wake_those_that_may_adopt(&self, set: &ReplicaSet) {
        for deployment in self.deployments.in_namespace(set.metadata.namespace.as_deref().unwrap_or_default()) {
            let selector = deployment.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
            let selector = ownership::selector(&selector);
            if selector.is_ok_and(|selector| !selector.selects_all() && ownership::selects(&selector, &set.metadata)) {
                self.queue.add(Key::of(&*deployment));
            }
        }
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        let Some(deployment) = self.deployments.get(&key) else { return Ok(None) };
        let mut deployment = (*deployment).clone();
        let mut sets = self.claim(&deployment).await?;
        let pods = self.pods.in_namespace(&key.namespace);
        loop {
            let Plan { steps, again } = rollout::plan(deployment.clone(), sets.clone(), &pods, Timestamp::now());
            match self.act(&mut deployment, steps).await? {
                Some(created) => sets.push(created),
                None => return Ok(again),
            }
        }
    }

    /// The ReplicaSets that are the Deployment's own, after adoption and release.
    async fn claim(&self, deployment: &Deployment) -> Result<Vec<ReplicaSet>> {
        let selector = deployment.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default();
        let selector = ownership::selector(&selector)?;
        if selector.selects_all() {
            return Ok(Vec::new());
        }
        let namespace = deployment.metadata.namespace.as_deref().unwrap_or_default();
        let api = self.sets_of(deployment);
        let mut own = Vec::new();
        for set in self.sets.in_namespace(namespace) {
            let name = set.metadata.name.as_deref().unwrap_or_default();
            match ownership::claim(deployment, &selector, &set.metadata) {
                Claim::Mine => own.push((*set).clone()),
                Claim::NotMine => {}
                Claim::Adopt => {
                    let deployments = self.deployments_of(deployment);
                    let name_of_owner = deployment.metadata.name.as_deref().unwrap_or_default();
                    let fresh = deployments.get(name_of_owner).await?.metadata;
                    if fresh.uid == deployment.metadata.uid && fresh.deletion_timestamp.is_none() {
                        let patch = Patch::Strategic(ownership::adoption(deployment, &set.metadata));
                        own.push(api.patch(name, &PatchParams::default(), &patch).await?);
                    }
                }
                Claim::Release => {
                    let patch = Patch::Strategic(ownership::release(deployment, &set.metadata));
                    gone_is_fine(api.patch(name, &PatchParams::default(), &patch).await)?;
                }
            }
        }
        Ok(own)
    }

    fn deployments_of(&self, deployment: &Deployment) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), deployment.metadata.namespace.as_deref().unwrap_or_default())
    }

    fn sets_of(&self, deployment: &Deployment) -> Api<ReplicaSet> {
        Api::namespaced(self.client.clone(), deployment.metadata.namespace.as_deref().unwrap_or_default())
    }

    /// Takes the steps one by one; a new ReplicaSet, if one was among them.
    async fn act(&self, deployment: &mut Deployment, steps: Vec<Step>) -> Result<Option<ReplicaSet>> {
        let sets = self.sets_of(deployment);
        let mut versions: HashMap<String, Option<String>> = HashMap::new();
        for step in steps {
            match step {
                Step::WriteStatus(wanted) => self.write_status(deployment, *wanted).await?,
                Step::Replace(mut set) => {
                    let name = set.metadata.name.clone().unwrap_or_default();
                    if let Some(version) = versions.get(&name) {
                        set.metadata.resource_version.clone_from(version);
                    }
                    let set = sets.replace(&name, &PostParams::default(), &set).await?;
                    versions.insert(name, set.metadata.resource_version);
                }
                Step::Delete(name) => gone_is_fine(sets.delete(&name, &DeleteParams::default()).await)?,
                Step::Tell(weight, reason, message) => self.events.report(deployment, weight, reason, message),
                Step::Create(set) => return self.create(deployment, &set).await.map(Some),
            }
        }
        Ok(None)
    }

    /// Like the native controller, goes on with the version it had: a second write in the same look is refused as a
    /// conflict, and the next look, which sees what was written, decides anew. Which reasons a rollout shows hangs on it.
    async fn write_status(&self, deployment: &mut Deployment, wanted: Deployment) -> Result<()> {
        let name = wanted.metadata.name.clone().unwrap_or_default();
        self.deployments_of(&wanted).replace_status(&name, &PostParams::default(), &wanted).await?;
        *deployment = wanted;
        Ok(())
    }

    async fn create(&self, deployment: &mut Deployment, set: &ReplicaSet) -> Result<ReplicaSet> {
        let sets = self.sets_of(deployment);
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let (created, already_there) = match sets.create(&PostParams::default(), set).await.map_err(Error::from) {
            Ok(created) => (created, false),
            Err(error) if error.already_exists() => (self.own_or_collision(deployment, set, error).await?, true),
            Err(error) if error.namespace_is_terminating() => return Err(error),
            Err(error) => {
                let message = format!("Failed to create new replica set \"{name}\": {error}");
                if let Some(failed) = rollout::note_failed_creation(deployment, &message, Timestamp::now()) {
                    // The failure itself matters more than that it could not be noted.
                    let _ = self.write_status(deployment, failed).await;
                }
                self.events.report(deployment, Weight::Warning, status::NOT_CREATED, message);
                return Err(error);
            }
        };
        let size = numbers::size(&created);
        if !already_there && size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            self.events.report(deployment, Weight::Normal, "ScalingReplicaSet", message);
        }
        let mut noted = deployment.clone();
        if rollout::note_creation(&mut noted, &created, already_there, Timestamp::now()) {
            self.write_status(deployment, noted).await?;
        }
        Ok(created)
    }

    /// The name is taken: by our own ReplicaSet that the cache did not show yet, or by another template with the same
    /// hash. Then the next hash is another one.
    async fn own_or_collision(
        &self,
        deployment: &mut Deployment,
        set: &ReplicaSet,
        error: Error,
    ) -> Result<ReplicaSet> {
        let there = self.sets_of(deployment).get(set.metadata.name.as_deref().unwrap_or_default()).await?;
        let template = |set: &ReplicaSet| set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
        let same = revision::same_but_hash(&template(&there), &template(set));
        if same && ownership::is_controlled_by(&there.metadata, deployment) {
            return Ok(there);
        }
        let mut collided = deployment.clone();
        *collided.status.get_or_insert_default().collision_count.get_or_insert(0) += 1;
        self.write_status(deployment, collided).await?;
        Err(error)
    }
}
