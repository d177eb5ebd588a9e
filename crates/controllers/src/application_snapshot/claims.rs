//! Claims, and who uses them: the pods that mount them, and the nodes that they are attached to.

use boathook_api::{application_snapshot::SnapshotSource, pod::containers, selector};
use boathook_decide::application_snapshot::{Claim, User};
use boathook_runtime::{Classified, ErrorClass, in_time};
use k8s_openapi::api::{
    core::v1::{Container, PersistentVolumeClaim, Pod},
    storage::v1::VolumeAttachment,
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use snafu::{ResultExt, Snafu};

#[derive(Debug, Snafu)]
pub enum ClaimsError {
    #[snafu(display("failed to get claim `{name}`"))]
    Claim { name: String, source: kube::Error },
    #[snafu(display("failed to list the claims of namespace `{namespace}`"))]
    List { namespace: String, source: kube::Error },
    #[snafu(display("failed to list the pods of namespace `{namespace}`"))]
    Pods { namespace: String, source: kube::Error },
    #[snafu(display("failed to list the VolumeAttachments"))]
    Attachments { source: kube::Error },
}

impl Classified for ClaimsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Claim { source, .. }
            | Self::List { source, .. }
            | Self::Pods { source, .. }
            | Self::Attachments { source } => source.class(),
        }
    }
}

/// The claims that a source means, with who uses them; and the pods of the namespace, as they are now.
pub async fn look_at_claims(
    client: &Client,
    namespace: &str,
    source: &SnapshotSource,
) -> Result<(Vec<Claim>, Vec<Pod>), ClaimsError> {
    let (claims, pods) = claims_and_pods(client, namespace, source).await?;
    if claims.is_empty() {
        return Ok((vec![], vec![]));
    }
    let attached = attached_volumes(client).await?;
    Ok((used(&claims, &pods, &attached), pods))
}

/// The claims that a source means; and, if there are any, the pods of the namespace.
pub async fn claims_and_pods(
    client: &Client,
    namespace: &str,
    source: &SnapshotSource,
) -> Result<(Vec<PersistentVolumeClaim>, Vec<Pod>), ClaimsError> {
    let claims = find(client, namespace, source).await?;
    if claims.is_empty() {
        return Ok((vec![], vec![]));
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = in_time(pods.list(&ListParams::default())).await.context(PodsSnafu { namespace })?.items;
    Ok((claims, pods))
}

/// Who uses these claims: of these pods, and by these attached volumes.
pub fn used(claims: &[PersistentVolumeClaim], pods: &[Pod], attached: &[String]) -> Vec<Claim> {
    let users = |claim: &str, ended: bool| {
        pods.iter().filter(|pod| has_ended(pod) == ended).filter_map(|pod| user(pod, claim)).collect()
    };
    let claim = |claim: &PersistentVolumeClaim| {
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
        Claim {
            name: claim.name_any(),
            labels: claim.labels().clone(),
            attached: volume.is_some_and(|volume| attached.contains(volume)),
            pods: users(&claim.name_any(), false),
            ended: users(&claim.name_any(), true),
        }
    };
    claims.iter().map(claim).collect()
}

async fn find(
    client: &Client,
    namespace: &str,
    source: &SnapshotSource,
) -> Result<Vec<PersistentVolumeClaim>, ClaimsError> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
    if let Some(name) = &source.persistent_volume_claim_name {
        let claim = in_time(api.get_opt(name)).await.context(ClaimSnafu { name })?;
        return Ok(claim.into_iter().collect());
    }
    // It selects nothing, and is refused for that.
    let Ok(selector) = selector::parse(&source.selector.clone().unwrap_or_default()) else { return Ok(vec![]) };
    let asked = ListParams::default().labels_from(&selector);
    let mut claims = in_time(api.list(&asked)).await.context(ListSnafu { namespace })?.items;
    claims.sort_by_key(ResourceExt::name_any);
    Ok(claims)
}

/// The volumes that are attached to a node. They belong to no namespace: whoever may look at one may not look at them.
pub async fn attached_volumes(client: &Client) -> Result<Vec<String>, ClaimsError> {
    let api: Api<VolumeAttachment> = Api::all(client.clone());
    let all = match in_time(api.list(&ListParams::default())).await {
        Ok(all) => all.items,
        // A cluster whose volumes need no attaching may not serve them.
        Err(error) if error.class() == ErrorClass::NotFound => vec![],
        Err(error) => return Err(error).context(AttachmentsSnafu),
    };
    let attached = all.into_iter().filter(|one| one.status.as_ref().is_some_and(|status| status.attached));
    Ok(attached.filter_map(|one| one.spec.source.persistent_volume_name).collect())
}

/// The containers of a pod that use a claim, if the pod does.
pub(crate) fn mounting(pod: &Pod, claim: &str) -> Option<Vec<String>> {
    user(pod, claim).filter(|_| !has_ended(pod)).map(|user| user.containers)
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref().and_then(|status| status.phase.as_deref())
}

fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), Some("Succeeded" | "Failed"))
}

/// How a pod uses a claim, or did until it ended: it is on a node and mounts the claim.
fn user(pod: &Pod, claim: &str) -> Option<User> {
    let spec = pod.spec.as_ref().filter(|spec| spec.node_name.as_ref().is_some_and(|node| !node.is_empty()))?;
    let of_claim = spec.volumes.iter().flatten().filter(|volume| {
        let by_name = volume.persistent_volume_claim.as_ref().is_some_and(|source| source.claim_name == claim);
        // A claim that is made with the pod is called by both names.
        by_name || volume.ephemeral.is_some() && format!("{}-{}", pod.name_any(), volume.name) == claim
    });
    let volumes: Vec<_> = of_claim.map(|volume| volume.name.as_str()).collect();
    if volumes.is_empty() {
        return None;
    }
    let mounts = |container: &&Container| {
        let mounts = container.volume_mounts.iter().flatten().map(|mount| mount.name.as_str());
        let devices = container.volume_devices.iter().flatten().map(|device| device.name.as_str());
        mounts.chain(devices).any(|name| volumes.contains(&name))
    };
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mounting: Vec<_> = all.filter(mounts).map(|container| container.name.clone()).collect();
    // Those that can run actions: an ordinary init container has ended, or freezes nothing.
    let containers = containers(pod).into_iter().filter(|name| mounting.contains(name)).collect();
    Some(User {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        labels: pod.labels().clone(),
        created: pod.creation_timestamp().map(|created| created.0),
        running: phase(pod) == Some("Running"),
        containers,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str) -> Pod {
        let container = json!({"name": "main", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
        let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
        let metadata = json!({"name": name, "uid": name, "creationTimestamp": "2026-11-01T00:00:00Z"});
        let spec = json!({"nodeName": "node", "containers": [container], "volumes": [volume]});
        let pod = json!({"metadata": metadata, "spec": spec, "status": {"phase": phase}});
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn ended_pods_are_told_from_the_others() {
        let pods =
            [("job", "Succeeded"), ("crashed", "Failed"), ("db", "Running"), ("new", "Pending"), ("lost", "Unknown")];
        let pods = pods.map(|(name, phase)| pod(name, phase));
        let claim = serde_json::from_value(json!({"metadata": {"name": "data"}})).unwrap();
        let found = used(&[claim], &pods, &[]).remove(0);
        let names = |users: &[User]| users.iter().map(|user| user.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found.pods), ["db", "new", "lost"]);
        assert_eq!(names(&found.ended), ["job", "crashed"]);
        assert!(found.ended.iter().all(|user| user.created.is_some() && !user.running));
        assert_eq!(mounting(&pods[0], "data"), None, "nothing can be frozen there");
    }
}
