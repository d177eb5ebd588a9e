//! Namespaces that are being deleted: their content goes first, then the finalizer `kubernetes`.

mod conditions;
pub(crate) mod furniture;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, DynamicObject, ListParams, PartialObjectMeta, PostParams};
use kube::{Api, Client};

use self::conditions::Findings;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::kinds::{self, Kind};
use crate::queue;
use crate::write::gone_is_fine;

const FINALIZER: &str = "kubernetes";

/// How long what is left may take to go before the next round: short at first, longer for what is held.
const SHORTEST_ROUND: SignedDuration = SignedDuration::from_millis(500);
const LONGEST_ROUND: SignedDuration = SignedDuration::from_secs(5);

pub(crate) async fn run(cluster: Arc<Cluster>) {
    let wakes = cluster.namespaces.wakes(|change| {
        let goes = change.latest().metadata.deletion_timestamp.is_some();
        Vec::from_iter(goes.then(|| change.key()))
    });
    queue::work("namespace", u32::MAX, wakes, |key| look(&cluster.client, key)).await;
}

async fn look(client: &Client, key: Key) -> Result<Option<Duration>> {
    let api: Api<Namespace> = Api::all(client.clone());
    // Asked anew: conditions written in the last round are in no cache yet.
    let Some(mut namespace) = api.get_opt(&key.name).await? else { return Ok(None) };
    let held = namespace.spec.as_ref().is_some_and(|spec| spec.finalizers.iter().flatten().count() > 0);
    let Some(Time(deleted)) = namespace.metadata.deletion_timestamp.clone().filter(|_| held) else { return Ok(None) };
    let (findings, empty) = delete_content(client, &key.name).await;
    let status = namespace.status.get_or_insert_default();
    let phase = status.phase.replace("Terminating".to_owned());
    let changed = conditions::update(status.conditions.get_or_insert_default(), &findings, Timestamp::now());
    if changed || phase.as_deref() != Some("Terminating") {
        namespace = api.replace_status(&key.name, &PostParams::default(), &namespace).await?;
    }
    if !findings.deletion_errors.is_empty() || findings.discovery_error.is_some() {
        return Err(Error::Other(format!("some content of namespace {key} could not be deleted")));
    }
    if !empty {
        return Ok(Some(pause_since(deleted, Timestamp::now())));
    }
    let spec = namespace.spec.get_or_insert_default();
    spec.finalizers.get_or_insert_default().retain(|finalizer| finalizer != FINALIZER);
    gone_is_fine(api.replace_subresource("finalize", &key.name, &PostParams::default(), &namespace).await)?;
    Ok(None)
}

/// One round: pods first and alone, then everything else. What is left, and whether nothing is.
async fn delete_content(client: &Client, namespace: &str) -> (Findings, bool) {
    let mut findings = Findings::default();
    let mut kinds = match kinds::discover(client).await {
        Ok(kinds) => kinds,
        Err(error) => {
            findings.discovery_error = Some(Error::from(error).to_string());
            return (findings, false);
        }
    };
    kinds.retain(Kind::is_namespaced);
    let (pods, others): (Vec<Kind>, Vec<Kind>) = kinds.into_iter().partition(|kind| kind.is("v1", "Pod"));
    for kind in &pods {
        delete_all(client, kind, namespace, &mut findings).await;
    }
    if !findings.remaining.is_empty() {
        // Kubernetes does not count pods that end in their own time as remaining.
        return (Findings { deletion_errors: findings.deletion_errors, ..Findings::default() }, false);
    }
    for kind in &others {
        delete_all(client, kind, namespace, &mut findings).await;
    }
    let empty = findings.remaining.is_empty();
    (findings, empty)
}

async fn delete_all(client: &Client, kind: &Kind, namespace: &str, findings: &mut Findings) {
    match delete_kind(client, kind, namespace).await.map_err(Error::from) {
        Ok(left) if left.is_empty() => {}
        Ok(left) => {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            findings.remaining.insert(name, left.len());
            for finalizer in left.into_iter().flat_map(|object| object.metadata.finalizers.unwrap_or_default()) {
                *findings.finalizers.entry(finalizer).or_default() += 1;
            }
        }
        // A kind that went meanwhile took its objects along.
        Err(error) if error.is_not_found() => {}
        Err(error) => findings.deletion_errors.push(error.to_string()),
    }
}

async fn delete_kind(
    client: &Client,
    kind: &Kind,
    namespace: &str,
) -> kube::Result<Vec<PartialObjectMeta<DynamicObject>>> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind.resource);
    let present = api.list_metadata(&ListParams::default()).await?.items;
    if present.is_empty() {
        return Ok(present);
    }
    api.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
    Ok(api.list_metadata(&ListParams::default()).await?.items)
}

/// A quarter of the time that it has taken so far.
fn pause_since(deleted: Timestamp, now: Timestamp) -> Duration {
    let quarter = now.duration_since(deleted) / 4;
    quarter.clamp(SHORTEST_ROUND, LONGEST_ROUND).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_for_long_is_asked_about_less_often() {
        let deleted = Timestamp::UNIX_EPOCH;
        let after = |seconds| pause_since(deleted, deleted + SignedDuration::from_secs(seconds));
        let wanted = [500, 2_000, 5_000].map(Duration::from_millis);
        assert_eq!([0, 8, 3600].map(after), wanted);
    }
}
