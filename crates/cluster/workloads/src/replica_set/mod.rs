//! ReplicaSets: as many pods as wanted, taken in and let go by the selector.

mod decide;
pub(crate) mod expectations;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::Selector;
use kube::{Api, Client, Resource};

pub(crate) use self::decide::REPLICA_FAILURE;
use self::decide::Size;
use self::expectations::Expectations;
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::ownership::{self, Claim};
use crate::pod;
use crate::queue::{self, Queue};

/// Longer names are cut, so that the random end fits.
const LONGEST_PREFIX: usize = 253;

pub(crate) struct Controller {
    client: Client,
    sets: Arc<Cache<ReplicaSet>>,
    pods: Arc<Cache<Pod>>,
    expectations: Expectations,
    queue: Arc<Queue>,
    events: Events,
}

impl Controller {
    pub(crate) fn new(
        client: Client,
        sets: Arc<Cache<ReplicaSet>>,
        pods: Arc<Cache<Pod>>,
        events: &Events,
    ) -> Arc<Self> {
        let events = events.of("replicaset-controller");
        let (expectations, queue) = (Expectations::default(), Arc::default());
        let controller = Arc::new(Self { client, sets, pods, expectations, queue, events });
        controller.sets.observe(&controller, Self::set_changed);
        controller.pods.observe(&controller, Self::pod_changed);
        controller
    }

    pub(crate) async fn run(self: Arc<Self>) {
        self.sets.synced().await;
        self.pods.synced().await;
        queue::work("replicaset", self.queue.clone(), None, |key| self.look(key)).await;
    }

    fn set_changed(&self, before: Option<&Arc<ReplicaSet>>, after: Option<&Arc<ReplicaSet>>) {
        let replaced = |before: &Arc<ReplicaSet>| after.is_none_or(|after| after.metadata.uid != before.metadata.uid);
        if let Some(before) = before.filter(|before| replaced(before)) {
            self.expectations.forget(&Key::of(&**before));
        }
        if let Some(set) = after {
            self.queue.add(Key::of(&**set));
        }
    }

    fn pod_changed(&self, before: Option<&Arc<Pod>>, after: Option<&Arc<Pod>>) {
        let goes = after.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
        let owner_before = before.and_then(|pod| self.owner(pod));
        let owner_after = after.and_then(|pod| self.owner(pod));
        if goes {
            if let Some(pod) = after.or(before)
                && let Some(owner) = owner_after.or(owner_before)
            {
                self.expectations.deleted(&owner, &Key::of(&**pod));
                self.queue.add(owner);
            }
            return;
        }
        if let Some(owner) = owner_before.clone().filter(|owner| Some(owner) != owner_after.as_ref()) {
            self.queue.add(owner);
        }
        match owner_after {
            Some(owner) => {
                if before.is_none() {
                    self.expectations.created(&owner);
                }
                self.queue.add(owner);
            }
            None => {
                if let Some(pod) = after.filter(|pod| ownership::controller_of(&pod.metadata).is_none()) {
                    self.wake_those_that_may_adopt(pod);
                }
            }
        }
    }

    /// The ReplicaSet that controls the pod, if it is still the one that made it.
    fn owner(&self, pod: &Pod) -> Option<Key> {
        let controller = ownership::controller_of(&pod.metadata).filter(|owner| owner.kind == ReplicaSet::kind(&()))?;
        let key = Key::new(pod.metadata.namespace.as_deref()?, &controller.name);
        self.sets.get(&key).filter(|set| set.metadata.uid.as_ref() == Some(&controller.uid)).map(|_| key)
    }

    fn wake_those_that_may_adopt(&self, pod: &Pod) {
        for set in self.sets.in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default()) {
            if selector_of(&set).is_ok_and(|selector| ownership::selects(&selector, &pod.metadata)) {
                self.queue.add(Key::of(&*set));
            }
        }
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        let Some(set) = self.sets.get(&key) else {
            self.expectations.forget(&key);
            return Ok(None);
        };
        let expectations_met = self.expectations.met(&key);
        let selector = selector_of(&set)?;
        let pods = self.pods.in_namespace(&key.namespace);
        let terminating = pods.iter().filter(|pod| pod::is_terminating(pod));
        let terminating =
            terminating.filter(|pod| ownership::claim(&*set, &selector, &pod.metadata) == Claim::Mine).count();
        let active = self.claim(&set, &selector, pods).await?;
        let size = decide::size(wanted(&set), active.len());
        let failure = if expectations_met && set.metadata.deletion_timestamp.is_none() {
            match size {
                Size::Right => None,
                Size::TooFew(count) => self.create(&key, &set, count).await.err(),
                Size::TooMany(count) => self.delete(&key, &set, active.clone(), count).await.err(),
            }
        } else {
            None
        };
        let now = Timestamp::now();
        let said = failure.as_ref().map(ToString::to_string);
        let status = decide::status(&set, &active, terminating, said.as_deref(), now);
        let waiting = status.ready_replicas != status.available_replicas;
        self.write_status(&set, status).await?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let min_ready_seconds = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
        Ok(decide::next_available(&active, min_ready_seconds, now).filter(|_| waiting))
    }

    /// The active pods that are the set's own, after adoption and release.
    async fn claim(&self, set: &ReplicaSet, selector: &Selector, pods: Vec<Arc<Pod>>) -> Result<Vec<Arc<Pod>>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), set.metadata.namespace.as_deref().unwrap_or_default());
        let mut own = Vec::new();
        let mut may_adopt = None;
        for pod in pods.into_iter().filter(|pod| pod::is_active(pod)) {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            match ownership::claim(set, selector, &pod.metadata) {
                Claim::Mine => own.push(pod),
                Claim::NotMine => {}
                Claim::Adopt => {
                    if may_adopt.is_none() {
                        may_adopt = Some(self.is_still_there(set).await?);
                    }
                    if may_adopt == Some(true) {
                        let patch = Patch::Strategic(ownership::adoption(set, &pod.metadata));
                        own.push(Arc::new(api.patch(name, &PatchParams::default(), &patch).await?));
                    }
                }
                Claim::Release => {
                    let patch = Patch::Strategic(ownership::release(set, &pod.metadata));
                    crate::error::gone_is_fine(api.patch(name, &PatchParams::default(), &patch).await)?;
                }
            }
        }
        Ok(own)
    }

    /// Asked of the API server itself before adopting: the cache may not know yet that the set goes.
    async fn is_still_there(&self, set: &ReplicaSet) -> Result<bool> {
        let fresh = self.api(set).get(set.metadata.name.as_deref().unwrap_or_default()).await?;
        Ok(fresh.metadata.uid == set.metadata.uid && fresh.metadata.deletion_timestamp.is_none())
    }

    fn api(&self, set: &ReplicaSet) -> Api<ReplicaSet> {
        Api::namespaced(self.client.clone(), set.metadata.namespace.as_deref().unwrap_or_default())
    }

    /// In batches of 1, 2, 4 and so on, so that what cannot succeed is not tried hundreds of times.
    async fn create(&self, key: &Key, set: &ReplicaSet, count: usize) -> Result<()> {
        self.expectations.expect_creations(key, count);
        let template = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
        let pod = pod_from(set, template);
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let (mut left, mut batch) = (count, 1);
        while left > 0 {
            let creations = (0..batch).map(|_| self.create_one(&api, set, &pod));
            let outcomes = join_all(creations).await;
            let created = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            if let Some(Err(error)) = outcomes.into_iter().find(Result::is_err) {
                for _ in 0..left - created {
                    self.expectations.created(key);
                }
                return Err(error);
            }
            left -= batch;
            batch = (batch * 2).min(left);
        }
        Ok(())
    }

    async fn create_one(&self, api: &Api<Pod>, set: &ReplicaSet, pod: &Pod) -> Result<()> {
        match api.create(&PostParams::default(), pod).await.map_err(Error::from) {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod.metadata.name.unwrap_or_default());
                self.events.report(set, Weight::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            // It will end with its namespace; the expectation that stays unmet keeps it quiet until then.
            Err(error) if error.namespace_is_terminating() => Ok(()),
            Err(error) => {
                self.events.report(set, Weight::Warning, "FailedCreate", format!("Error creating: {error}"));
                Err(error)
            }
        }
    }

    async fn delete(&self, key: &Key, set: &ReplicaSet, active: Vec<Arc<Pod>>, count: usize) -> Result<()> {
        let related = self.pods_of_the_same_controller(set);
        let pods = decide::pods_to_delete(active, &related, count, Timestamp::now());
        self.expectations.expect_deletions(key, pods.iter().map(|pod| Key::of(&**pod)));
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let outcomes = join_all(pods.iter().map(|pod| self.delete_one(&api, key, set, pod))).await;
        outcomes.into_iter().collect()
    }

    async fn delete_one(&self, api: &Api<Pod>, key: &Key, set: &ReplicaSet, pod: &Pod) -> Result<()> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match api.delete(name, &DeleteParams::default()).await.map_err(Error::from) {
            Ok(_) => {
                self.events.report(set, Weight::Normal, "SuccessfulDelete", format!("Deleted pod: {name}"));
                Ok(())
            }
            Err(error) => {
                self.expectations.deleted(key, &Key::of(pod));
                if error.is_not_found() {
                    return Ok(());
                }
                self.events.report(set, Weight::Warning, "FailedDelete", format!("Error deleting: {error}"));
                Err(Error::Other(format!("unable to delete pods: {error}")))
            }
        }
    }

    fn pods_of_the_same_controller(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let controller = ownership::controller_of(&set.metadata).map(|owner| &owner.uid);
        let same = |other: &ReplicaSet| match controller {
            Some(uid) => ownership::controller_of(&other.metadata).is_some_and(|owner| owner.uid == *uid),
            None => other.metadata.uid == set.metadata.uid,
        };
        let sets: Vec<_> = self.sets.in_namespace(namespace).into_iter().filter(|other| same(other)).collect();
        let selectors: Vec<Selector> = sets.iter().filter_map(|set| selector_of(set).ok()).collect();
        let mut pods = self.pods.in_namespace(namespace);
        pods.retain(|pod| selectors.iter().any(|selector| ownership::selects(selector, &pod.metadata)));
        pods
    }

    /// Written only if it says something new; once more from the newest version if another wrote meanwhile.
    async fn write_status(&self, set: &ReplicaSet, status: ReplicaSetStatus) -> Result<()> {
        if set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let (api, name) = (self.api(set), set.metadata.name.as_deref().unwrap_or_default());
        let mut set = ReplicaSet { status: Some(status.clone()), ..set.clone() };
        match api.replace_status(name, &PostParams::default(), &set).await.map_err(Error::from) {
            Err(error) if error.is_conflict() => {
                set = ReplicaSet { status: Some(status), ..api.get(name).await? };
                api.replace_status(name, &PostParams::default(), &set).await?;
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }
}

fn selector_of(set: &ReplicaSet) -> Result<Selector> {
    ownership::selector(&set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default())
}

fn wanted(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

fn pod_from(set: &ReplicaSet, template: PodTemplateSpec) -> Pod {
    let from = template.metadata.unwrap_or_default();
    let mut prefix = format!("{}-", set.metadata.name.as_deref().unwrap_or_default());
    prefix.truncate(LONGEST_PREFIX);
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(prefix),
            labels: from.labels,
            annotations: from.annotations,
            finalizers: from.finalizers,
            owner_references: Some(vec![ownership::reference_to(set)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}
