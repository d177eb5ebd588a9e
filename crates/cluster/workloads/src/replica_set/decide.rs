//! A ReplicaSet's decisions: which pods go first, and what its status says. Pure.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::pod;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// At most this many pods are made or ended in one go, as in the native controller.
const BURST: isize = 500;

pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// How many pods it has too few; negative: too many.
pub(super) fn missing(set: &ReplicaSet, active: usize) -> isize {
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    (wanted as isize - active.cast_signed()).clamp(-BURST, BURST)
}

/// The `count` pods that are missed least. (The native order also looks at how many pods share a node: here all do.)
pub(super) fn pods_to_delete(mut active: Vec<Arc<Pod>>, count: usize, now: Timestamp) -> Vec<Arc<Pod>> {
    if count < active.len() {
        active.sort_by(|a, b| least_missed_first(a, b, now));
    }
    active.truncate(count);
    active
}

fn least_missed_first(a: &Pod, b: &Pod, now: Timestamp) -> Ordering {
    let steps = |pod: &Pod| (!pod::node(pod).is_empty(), progress(pod), pod::is_ready(pod), deletion_cost(pod));
    let ready = |pod: &Pod| pod::ready(pod).flatten();
    let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    steps(a)
        .cmp(&steps(b))
        .then_with(|| younger_first(ready(a), ready(b), a, b, now))
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
    pod.annotations().get(DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// The most restarts of a container, then of a sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let Some(status) = &pod.status else { return (0, 0) };
    let most = |statuses: &mut dyn Iterator<Item = &ContainerStatus>| statuses.map(|status| status.restart_count).max();
    let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars = init.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let sidecars: Vec<&str> = sidecars.map(|container| container.name.as_str()).collect();
    let of_init = status.init_container_statuses.iter().flatten();
    let containers = most(&mut status.container_statuses.iter().flatten());
    let sidecars = most(&mut of_init.filter(|status| sidecars.contains(&status.name.as_str())));
    (containers.unwrap_or_default(), sidecars.unwrap_or_default())
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
    failure: Option<String>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let labels = spec.template.and_then(|template| template.metadata?.labels).unwrap_or_default();
    let min_ready_seconds = spec.min_ready_seconds.unwrap_or_default();
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    // Kubernetes leaves these counts out where they are zero.
    let count = |holds: &dyn Fn(&Pod) -> bool| {
        Some(number(active.iter().filter(|pod| holds(pod)).count())).filter(|count| *count > 0)
    };
    let mut conditions = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let known = conditions.iter().any(|condition| condition.type_ == REPLICA_FAILURE);
    if failure.is_none() {
        conditions.retain(|condition| condition.type_ != REPLICA_FAILURE);
    } else if !known {
        let reason = if missing(set, active.len()) > 0 { "FailedCreate" } else { "FailedDelete" };
        conditions.push(ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(reason.to_owned()),
            message: failure,
            last_transition_time: Some(Time(now)),
        });
    }
    ReplicaSetStatus {
        replicas: number(active.len()),
        fully_labeled_replicas: count(&|pod| labels.iter().all(|(key, value)| pod.labels().get(key) == Some(value))),
        ready_replicas: count(&pod::is_ready),
        available_replicas: count(&|pod| pod::is_available(pod, min_ready_seconds, now)),
        terminating_replicas: Some(number(terminating)),
        observed_generation: set.metadata.generation,
        conditions: (!conditions.is_empty()).then_some(conditions),
    }
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
        let names = pods_to_delete(pods, count, now());
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
        let failed = status(&set, &[], 0, Some("pods \"x\" is forbidden: no".to_owned()), now());
        let condition = &failed.conditions.as_ref().unwrap()[0];
        assert_eq!((condition.type_.as_str(), condition.reason.as_deref()), (REPLICA_FAILURE, Some("FailedCreate")));
        set.status = Some(failed);
        assert_eq!(status(&set, &[], 0, None, now()).conditions, None);
    }

    #[test]
    fn no_more_than_a_burst_is_made_at_once() {
        let mut set = set(0);
        assert_eq!([3, 5].map(|active| missing(&set, active)), [0, -2]);
        set.spec.as_mut().unwrap().replicas = Some(10_000);
        assert_eq!(missing(&set, 0), BURST);
    }
}
