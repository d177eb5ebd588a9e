//! A Deployment's status: counts, and the conditions with Kubernetes' own reasons and sentences. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::numbers::{actual, available, ready, size, total, unavailable, wanted};
use crate::replica_set::REPLICA_FAILURE;

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";

pub(super) const CREATED: &str = "NewReplicaSetCreated";
pub(super) const FOUND: &str = "FoundNewReplicaSet";
pub(super) const NOT_CREATED: &str = "ReplicaSetCreateError";
const UPDATED: &str = "ReplicaSetUpdated";
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";
const RESUMED: &str = "DeploymentResumed";

/// The seconds in which something must happen; the largest number stands for none.
fn deadline(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)
}

fn condition<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

fn reason(condition: Option<&DeploymentCondition>) -> Option<&str> {
    condition.and_then(|condition| condition.reason.as_deref())
}

fn new(type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// Sets a condition; the same state for the same reason stays as it is, moved or reworded never.
fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(current) = self::condition(status, &condition.type_)
        && current.status == condition.status
    {
        if current.reason == condition.reason {
            return;
        }
        condition.last_transition_time = current.last_transition_time.clone();
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

fn remove(status: &mut DeploymentStatus, type_: &str) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != type_);
    if conditions.is_empty() {
        status.conditions = None;
    }
}

/// Notes progress, or the lack of it, if the Deployment has a deadline for it; whether it has.
pub(super) fn note_progress(
    deployment: &mut Deployment,
    status: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> bool {
    let counts = deadline(deployment).is_some();
    if counts {
        set(deployment.status.get_or_insert_default(), new(PROGRESSING, status, reason, message, now));
    }
    counts
}

pub(super) fn progress(deployment: &Deployment) -> Option<&DeploymentCondition> {
    condition(deployment.status.as_ref()?, PROGRESSING)
}

pub(super) fn is_paused(deployment: &Deployment) -> bool {
    deployment.spec.as_ref().is_some_and(|spec| spec.paused == Some(true))
}

/// Pausing and resuming are noted, so that the progress deadline does not run meanwhile. Whether anything changed.
pub(super) fn note_pause(deployment: &mut Deployment, now: Timestamp) -> bool {
    let reason = reason(progress(deployment));
    match (is_paused(deployment), reason == Some(PAUSED)) {
        _ if reason == Some(TIMED_OUT) => false,
        (true, false) => note_progress(deployment, "Unknown", PAUSED, "Deployment is paused", now),
        (false, true) => note_progress(deployment, "Unknown", RESUMED, "Deployment is resumed", now),
        (true, true) | (false, false) => false,
    }
}

/// Counts and availability, with all other conditions as they are. `sets` are all ReplicaSets, `new` the template's.
pub(super) fn counted(
    deployment: &Deployment,
    sets: &[ReplicaSet],
    new_set: Option<&ReplicaSet>,
    now: Timestamp,
) -> DeploymentStatus {
    let nonzero = |number: i32| (number != 0).then_some(number);
    let before = deployment.status.clone().unwrap_or_default();
    let is_available = total(sets, available);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(total(sets, actual)),
        updated_replicas: nonzero(new_set.map(actual).unwrap_or_default()),
        ready_replicas: nonzero(total(sets, ready)),
        available_replicas: nonzero(is_available),
        unavailable_replicas: nonzero((total(sets, size) - is_available).max(0)),
        terminating_replicas: terminating(sets),
        collision_count: before.collision_count,
        conditions: before.conditions,
    };
    let enough = is_available >= wanted(deployment) - unavailable(deployment);
    let availability = if enough {
        new(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    } else {
        new(AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now)
    };
    set(&mut status, availability);
    status
}

/// None while a ReplicaSet that was looked at does not say.
fn terminating(sets: &[ReplicaSet]) -> Option<i32> {
    let of = |set: &ReplicaSet| match &set.status {
        Some(status) => {
            status.terminating_replicas.or((status.observed_generation.unwrap_or_default() == 0).then_some(0))
        }
        None => Some(0),
    };
    sets.iter().map(of).sum()
}

/// The status of a rollout: counts, and whether it is complete, progresses, or has not for too long.
pub(super) fn of_rollout(
    deployment: &Deployment,
    sets: &[ReplicaSet],
    new_set: Option<&ReplicaSet>,
    now: Timestamp,
) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let mut status = counted(deployment, sets, new_set, now);
    if deadline(deployment).is_none() {
        remove(&mut status, PROGRESSING);
    }
    let current = condition(&before, PROGRESSING);
    let was_complete = status.replicas == status.updated_replicas && reason(current) == Some(COMPLETE);
    if deadline(deployment).is_some() && !was_complete {
        let who = match new_set {
            Some(set) => format!("ReplicaSet \"{}\"", set.name_any()),
            None => format!("Deployment \"{}\"", deployment.name_any()),
        };
        if is_complete(deployment, &status) {
            let message = format!("{who} has successfully progressed.");
            set(&mut status, new(PROGRESSING, "True", COMPLETE, &message, now));
        } else if has_progressed(&before, &status) {
            let mut condition = new(PROGRESSING, "True", UPDATED, &format!("{who} is progressing."), now);
            if let Some(current) = current.filter(|current| current.status == "True") {
                condition.last_transition_time = current.last_transition_time.clone();
            }
            // Removed first: the time of the last progress must move.
            remove(&mut status, PROGRESSING);
            set(&mut status, condition);
        } else if is_too_late(deployment, &status, now) {
            let message = format!("{who} has timed out progressing.");
            set(&mut status, new(PROGRESSING, "False", TIMED_OUT, &message, now));
        }
    }
    match replica_failure(sets, new_set) {
        Some(condition) => set(&mut status, condition),
        None => remove(&mut status, REPLICA_FAILURE),
    }
    status
}

pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let all = Some(wanted(deployment));
    let number = |number: Option<i32>| Some(number.unwrap_or_default());
    number(status.updated_replicas) == all
        && number(status.replicas) == all
        && number(status.available_replicas) == all
        && status.observed_generation.unwrap_or_default() >= deployment.metadata.generation.unwrap_or_default()
}

fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let number = |number: Option<i32>| number.unwrap_or_default();
    let old = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(after.updated_replicas) > number(before.updated_replicas)
        || old(after) < old(before)
        || number(after.ready_replicas) > number(before.ready_replicas)
        || number(after.available_replicas) > number(before.available_replicas)
}

fn is_too_late(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> bool {
    let (Some(seconds), Some(condition)) = (deadline(deployment), condition(status, PROGRESSING)) else { return false };
    match condition.reason.as_deref() {
        Some(COMPLETE) => false,
        Some(TIMED_OUT) => true,
        _ => last_progress(condition) + SignedDuration::from_secs(seconds.into()) < now,
    }
}

fn last_progress(condition: &DeploymentCondition) -> Timestamp {
    condition.last_update_time.as_ref().map(|time| time.0).unwrap_or_default()
}

fn replica_failure(sets: &[ReplicaSet], new_set: Option<&ReplicaSet>) -> Option<DeploymentCondition> {
    let statuses = new_set.into_iter().chain(sets).flat_map(|set| set.status.iter());
    let mut conditions = statuses.flat_map(|status| status.conditions.iter().flatten());
    let failure = conditions.find(|condition| condition.type_ == REPLICA_FAILURE);
    failure.map(|failure| DeploymentCondition {
        type_: failure.type_.clone(),
        status: failure.status.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
        last_update_time: failure.last_transition_time.clone(),
        last_transition_time: failure.last_transition_time.clone(),
    })
}

/// When to look again, though nothing happens: when the deadline passes.
pub(super) fn next_check(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
    let seconds = deadline(deployment)?;
    let condition = progress(deployment)?;
    if is_complete(deployment, status) || condition.reason.as_deref() == Some(TIMED_OUT) {
        return None;
    }
    let due = last_progress(condition) + SignedDuration::from_secs(seconds.into());
    // A second more: times are told in whole seconds.
    Some(due.duration_since(now).max(SignedDuration::ZERO).unsigned_abs() + Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        "2024-01-01T12:00:00Z".parse().unwrap()
    }

    fn deployment(status: Value) -> Deployment {
        let spec = json!({"replicas": 2, "progressDeadlineSeconds": 60, "selector": {}, "template": {},
                          "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}});
        let value = json!({"metadata": {"name": "web", "generation": 1}, "spec": spec, "status": status});
        serde_json::from_value(value).unwrap()
    }

    fn replica_set(name: &str, size: i32, available: i32) -> ReplicaSet {
        let status = json!({"replicas": size, "readyReplicas": available, "availableReplicas": available});
        let spec = json!({"replicas": size, "selector": {}});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec, "status": status})).unwrap()
    }

    fn words(status: &DeploymentStatus) -> Vec<String> {
        let words = |condition: &DeploymentCondition| {
            format!("{}={} {}", condition.type_, condition.status, condition.reason.as_deref().unwrap())
        };
        status.conditions.iter().flatten().map(words).collect()
    }

    #[test]
    fn a_rollout_progresses_and_completes() {
        let set = replica_set("web-1", 2, 1);
        let status = of_rollout(&deployment(json!({})), std::slice::from_ref(&set), Some(&set), now());
        assert_eq!(
            words(&status),
            ["Available=False MinimumReplicasUnavailable", "Progressing=True ReplicaSetUpdated"]
        );
        let set = replica_set("web-1", 2, 2);
        let status = of_rollout(&deployment(json!(status)), std::slice::from_ref(&set), Some(&set), now());
        assert_eq!(
            words(&status),
            ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]
        );
        let message = condition(&status, PROGRESSING).unwrap().message.as_deref();
        assert_eq!(message, Some("ReplicaSet \"web-1\" has successfully progressed."));
    }

    #[test]
    fn without_progress_for_the_deadline_it_has_failed_and_stays_so() {
        let set = replica_set("web-1", 2, 1);
        let sets = [set.clone()];
        let before = of_rollout(&deployment(json!({})), &sets, Some(&set), now());
        let deployment = deployment(json!(before));
        let in_time = of_rollout(&deployment, &sets, Some(&set), now() + SignedDuration::from_secs(60));
        assert_eq!(in_time, before);
        assert_eq!(next_check(&deployment, &before, now()), Some(Duration::from_secs(61)));
        let late = of_rollout(&deployment, &sets, Some(&set), now() + SignedDuration::from_secs(61));
        assert_eq!(words(&late)[1], "Progressing=False ProgressDeadlineExceeded");
        assert_eq!(next_check(&self::deployment(json!(late)), &late, now()), None);
    }

    #[test]
    fn pausing_and_resuming_are_noted_once() {
        let mut deployment = deployment(json!({}));
        assert!(!note_pause(&mut deployment, now()));
        deployment.spec.as_mut().unwrap().paused = Some(true);
        assert!(note_pause(&mut deployment, now()) && !note_pause(&mut deployment, now()));
        assert_eq!(words(deployment.status.as_ref().unwrap()), ["Progressing=Unknown DeploymentPaused"]);
        deployment.spec.as_mut().unwrap().paused = None;
        assert!(note_pause(&mut deployment, now()) && !note_pause(&mut deployment, now()));
        assert_eq!(words(deployment.status.as_ref().unwrap()), ["Progressing=Unknown DeploymentResumed"]);
    }

    #[test]
    fn why_pods_cannot_be_made_is_the_deployments_condition_too() {
        let mut set = replica_set("web-1", 2, 0);
        let failure = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}]);
        set.status.as_mut().unwrap().conditions = serde_json::from_value(failure).unwrap();
        let status = of_rollout(&deployment(json!({})), std::slice::from_ref(&set), Some(&set), now());
        assert!(words(&status).contains(&"ReplicaFailure=True FailedCreate".to_owned()));
        let set = replica_set("web-1", 2, 0);
        let status = of_rollout(&deployment(json!(status)), std::slice::from_ref(&set), Some(&set), now());
        assert!(!words(&status).iter().any(|words| words.starts_with("ReplicaFailure")));
    }
}
