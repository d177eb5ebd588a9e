//! Endpoints and EndpointSlices of Services that select pods.

mod decide;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::select_all;
use k8s_openapi::api::core::v1::{Endpoints, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher;

use crate::cache::Change;
use crate::cluster::Cluster;
use crate::error::Result;
use crate::key::Key;
use crate::queue;
use crate::write::{gone_is_fine, made_is_fine};

/// Only the slices that are ours.
pub(crate) fn own_slices() -> watcher::Config {
    watcher::Config::default().labels(&format!("{}={}", decide::SLICES_BY.0, decide::SLICES_BY.1))
}

pub(crate) async fn run(cluster: Arc<Cluster>) {
    let wakes = select_all([
        cluster.services.wakes(|change| vec![change.key()]),
        cluster.endpoints.wakes(|change| vec![change.key()]),
        cluster.slices.wakes(|change| {
            let slice = change.latest();
            decide::service_of(slice).map(|service| Key::beside(&**slice, service)).into_iter().collect()
        }),
        cluster.pods.wakes(|change| services_of(&cluster, &change)),
    ]);
    queue::work("endpoints", u32::MAX, wakes, |key| look(&cluster, key)).await;
}

fn services_of(cluster: &Cluster, change: &Change<Pod>) -> Vec<Key> {
    let mut services = cluster.services.in_namespace(&change.key().namespace);
    services.retain(|service| change.before.iter().chain(&change.after).any(|pod| decide::selects(service, pod)));
    services.iter().map(|service| Key::of(&**service)).collect()
}

async fn look(cluster: &Cluster, key: Key) -> Result<Option<Duration>> {
    let api = cluster.api::<Endpoints>(&key.namespace);
    let known = cluster.endpoints.get(&key);
    let Some(service) = cluster.services.get(&key) else {
        // Slices go with their owner; Endpoints have none.
        if known.is_some() {
            gone_is_fine(api.delete(&key.name, &DeleteParams::default()).await)?;
        }
        return Ok(None);
    };
    if !decide::is_selecting(&service) || service.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    let pods = cluster.pods.in_namespace(&key.namespace);
    let wanted = decide::endpoints(&service, &pods);
    match known {
        None => made_is_fine(api.create(&PostParams::default(), &wanted).await)?,
        Some(known) => {
            let mut changed = (*known).clone();
            changed.subsets = wanted.subsets;
            changed.metadata.labels = wanted.metadata.labels;
            if changed != *known {
                made_is_fine(api.replace(&key.name, &PostParams::default(), &changed).await)?;
            }
        }
    }
    write_slices(cluster, &key, decide::slices(&service, &pods)).await?;
    Ok(None)
}

async fn write_slices(cluster: &Cluster, key: &Key, wanted: Vec<EndpointSlice>) -> Result<()> {
    let api = cluster.api::<EndpointSlice>(&key.namespace);
    let mut known = cluster.slices.in_namespace(&key.namespace);
    known.retain(|slice| decide::service_of(slice) == Some(&key.name));
    for wanted in wanted {
        let position = known.iter().position(|slice| slice.metadata.name == wanted.metadata.name);
        match position.map(|position| known.swap_remove(position)) {
            None => made_is_fine(api.create(&PostParams::default(), &wanted).await)?,
            Some(slice) => {
                let mut changed = (*slice).clone();
                changed.endpoints = wanted.endpoints;
                changed.metadata.labels = wanted.metadata.labels;
                if changed != *slice {
                    made_is_fine(api.replace(&slice.name_any(), &PostParams::default(), &changed).await)?;
                }
            }
        }
    }
    for unwanted in known {
        gone_is_fine(api.delete(&unwanted.name_any(), &DeleteParams::default()).await)?;
    }
    Ok(())
}
