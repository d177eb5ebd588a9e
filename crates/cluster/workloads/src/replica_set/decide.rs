//! A ReplicaSet's decisions: which pods go first, and what its status says. Pure.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// At most this many pods are made or ended in one go, as in the native controller.
pub(super) const BURST: usize = 500;

pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

#[derive(Debug, PartialEq)]
pub(super) enum Size {
    Right,
    TooFew(usize),
    TooMany(usize),
}

pub(super) fn size(wanted: i32, active: usize) -> Size {
    let wanted = usize::try_from(wanted).unwrap_or_default();
    match active.cmp(&wanted) {
        Ordering::Equal => Size::Right,
        Ordering::Less => Size::TooFew((wanted - active).min(BURST)),
        Ordering::Greater => Size::TooMany((active - wanted).min(BURST)),
    }
}

/// The `count` pods that are missed least. `related` are all pods of the ReplicaSets with the same controller.
pub(super) fn pods_to_delete(
    mut active: Vec<Arc<Pod>>,
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    if count < active.len() {
        let mut on_node: HashMap<&str, usize> = HashMap::new();
        for pod in related.iter().filter(|pod| pod::is_active(pod)) {
            *on_node.entry(pod::node(pod)).or_default() += 1;
        }
        let neighbours = |pod: &Pod| on_node.get(pod::node(pod)).copied().unwrap_or_default();
        active.sort_by(|a, b| least_missed_first(a, b, neighbours(a), neighbours(b), now));
    }
    active.truncate(count);
    active
}

fn least_missed_first(a: &Pod, b: &Pod, near_a: usize, near_b: usize, now: Timestamp) -> Ordering {
    let assigned = |pod: &Pod| !pod::node(pod).is_empty();
    let (ready_a, ready_b) = (pod::ready(a).flatten(), pod::ready(b).flatten());
    assigned(a)
        .cmp(&assigned(b))
        .then_with(|| progress(a).cmp(&progress(b)))
        .then_with(|| pod::is_ready(a).cmp(&pod::is_ready(b)))
        .then_with(|| deletion_cost(a).cmp(&deletion_cost(b)))
        .then_with(|| near_b.cmp(&near_a))
        .then_with(|| younger_first(ready_a, ready_b, a, b, now))
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| younger_first(created(a), created(b), a, b, now))
}

fn progress(pod: &Pod) -> u8 {
    match pod::phase(pod) {
        "Unknown" => 1,
        "Running" => 2,
        _ => 0,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(DELETION_COST)?.parse().ok()).unwrap_or_default()
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// The most restarts of a container, then of a sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let Some(status) = &pod.status else { return (0, 0) };
    let containers = status.container_statuses.iter().flatten().map(|container| container.restart_count).max();
    let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: Vec<&str> = init
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect();
    let sidecar_restarts = status
        .init_container_statuses
        .iter()
        .flatten()
        .filter(|container| sidecars.contains(&container.name.as_str()))
        .map(|container| container.restart_count)
        .max();
    (containers.unwrap_or_default(), sidecar_restarts.unwrap_or_default())
}

/// Younger ones first, by the binary logarithm of their age; of about the same age: by uid, so that not always the
/// youngest goes. Without a time: first.
fn younger_first(a: Option<Timestamp>, b: Option<Timestamp>, pod_a: &Pod, pod_b: &Pod, now: Timestamp) -> Ordering {
    match (a, b) {
        (a, b) if a == b => Ordering::Equal,
        (Some(a), Some(b)) => {
            let rank = |time: Timestamp| match (now.as_nanosecond() - time.as_nanosecond()).try_into() {
                Ok(age @ 1_u128..) => i64::from(age.ilog2()),
                Ok(0) | Err(_) => -1,
            };
            rank(a).cmp(&rank(b)).then_with(|| pod_a.metadata.uid.cmp(&pod_b.metadata.uid))
        }
        (a, b) => Reverse(a.is_none()).cmp(&Reverse(b.is_none())),
    }
}

/// What the status should say; `failure` is why pods could not be made or ended.
pub(super) fn status(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    terminating: usize,
    failure: Option<&str>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let before = set.status.clone().unwrap_or_default();
    let labels =
        spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.clone()).unwrap_or_default();
    let min_ready_seconds = spec.min_ready_seconds.unwrap_or_default();
    let count = |holds: &dyn Fn(&Pod) -> bool| nonzero(active.iter().filter(|pod| holds(pod)).count());
    let mut conditions = before.conditions.unwrap_or_default();
    let known = conditions.iter().any(|condition| condition.type_ == REPLICA_FAILURE);
    match failure {
        Some(message) if !known => {
            let reason = match size(spec.replicas.unwrap_or(1), active.len()) {
                Size::TooFew(_) => Some("FailedCreate"),
                Size::TooMany(_) => Some("FailedDelete"),
                Size::Right => None,
            };
            conditions.push(ReplicaSetCondition {
                type_: REPLICA_FAILURE.to_owned(),
                status: "True".to_owned(),
                reason: reason.map(str::to_owned),
                message: Some(message.to_owned()),
                last_transition_time: Some(Time(now)),
            });
        }
        None if known => conditions.retain(|condition| condition.type_ != REPLICA_FAILURE),
        Some(_) | None => {}
    }
    ReplicaSetStatus {
        replicas: count_of(active.len()),
        fully_labeled_replicas: count(&|pod| has_all(pod.metadata.labels.as_ref(), &labels)),
        ready_replicas: count(&pod::is_ready),
        available_replicas: count(&|pod| pod::is_available(pod, min_ready_seconds, now)),
        terminating_replicas: Some(count_of(terminating)),
        observed_generation: set.metadata.generation,
        conditions: (!conditions.is_empty()).then_some(conditions),
    }
}

fn has_all(labels: Option<&BTreeMap<String, String>>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

fn count_of(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Kubernetes leaves these counts out where they are zero.
fn nonzero(count: usize) -> Option<i32> {
    (count > 0).then(|| count_of(count))
}

/// When the next ready pod will have been ready for long enough.
pub(super) fn next_available(active: &[Arc<Pod>], min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    let wait = SignedDuration::from_secs(min_ready_seconds.into());
    let ready = active.iter().filter_map(|pod| pod::ready(pod).flatten());
    let waits = ready.map(|since| (since + wait).duration_since(now)).filter(|left| left.is_positive());
    waits.min().map(|left| left.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2024-01-01T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn pod(name: &str, node: &str, phase: &str, ready_since: Option<&str>) -> Arc<Pod> {
        let ready = ready_since.map(|since| json!({"type": "Ready", "status": "True", "lastTransitionTime": since}));
        let pod = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2024-01-01T10:00:00Z", "labels": {"app": "web"}},
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase, "conditions": ready.into_iter().collect::<Vec<_>>()},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn order(pods: Vec<Arc<Pod>>) -> Vec<String> {
        let count = pods.len() - 1;
        let names = pods_to_delete(pods, &[], count, now());
        names.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }

    #[test]
    fn unassigned_then_pending_then_unready_then_the_youngest_pods_go() {
        let pods = vec![
            pod("old", "n", "Running", Some("2024-01-01T01:00:00Z")),
            pod("young", "n", "Running", Some("2024-01-01T11:59:00Z")),
            pod("unready", "n", "Running", None),
            pod("pending", "n", "Pending", None),
            pod("unassigned", "", "Pending", None),
        ];
        assert_eq!(order(pods), ["unassigned", "pending", "unready", "young"]);
    }

    #[test]
    fn a_cheaper_pod_goes_before_a_younger_one() {
        let mut cheap = (*pod("cheap", "n", "Running", Some("2024-01-01T01:00:00Z"))).clone();
        cheap.metadata.annotations = Some([(DELETION_COST.to_owned(), "-5".to_owned())].into());
        let pods = vec![pod("young", "n", "Running", Some("2024-01-01T11:59:00Z")), Arc::new(cheap)];
        assert_eq!(order(pods), ["cheap"]);
    }

    #[test]
    fn of_two_nodes_the_one_with_more_pods_of_the_deployment_gives_one() {
        let pods = vec![pod("a", "one", "Running", Some(NOW)), pod("b", "two", "Running", Some(NOW))];
        let related = [pods.clone(), vec![pod("c", "two", "Running", Some(NOW))]].concat();
        let gone = pods_to_delete(pods, &related, 1, now());
        assert_eq!(gone[0].metadata.name.as_deref(), Some("b"));
    }

    #[test]
    fn ages_of_the_same_magnitude_are_told_apart_by_uid() {
        let pods = vec![
            pod("b", "n", "Running", Some("2024-01-01T11:59:30Z")),
            pod("a", "n", "Running", Some("2024-01-01T11:59:28Z")),
        ];
        assert_eq!(order(pods), ["a"]);
    }

    fn set(min_ready_seconds: i32) -> ReplicaSet {
        let set = json!({
            "metadata": {"name": "web", "generation": 3},
            "spec": {"replicas": 3, "minReadySeconds": min_ready_seconds, "selector": {},
                     "template": {"metadata": {"labels": {"app": "web"}}}},
        });
        serde_json::from_value(set).unwrap()
    }

    #[test]
    fn a_pod_is_available_only_after_being_ready_long_enough() {
        let pods = [
            pod("a", "n", "Running", Some("2024-01-01T11:59:30Z")),
            pod("b", "n", "Running", Some("2024-01-01T11:59:55Z")),
            pod("c", "n", "Running", None),
        ];
        let status = status(&set(10), &pods, 1, None, now());
        assert_eq!((status.replicas, status.ready_replicas, status.available_replicas), (3, Some(2), Some(1)));
        assert_eq!((status.fully_labeled_replicas, status.terminating_replicas), (Some(3), Some(1)));
        assert_eq!(next_available(&pods, 10, now()), Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_failure_is_a_condition_until_it_is_over() {
        let mut set = set(0);
        let failed = status(&set, &[], 0, Some("pods \"x\" is forbidden: no"), now());
        let condition = &failed.conditions.as_ref().unwrap()[0];
        assert_eq!((condition.type_.as_str(), condition.reason.as_deref()), (REPLICA_FAILURE, Some("FailedCreate")));
        set.status = Some(failed);
        assert_eq!(status(&set, &[], 0, None, now()).conditions, None);
    }

    #[test]
    fn no_more_than_a_burst_is_made_at_once() {
        assert_eq!(size(3, 3), Size::Right);
        assert_eq!(size(3, 5), Size::TooMany(2));
        assert_eq!(size(10_000, 0), Size::TooFew(BURST));
    }
}
