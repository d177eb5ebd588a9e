//! Endpoints and EndpointSlices of Services that select pods.

mod decide;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};

use crate::cache::Cache;
use crate::error::{Result, gone_is_fine, made_is_fine};
use crate::key::Key;
use crate::queue::{self, Queue};

pub(crate) struct Controller {
    client: Client,
    services: Arc<Cache<Service>>,
    pods: Arc<Cache<Pod>>,
    endpoints: Arc<Cache<Endpoints>>,
    slices: Arc<Cache<EndpointSlice>>,
    queue: Arc<Queue>,
}

impl Controller {
    pub(crate) fn new(
        client: Client,
        services: Arc<Cache<Service>>,
        pods: Arc<Cache<Pod>>,
        endpoints: Arc<Cache<Endpoints>>,
        slices: Arc<Cache<EndpointSlice>>,
    ) -> Arc<Self> {
        let controller = Arc::new(Self { client, services, pods, endpoints, slices, queue: Arc::default() });
        controller.services.observe(&controller, |controller, before, after| {
            if let Some(service) = after.or(before) {
                controller.queue.add(Key::of(&**service));
            }
        });
        controller.endpoints.observe(&controller, |controller, before, after| {
            if let Some(endpoints) = after.or(before) {
                controller.queue.add(Key::of(&**endpoints));
            }
        });
        controller.slices.observe(&controller, |controller, before, after| {
            let Some(slice) = after.or(before) else { return };
            if let Some(service) = decide::service_of(slice) {
                let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
                controller.queue.add(Key::new(namespace, service));
            }
        });
        controller.pods.observe(&controller, Self::pod_changed);
        controller
    }

    /// Only the slices that are ours.
    pub(crate) fn own_slices() -> watcher::Config {
        watcher::Config::default().labels(&format!("{}={}", decide::SLICES_BY.0, decide::SLICES_BY.1))
    }

    pub(crate) async fn run(self: Arc<Self>) {
        self.services.synced().await;
        self.pods.synced().await;
        self.endpoints.synced().await;
        self.slices.synced().await;
        queue::work("endpoints", self.queue.clone(), None, |key| self.look(key)).await;
    }

    fn pod_changed(&self, before: Option<&Arc<Pod>>, after: Option<&Arc<Pod>>) {
        let Some(pod) = after.or(before) else { return };
        for service in self.services.in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default()) {
            if [before, after].into_iter().flatten().any(|pod| decide::selects(&service, pod)) {
                self.queue.add(Key::of(&*service));
            }
        }
    }

    async fn look(&self, key: Key) -> Result<Option<Duration>> {
        let endpoints: Api<Endpoints> = Api::namespaced(self.client.clone(), &key.namespace);
        let known = self.endpoints.get(&key);
        let Some(service) = self.services.get(&key) else {
            // Slices go with their owner; Endpoints have none.
            if known.is_some() {
                gone_is_fine(endpoints.delete(&key.name, &DeleteParams::default()).await)?;
            }
            return Ok(None);
        };
        if !decide::is_selecting(&service) || service.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let pods = self.pods.in_namespace(&key.namespace);
        let wanted = decide::endpoints(&service, &pods);
        match known {
            None => made_is_fine(endpoints.create(&PostParams::default(), &wanted).await)?,
            Some(known) if known.subsets == wanted.subsets && known.metadata.labels == wanted.metadata.labels => {}
            Some(known) => {
                let mut changed = (*known).clone();
                changed.subsets = wanted.subsets;
                changed.metadata.labels = wanted.metadata.labels;
                made_is_fine(endpoints.replace(&key.name, &PostParams::default(), &changed).await)?;
            }
        }
        self.write_slices(&key, decide::slices(&service, &pods)).await?;
        Ok(None)
    }

    async fn write_slices(&self, key: &Key, wanted: Vec<EndpointSlice>) -> Result<()> {
        let api: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &key.namespace);
        let mut known = self.slices.in_namespace(&key.namespace);
        known.retain(|slice| decide::service_of(slice) == Some(&key.name));
        for wanted in wanted {
            let name = wanted.metadata.name.clone().unwrap_or_default();
            let position = known.iter().position(|slice| slice.metadata.name.as_ref() == Some(&name));
            match position.map(|position| known.swap_remove(position)) {
                None => made_is_fine(api.create(&PostParams::default(), &wanted).await)?,
                Some(slice) => {
                    let mut changed = (*slice).clone();
                    changed.endpoints = wanted.endpoints;
                    changed.metadata.labels = wanted.metadata.labels;
                    if changed != *slice {
                        made_is_fine(api.replace(&name, &PostParams::default(), &changed).await)?;
                    }
                }
            }
        }
        for unwanted in known {
            let name = unwanted.metadata.name.as_deref().unwrap_or_default();
            gone_is_fine(api.delete(name, &DeleteParams::default()).await)?;
        }
        Ok(())
    }
}
