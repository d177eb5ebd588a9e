//! The scheduler of a cluster with one node: a pod is bound to it when its claims are bound and it asks for no other.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::select_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::events::Weight;
use crate::key::Key;
use crate::write::{gone_is_fine, patch};
use crate::{pod, queue};

const NAME: &str = "default-scheduler";
/// On a claim: the node that its volume must be reached from.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

pub(crate) async fn run(cluster: Arc<Cluster>) {
    let waiting = |pods: Vec<Arc<Pod>>| pods.iter().filter(|pod| waits(pod)).map(|pod| Key::of(&**pod)).collect();
    let wakes = select_all([
        cluster.pods.wakes(|change| waiting(vec![change.latest().clone()])),
        cluster.claims.wakes(|change| waiting(cluster.pods.in_namespace(&change.key().namespace))),
        cluster.nodes.wakes(|_| waiting(cluster.pods.all())),
    ]);
    queue::work("scheduler", u32::MAX, wakes, |key| look(&cluster, key)).await;
}

fn waits(pod: &Pod) -> bool {
    let schedulable = pod.spec.as_ref().is_some_and(|spec| {
        spec.scheduling_gates.as_ref().is_none_or(|gates| gates.is_empty())
            && spec.scheduler_name.as_ref().is_none_or(|name| name == NAME)
    });
    schedulable && pod::node(pod).is_empty() && !pod::goes(pod) && !pod::is_finished(pod)
}

async fn look(cluster: &Cluster, key: Key) -> Result<Option<Duration>> {
    let Some(pod) = cluster.pods.get(&key).filter(|pod| waits(pod)) else { return Ok(None) };
    let Some(node) = cluster.nodes.all().into_iter().next() else { return Ok(None) };
    let (api, events) = (cluster.api::<Pod>(&key.namespace), cluster.events.of(NAME, None));
    if let Some(reason) = obstacle(cluster, &pod, &node).await? {
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        if !conditions.any(|known| known.type_ == "PodScheduled" && known.message.as_ref() == Some(&reason)) {
            events.report(&*pod, Weight::Warning, "FailedScheduling", &reason);
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": reason,
                "lastTransitionTime": Time(Timestamp::now()),
            });
            let change = json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [condition]}});
            gone_is_fine(api.patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(change)).await)?;
        }
        return Ok(None);
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.uid()},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node.name_any()},
    });
    let bound = api.create_subresource::<_, Value>("binding", &key.name, &PostParams::default(), &binding).await;
    match bound.map_err(Error::from) {
        Ok(_) => {
            let message = format!("Successfully assigned {key} to {}", node.name_any());
            events.report(&*pod, Weight::Normal, "Scheduled", message);
            Ok(None)
        }
        // Bound already, or gone: the cache will tell.
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What keeps a pod from the node, in the scheduler's words. What can be done about it is done.
async fn obstacle(cluster: &Cluster, pod: &Pod, node: &Node) -> Result<Option<String>> {
    let why = if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        Some("1 node(s) were unschedulable".to_owned())
    } else if !selects(pod, node) {
        Some("1 node(s) didn't match Pod's node affinity/selector".to_owned())
    } else {
        missing_claim(cluster, pod, node).await?
    };
    let tail =
        "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    Ok(why.map(|why| format!("0/1 nodes are available: {why}. {tail}")))
}

fn selects(pod: &Pod, node: &Node) -> bool {
    let mut selector = pod.spec.iter().flat_map(|spec| spec.node_selector.iter().flatten());
    selector.all(|(key, value)| node.labels().get(key) == Some(value))
}

async fn missing_claim(cluster: &Cluster, pod: &Pod, node: &Node) -> Result<Option<String>> {
    for name in pod::claims(pod) {
        let key = Key::beside(pod, name);
        let Some(claim) = cluster.claims.get(&key) else {
            return Ok(Some(format!("persistentvolumeclaim \"{name}\" not found")));
        };
        if claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound")) {
            continue;
        }
        if !waits_for_consumer(cluster, &claim) {
            return Ok(Some("pod has unbound immediate PersistentVolumeClaims".to_owned()));
        }
        // Its provisioner waits for a node: this one.
        if !claim.annotations().contains_key(SELECTED_NODE) {
            let change = json!({"metadata": {"annotations": {SELECTED_NODE: node.name_any()}}});
            patch(&cluster.api::<PersistentVolumeClaim>(&key.namespace), &*claim, change).await?;
        }
        return Ok(Some("waiting for the claim's volume".to_owned()));
    }
    Ok(None)
}

fn waits_for_consumer(cluster: &Cluster, claim: &PersistentVolumeClaim) -> bool {
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    let class = class.and_then(|class| cluster.classes.get(&Key::cluster(class)));
    class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
}
