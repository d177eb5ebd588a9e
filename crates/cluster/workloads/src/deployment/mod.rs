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

use futures::stream::select_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};

use self::rollout::{Plan, Step};
use crate::cache::Change;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::write::gone_is_fine;
use crate::{ownership, queue};

/// After so many failures a Deployment is left alone until something changes, as the native controller does.
const RETRIES: u32 = 15;

pub(crate) struct Controller {
    cluster: Arc<Cluster>,
    events: Events,
}

impl Controller {
    pub(crate) async fn run(cluster: Arc<Cluster>) {
        let events = cluster.events.of("deployment-controller", None);
        let controller = Self { cluster, events };
        let wakes = select_all([
            controller.cluster.deployments.wakes(|change| vec![change.key()]),
            controller.cluster.sets.wakes(|change| controller.set_changed(&change)),
            controller.cluster.pods.wakes(|change| controller.pod_changed(&change)),
        ]);
        queue::work("deployment", RETRIES, wakes, |key| controller.look(key)).await;
    }

    fn set_changed(&self, change: &Change<ReplicaSet>) -> Vec<Key> {
        let sets = change.before.iter().chain(&change.after);
        let owners = sets.filter_map(|set| ownership::owner(&self.cluster.deployments, &**set));
        let mut wake: Vec<Key> = owners.map(|owner| Key::of(&*owner)).collect();
        if let Some(orphan) = change.after.as_ref().filter(|set| ownership::controller_of(&***set).is_none()) {
            wake.extend(ownership::possible_owners(&self.cluster.deployments, &**orphan));
        }
        wake
    }

    /// A pod that is gone matters to those who recreate: the last one opens the way for the new.
    fn pod_changed(&self, change: &Change<Pod>) -> Vec<Key> {
        let gone = change.before.as_ref().filter(|_| change.after.is_none());
        let set = gone.and_then(|pod| ownership::owner(&self.cluster.sets, &**pod));
        let owner = set.and_then(|set| ownership::owner(&self.cluster.deployments, &*set));
        owner.filter(|owner| !numbers::is_rolling(owner)).map(|owner| Key::of(&*owner)).into_iter().collect()
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        let Some(deployment) = self.cluster.deployments.get(&key) else { return Ok(None) };
        let mut deployment = (*deployment).clone();
        let sets = self.cluster.sets.in_namespace(&key.namespace);
        let sets = ownership::claim_all(&self.cluster, &deployment, sets).await?;
        let mut sets: Vec<ReplicaSet> = sets.into_iter().map(Arc::unwrap_or_clone).collect();
        let pods = self.cluster.pods.in_namespace(&key.namespace);
        loop {
            let Plan { steps, again } = rollout::plan(deployment.clone(), sets.clone(), &pods, Timestamp::now());
            match self.act(&mut deployment, steps).await? {
                Some(created) => sets.push(created),
                None => return Ok(again),
            }
        }
    }

    fn sets(&self, deployment: &Deployment) -> Api<ReplicaSet> {
        self.cluster.api(&deployment.namespace().unwrap_or_default())
    }

    /// Takes the steps one by one; a new ReplicaSet, if one was among them.
    async fn act(&self, deployment: &mut Deployment, steps: Vec<Step>) -> Result<Option<ReplicaSet>> {
        let sets = self.sets(deployment);
        let mut versions: HashMap<String, Option<String>> = HashMap::new();
        let mut steps = steps.into_iter();
        while let Some(step) = steps.next() {
            let shrinks = matches!(step, Step::Shrink(_));
            match step {
                Step::WriteStatus(wanted) => self.write_status(deployment, *wanted).await?,
                Step::Replace(mut set) | Step::Shrink(mut set) => {
                    let name = set.name_any();
                    if let Some(version) = versions.get(&name) {
                        set.metadata.resource_version.clone_from(version);
                    }
                    match sets.replace(&name, &PostParams::default(), &set).await.map_err(Error::from) {
                        Ok(set) => _ = versions.insert(name, set.metadata.resource_version),
                        Err(error) if shrinks => {
                            error.log("deployment", &Key::of(deployment));
                            steps = rollout::after_a_failed_shrink(steps).into_iter();
                        }
                        Err(error) => return Err(error),
                    }
                }
                Step::Delete(name) => gone_is_fine(sets.delete(&name, &DeleteParams::default()).await)?,
                Step::Tell(message) => {
                    self.events.report(deployment, Weight::Normal, "ScalingReplicaSet", message);
                }
                Step::Create(set) => return self.create(deployment, &set).await.map(Some),
            }
        }
        Ok(None)
    }

    /// Like the native controller, goes on with the version it had: a second write in the same look is refused as a
    /// conflict, and the next look, which sees what was written, decides anew. Which reasons a rollout shows hangs on it.
    async fn write_status(&self, deployment: &mut Deployment, wanted: Deployment) -> Result<()> {
        let api: Api<Deployment> = self.cluster.api(&wanted.namespace().unwrap_or_default());
        api.replace_status(&wanted.name_any(), &PostParams::default(), &wanted).await?;
        *deployment = wanted;
        Ok(())
    }

    async fn create(&self, deployment: &mut Deployment, set: &ReplicaSet) -> Result<ReplicaSet> {
        let name = set.name_any();
        let created = self.sets(deployment).create(&PostParams::default(), set).await;
        let (created, is_new) = match created.map_err(Error::from) {
            Ok(created) => (created, true),
            Err(error) if error.already_exists() => (self.own_or_collision(deployment, set, error).await?, false),
            Err(error) if error.namespace_is_terminating() => return Err(error),
            Err(error) => {
                let message = format!("Failed to create new replica set \"{name}\": {error}");
                let mut failed = deployment.clone();
                if status::note_progress(&mut failed, "False", status::NOT_CREATED, &message, Timestamp::now()) {
                    // The failure itself matters more than that it could not be noted.
                    let _ = self.write_status(deployment, failed).await;
                }
                self.events.report(deployment, Weight::Warning, status::NOT_CREATED, message);
                return Err(error);
            }
        };
        let size = numbers::size(&created);
        if is_new && size > 0 {
            let message = format!("Scaled up replica set {name} from 0 to {size}");
            self.events.report(deployment, Weight::Normal, "ScalingReplicaSet", message);
        }
        let mut noted = deployment.clone();
        if rollout::note_creation(&mut noted, &created, is_new, Timestamp::now()) {
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
        let there = self.sets(deployment).get(&set.name_any()).await?;
        if ownership::is_controlled_by(&there, deployment) && revision::is_of_template(&there, deployment) {
            return Ok(there);
        }
        let mut collided = deployment.clone();
        *collided.status.get_or_insert_default().collision_count.get_or_insert(0) += 1;
        self.write_status(deployment, collided).await?;
        Err(error)
    }
}
