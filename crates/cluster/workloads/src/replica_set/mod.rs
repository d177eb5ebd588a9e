//! ReplicaSets: as many pods as wanted, taken in and let go by the selector.

mod decide;
pub(crate) mod expectations;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::select_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};

pub(crate) use self::decide::REPLICA_FAILURE;
use self::expectations::Expectations;
use crate::cache::Change;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::events::{Events, Weight};
use crate::key::Key;
use crate::ownership::{self, Claim, Owner};
use crate::{pod, queue};

/// Longer names are cut, so that the random end fits.
const LONGEST_PREFIX: usize = 253;

pub(crate) struct Controller {
    cluster: Arc<Cluster>,
    expectations: Expectations,
    events: Events,
}

impl Controller {
    pub(crate) async fn run(cluster: Arc<Cluster>) {
        let events = cluster.events.of("replicaset-controller", None);
        let controller = Self { cluster, expectations: Expectations::default(), events };
        let wakes = select_all([
            controller.cluster.sets.wakes(|change| controller.set_changed(&change)),
            controller.cluster.pods.wakes(|change| controller.pod_changed(&change)),
        ]);
        queue::work("replicaset", u32::MAX, wakes, |key| controller.look(key)).await;
    }

    fn set_changed(&self, change: &Change<ReplicaSet>) -> Vec<Key> {
        let uid = |set: &Option<Arc<ReplicaSet>>| set.as_ref().and_then(|set| set.uid());
        if let Some(before) = uid(&change.before).filter(|before| uid(&change.after).as_ref() != Some(before)) {
            self.expectations.forget(&before);
        }
        vec![change.key()]
    }

    fn pod_changed(&self, change: &Change<Pod>) -> Vec<Key> {
        let owner = |pod: &Arc<Pod>| ownership::owner(&self.cluster.sets, &**pod);
        let (before, after) = (change.before.as_ref().and_then(owner), change.after.as_ref().and_then(owner));
        let pod = change.latest();
        let goes = change.after.is_none() || pod::goes(pod);
        if let Some(owner) = after.as_ref().or(before.as_ref()).filter(|_| goes) {
            self.expectations.deleted(&uid(owner), &pod.name_any());
        } else if let Some(owner) = after.as_ref().filter(|_| change.before.is_none()) {
            self.expectations.created(&uid(owner));
        }
        let mut wake: Vec<Key> = before.iter().chain(&after).map(|set| Key::of(&**set)).collect();
        if !goes && ownership::controller_of(&**pod).is_none() {
            wake.extend(ownership::possible_owners(&self.cluster.sets, &**pod));
        }
        wake
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        let Some(set) = self.cluster.sets.get(&key) else { return Ok(None) };
        let expectations_met = self.expectations.met(&uid(&set));
        let selector = set.selector()?;
        let mut pods = self.cluster.pods.in_namespace(&key.namespace);
        pods.retain(|pod| !pod::is_finished(pod));
        let (terminating, active): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod::goes(pod));
        let own = |pod: &&Arc<Pod>| ownership::claim(&*set, &selector, &***pod) == Claim::Mine;
        let terminating = terminating.iter().filter(own).count();
        let active = ownership::claim_all(&self.cluster, &*set, active).await?;
        let missing = decide::missing(&set, active.len());
        let failure = match missing {
            0 => None,
            _ if !expectations_met || set.metadata.deletion_timestamp.is_some() => None,
            1.. => self.create(&key, &set, missing.unsigned_abs()).await.err(),
            ..0 => self.delete(&key, &set, active.clone(), missing.unsigned_abs()).await.err(),
        };
        let now = Timestamp::now();
        let status = decide::status(&set, &active, terminating, failure.as_ref().map(ToString::to_string), now);
        let waiting = status.ready_replicas != status.available_replicas;
        self.write_status(&key, &set, status).await?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let min_ready_seconds = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or_default();
        Ok(decide::next_available(&active, min_ready_seconds, now).filter(|_| waiting))
    }

    /// In batches of 1, 2, 4 and so on, so that what cannot succeed is not tried hundreds of times.
    async fn create(&self, key: &Key, set: &ReplicaSet, count: usize) -> Result<()> {
        self.expectations.expect_creations(&uid(set), count);
        let pod = pod_of(set);
        let (mut left, mut batch) = (count, 1);
        while left > 0 {
            let outcomes = join_all((0..batch).map(|_| self.create_one(key, set, &pod))).await;
            let created = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            if let Some(Err(error)) = outcomes.into_iter().find(Result::is_err) {
                (created..left).for_each(|_| self.expectations.created(&uid(set)));
                return Err(error);
            }
            left -= batch;
            batch = (batch * 2).min(left);
        }
        Ok(())
    }

    async fn create_one(&self, key: &Key, set: &ReplicaSet, pod: &Pod) -> Result<()> {
        let created = self.cluster.api::<Pod>(&key.namespace).create(&PostParams::default(), pod).await;
        match created.map_err(Error::from) {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod.name_any());
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
        let pods = decide::pods_to_delete(active, count, Timestamp::now());
        self.expectations.expect_deletions(&uid(set), pods.iter().map(|pod| pod.name_any()));
        join_all(pods.iter().map(|pod| self.delete_one(key, set, pod))).await.into_iter().collect()
    }

    async fn delete_one(&self, key: &Key, set: &ReplicaSet, pod: &Pod) -> Result<()> {
        let name = pod.name_any();
        let deleted = self.cluster.api::<Pod>(&key.namespace).delete(&name, &DeleteParams::default()).await;
        let Err(error) = deleted.map_err(Error::from) else {
            self.events.report(set, Weight::Normal, "SuccessfulDelete", format!("Deleted pod: {name}"));
            return Ok(());
        };
        self.expectations.deleted(&uid(set), &name);
        if error.is_not_found() {
            return Ok(());
        }
        self.events.report(set, Weight::Warning, "FailedDelete", format!("Error deleting: {error}"));
        Err(Error::Other(format!("unable to delete pods: {error}")))
    }

    /// Written only if it says something new; once more from the newest version if another wrote meanwhile.
    async fn write_status(&self, key: &Key, set: &ReplicaSet, status: ReplicaSetStatus) -> Result<()> {
        if set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let api = self.cluster.api::<ReplicaSet>(&key.namespace);
        let said = |set: ReplicaSet| ReplicaSet { status: Some(status.clone()), ..set };
        let written = api.replace_status(&key.name, &PostParams::default(), &said(set.clone())).await;
        match written.map_err(Error::from) {
            Err(error) if error.is_conflict() => {
                let newest = said(api.get(&key.name).await?);
                api.replace_status(&key.name, &PostParams::default(), &newest).await?;
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }
}

fn uid(set: &ReplicaSet) -> String {
    set.uid().unwrap_or_default()
}

fn pod_of(set: &ReplicaSet) -> Pod {
    let template = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
    let from = template.metadata.unwrap_or_default();
    let mut prefix = format!("{}-", set.name_any());
    prefix.truncate(LONGEST_PREFIX);
    let metadata = ObjectMeta {
        generate_name: Some(prefix),
        labels: from.labels,
        annotations: from.annotations,
        finalizers: from.finalizers,
        owner_references: Some(vec![ownership::reference_to(set)]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec, status: None }
}
