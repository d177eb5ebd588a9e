//! The scheduler of a cluster with one node: a pod is bound to it when its claims are bound and it asks for no other.

use std::collections::HashMap;

use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::events::Events;
use super::pod::PodExt;
use super::status::whole_seconds;

const NAME: &str = "default-scheduler";
/// What could not be bound is looked at again this often; and whenever it changes.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn run(client: Client, node: String) {
    let events = Events::new(client.clone(), NAME, "");
    let unbound = watcher::Config::default().fields("spec.nodeName=");
    let mut changes = std::pin::pin!(watcher(Api::<Pod>::all(client.clone()), unbound).default_backoff());
    let mut waiting: HashMap<String, Pod> = HashMap::new();
    let mut next = Instant::now() + AGAIN;
    loop {
        let change = tokio::time::timeout_at(next, changes.try_next()).await;
        let due: Vec<Pod> = match change {
            Ok(Ok(Some(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)))) => vec![pod],
            Ok(Ok(Some(watcher::Event::Delete(pod)))) => {
                waiting.remove(pod.uid_text());
                continue;
            }
            Ok(Ok(Some(watcher::Event::Init))) => {
                waiting.clear();
                continue;
            }
            Ok(Ok(Some(watcher::Event::InitDone))) => continue,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the watch of unbound pods broke; it is taken up again");
                continue;
            }
            Err(_) => {
                next = Instant::now() + AGAIN;
                waiting.values().cloned().collect()
            }
        };
        for pod in due {
            let uid = pod.uid_text().to_owned();
            match place(&client, &events, &pod, &node).await {
                Ok(true) => drop(waiting.remove(&uid)),
                Ok(false) => drop(waiting.insert(uid, pod)),
                Err(kube::Error::Api(status)) if status.code == 404 => drop(waiting.remove(&uid)),
                Err(error) => {
                    tracing::debug!(pod = pod.described(), %error, "a pod was not bound");
                    waiting.insert(uid, pod);
                }
            }
        }
    }
}

/// Binds a pod, or says why not. Whether it is done with.
async fn place(client: &Client, events: &Events, pod: &Pod, node: &str) -> kube::Result<bool> {
    let spec = pod.pod_spec();
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    let foreign = spec.scheduler_name.as_deref().is_some_and(|name| name != NAME);
    let bound = spec.node_name.as_ref().is_some_and(|name| !name.is_empty());
    if gated || foreign || bound || pod.metadata.deletion_timestamp.is_some() || pod.is_ended() {
        return Ok(true);
    }
    let (namespace, name) = pod.namespaced_name();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    if let Some(reason) = obstacle(client, pod, node).await? {
        let known = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let known =
            known.into_iter().any(|known| known.type_ == "PodScheduled" && known.message.as_ref() == Some(&reason));
        if !known {
            events.warning(pod, None, "FailedScheduling", reason.clone());
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": reason,
                "lastTransitionTime": whole_seconds(Timestamp::now()),
            });
            let patch = json!({"metadata": {"uid": pod.uid_text()}, "status": {"conditions": [condition]}});
            pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
        }
        return Ok(false);
    }
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace, "uid": pod.uid_text()},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    match pods.create_subresource::<_, Value>("binding", &name, &PostParams::default(), &binding).await {
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(true),
        done => done?,
    };
    events.normal(pod, None, "Scheduled", format!("Successfully assigned {namespace}/{name} to {node}"));
    Ok(true)
}

/// What keeps a pod from this node, in the scheduler's words.
async fn obstacle(client: &Client, pod: &Pod, node: &str) -> kube::Result<Option<String>> {
    let this = Api::<Node>::all(client.clone()).get(node).await?;
    let tail =
        "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    let unavailable = |why: &str| Some(format!("0/1 nodes are available: {why}. {tail}"));
    if this.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        return Ok(unavailable("1 node(s) were unschedulable"));
    }
    let selector = pod.pod_spec().node_selector.iter().flatten();
    if selector.into_iter().any(|(key, value)| this.labels().get(key) != Some(value)) {
        return Ok(unavailable("1 node(s) didn't match Pod's node affinity/selector"));
    }
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    for volume in pod.pod_spec().volumes.iter().flatten() {
        let Some(source) = &volume.persistent_volume_claim else { continue };
        let Some(claim) = claims.get_opt(&source.claim_name).await? else {
            return Ok(unavailable(&format!("persistentvolumeclaim \"{}\" not found", source.claim_name)));
        };
        let bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        if bound {
            continue;
        }
        if !waits_for_consumer(client, &claim).await? {
            return Ok(unavailable("pod has unbound immediate PersistentVolumeClaims"));
        }
        // Its provisioner waits for a node: this one.
        let key = "volume.kubernetes.io/selected-node";
        if !claim.annotations().contains_key(key) {
            let patch = json!({"metadata": {"annotations": {key: node}}});
            claims.patch(&source.claim_name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        return Ok(unavailable("waiting for the claim's volume"));
    }
    Ok(None)
}

async fn waits_for_consumer(client: &Client, claim: &PersistentVolumeClaim) -> kube::Result<bool> {
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()).filter(|name| !name.is_empty());
    let Some(class) = class else { return Ok(false) };
    let class = Api::<StorageClass>::all(client.clone()).get_opt(class).await?;
    Ok(class.and_then(|class| class.volume_binding_mode).as_deref() == Some("WaitForFirstConsumer"))
}
