//! The pods of hooks: how each is, judged by the container that runs the hook, not by the pod's phase. What others inject
//! into a pod may never end.

use boathook_api::{DeploymentLifecycle, words::ROLLOUT_LABEL};
use boathook_decide::deployment_lifecycle::{End, HookPod, stage_of};
use jiff::SignedDuration;
use k8s_openapi::{
    api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

/// Why the kubelet has ended a pod whose time was over.
const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

/// Of a container that a kubelet had ended and then lost sight of. It counts that as one more start.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// Without what it wrote. It is judged by the container of this name: the hook's, as it is recorded.
pub(super) fn seen(pod: &Pod, container_name: Option<&str>) -> HookPod {
    let container = container(pod, container_name);
    HookPod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        rollout: pod.labels().get(ROLLOUT_LABEL).cloned().unwrap_or_default(),
        live: is_live(pod),
        gone_by: pod.metadata.deletion_timestamp.as_ref().map(|Time(gone)| *gone),
        failures: container.map_or(0, |container| failures(pod, container)),
        last_failure: container.and_then(last_failure),
        runs: container.is_some_and(runs),
        waiting: waiting(pod, container),
        end: end(pod, container),
        log_tail: None,
        owned_by_deployment: pod.owner_references().iter().any(|owner| owner.kind == "Deployment"),
    }
}

/// Whether anything in it may still run.
pub(super) fn is_live(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

/// The name of the container that runs the hook, from the record of the rollout: a user may patch the annotations of a
/// pod. Absent if the rollout has no hook at the pod's stage: it is the pod of an earlier rollout.
pub(super) fn container_name<'a>(object: &'a DeploymentLifecycle, pod: &Pod) -> Option<&'a str> {
    let rollout = object.status.as_ref()?.rollout.as_ref()?;
    Some(&rollout.hooks.hook(stage_of(pod)?)?.exec_new_pod.container_name)
}

fn container<'a>(pod: &'a Pod, name: Option<&str>) -> Option<&'a ContainerStatus> {
    let name = name?;
    pod.status.as_ref()?.container_statuses.as_ref()?.iter().find(|container| container.name == name)
}

/// Whether the command of this container was started again: what the one before wrote is the log of the previous one.
pub(super) fn runs_again(pod: &Pod, container_name: Option<&str>) -> bool {
    container(pod, container_name).is_some_and(|container| container.restart_count > 0 && runs(container))
}

fn runs(container: &ContainerStatus) -> bool {
    container.state.as_ref().is_some_and(|state| state.running.is_some())
}

fn terminated(container: Option<&ContainerStatus>) -> Option<&ContainerStateTerminated> {
    container?.state.as_ref()?.terminated.as_ref()
}

/// How its command ended; and why, if that was not of its own doing: it could not be started, had too little memory.
fn exit_text(terminated: &ContainerStateTerminated) -> String {
    let ended = format!("the hook ended with exit code {}", terminated.exit_code);
    let why = terminated.reason.as_deref().filter(|reason| *reason != "Error");
    match (why, terminated.message.as_deref().filter(|message| !message.is_empty())) {
        (Some(why), Some(message)) => format!("{ended}: {why}: {message}"),
        (Some(why), None) => format!("{ended}: {why}"),
        (None, _) => ended,
    }
}

/// How its command failed when it did so last.
fn last_failure(container: &ContainerStatus) -> Option<String> {
    let states = [container.state.as_ref(), container.last_state.as_ref()];
    let mut ended = states.into_iter().flatten().filter_map(|state| state.terminated.as_ref());
    ended.find(|terminated| terminated.exit_code != 0).map(exit_text)
}

/// How often its command has failed so far. One that was stopped has not, nor one that was never started.
fn failures(pod: &Pod, container: &ContainerStatus) -> i32 {
    let ended_again = match container.state.as_ref() {
        Some(state) if state.running.is_some() => false,
        Some(state) => match &state.terminated {
            Some(terminated) => terminated.exit_code != 0 && !was_taken_away(pod, terminated),
            None => {
                let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
                last.is_some_and(|terminated| !was_taken_away(pod, terminated))
            }
        },
        None => false,
    };
    let states = [&container.state, &container.last_state];
    let mut ended = states.into_iter().flatten().filter_map(|state| state.terminated.as_ref());
    let was_lost = ended.any(|terminated| terminated.reason.as_deref() == Some(STATUS_UNKNOWN));
    (container.restart_count - i32::from(was_lost)).max(0) + i32::from(ended_again)
}

fn end(pod: &Pod, container: Option<&ContainerStatus>) -> Option<End> {
    let status = pod.status.as_ref()?;
    let exit = terminated(container);
    let is_over = status.reason.as_deref() == Some(DEADLINE_EXCEEDED);
    let stopped = |exit| was_taken_away(pod, exit) || (is_over && is_late(pod, exit));
    if exit.is_some_and(|exit| exit.exit_code == 0 && !stopped(exit)) {
        return Some(End::Succeeded);
    }
    let tried_again = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) == Some("OnFailure");
    let said = |fallback: &str| match (&status.reason, &status.message) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(reason), None) => reason.clone(),
        (None, Some(message)) => message.clone(),
        (None, None) => fallback.to_owned(),
    };
    match (is_live(pod), exit) {
        (false, _) if is_over => Some(End::Exhausted),
        (false, _) if status.reason.is_some() => Some(End::Lost(said("the hook pod was disrupted"))),
        (false, Some(exit)) if was_deleted(pod, exit) => Some(End::Lost(said("the hook pod was deleted"))),
        (false, Some(exit)) if is_disrupted(pod, exit) => Some(End::Lost(said("the hook pod was disrupted"))),
        (true, Some(exit)) if tried_again || stopped(exit) => None,
        (_, Some(exit)) => Some(End::Failed(exit_text(exit))),
        (false, None) => Some(End::Lost(said("the hook pod failed before its command ran"))),
        (true, None) => None,
    }
}

/// Whether its command was ended by whoever took its pod away, not by itself; whatever its exit code says of that.
fn was_taken_away(pod: &Pod, exit: &ContainerStateTerminated) -> bool {
    let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref());
    let by_its_pod = reason.is_some_and(|reason| reason != DEADLINE_EXCEEDED);
    by_its_pod || was_deleted(pod, exit) || is_disrupted(pod, exit)
}

/// Whether its command ended when the time of its pod was over: what was injected beside it may have run on until then.
fn is_late(pod: &Pod, exit: &ContainerStateTerminated) -> bool {
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    let seconds = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    match (started, seconds, &exit.finished_at) {
        (Some(Time(started)), Some(seconds), Some(Time(ended))) => {
            *ended >= *started + SignedDuration::from_secs(seconds)
        }
        _ => true,
    }
}

/// Whether somebody meant to take its pod away before its command ended.
fn is_disrupted(pod: &Pod, exit: &ContainerStateTerminated) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut disruptions = conditions.filter(|one| one.type_ == "DisruptionTarget" && one.status == "True");
    let before = |since: &Option<Time>| match (since, &exit.finished_at) {
        (Some(Time(since)), Some(Time(ended))) => since <= ended,
        _ => true,
    };
    disruptions.any(|one| before(&one.last_transition_time))
}

/// Whether its pod was deleted before its command ended. The kubelet says how that ended before the pod is gone.
fn was_deleted(pod: &Pod, exit: &ContainerStateTerminated) -> bool {
    let Some(Time(gone)) = &pod.metadata.deletion_timestamp else { return false };
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
    exit.finished_at.as_ref().is_none_or(|Time(ended)| *ended >= *gone - grace)
}

/// What it waits for, in a word that does not change from try to try.
fn waiting(pod: &Pod, container: Option<&ContainerStatus>) -> Option<String> {
    let status = pod.status.as_ref()?;
    let scheduled = status.conditions.iter().flatten().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    if let Some(condition) = scheduled {
        let message = condition.message.as_deref().unwrap_or("no node accepts the hook pod");
        return Some(format!("the hook pod waits for a node: {message}"));
    }
    let waiting = container?.state.as_ref()?.waiting.as_ref()?;
    match waiting.reason.as_deref()? {
        "ContainerCreating" | "PodInitializing" => None,
        "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" | "InvalidImageName" => {
            let image = container.map(|container| container.image.as_str()).unwrap_or_default();
            Some(format!("the kubelet cannot pull image `{image}`"))
        }
        "CrashLoopBackOff" => None,
        other => Some(format!("the hook container waits: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn why_a_command_ended_is_said_if_it_was_not_of_its_own_doing() {
        let text = |state| exit_text(&serde_json::from_value(state).unwrap());
        assert_eq!(text(json!({"exitCode": 1, "reason": "Error"})), "the hook ended with exit code 1");
        assert_eq!(
            text(json!({"exitCode": 137, "reason": "OOMKilled"})),
            "the hook ended with exit code 137: OOMKilled"
        );
        let not_started = json!({"exitCode": 128, "reason": "StartError", "message": "no such file"});
        assert_eq!(text(not_started), "the hook ended with exit code 128: StartError: no such file");
    }

    #[test]
    fn how_it_failed_last_is_known_while_it_is_tried_again() {
        let failed = |exit: i32| json!({"terminated": {"exitCode": exit, "reason": "Error"}});
        let container = |state: Value, last: Value| {
            let fields = json!({"name": "web", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
                "state": state, "lastState": last});
            last_failure(&serde_json::from_value(fields).unwrap())
        };
        let waiting = || json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert_eq!(container(waiting(), failed(3)).as_deref(), Some("the hook ended with exit code 3"));
        assert_eq!(container(failed(4), failed(3)).as_deref(), Some("the hook ended with exit code 4"));
        assert_eq!(container(waiting(), json!({})), None);
    }

    /// With the exit code 143 of its hook's container at 12:00:05, and these fields.
    fn pod(phase: &str, restart: &str, metadata: Value) -> HookPod {
        ended(143, phase, restart, &metadata, json!({}))
    }

    fn ended(exit: i32, phase: &str, restart: &str, metadata: &Value, status: Value) -> HookPod {
        let terminated = json!({"terminated": {"exitCode": exit, "finishedAt": "2026-11-16T12:00:05Z"}});
        let mut pod = json!({
            "metadata": {"name": "hook"},
            "spec": {"containers": [], "restartPolicy": restart, "activeDeadlineSeconds": 60},
            "status": {"phase": phase, "containerStatuses": [{"name": "web", "image": "i", "imageID": "", "ready": false,
                "restartCount": 0, "state": terminated}]},
        });
        for (place, fields) in [("metadata", metadata), ("status", &status)] {
            for (name, value) in fields.as_object().expect("fields are an object") {
                pod[place][name] = value.clone();
            }
        }
        seen(&serde_json::from_value(pod).expect("it is a pod"), Some("web"))
    }

    #[test]
    fn a_command_that_the_deletion_of_its_pod_ends_has_not_failed() {
        let deleted = json!({"deletionTimestamp": "2026-11-16T12:00:34Z", "deletionGracePeriodSeconds": 30});
        assert_eq!(pod("Running", "Never", deleted.clone()).end, None, "it is waited for until all of it has ended");
        assert_eq!(pod("Failed", "Never", deleted.clone()).end, Some(End::Lost("the hook pod was deleted".to_owned())));
        assert_eq!(pod("Failed", "OnFailure", deleted).end, Some(End::Lost("the hook pod was deleted".to_owned())));
    }

    #[test]
    fn only_a_command_that_ended_by_itself_counts_as_failed() {
        let failures = |metadata: &Value, status| ended(143, "Failed", "OnFailure", metadata, status).failures;
        assert_eq!(failures(&json!({}), json!({})), 1);
        let deleted = json!({"deletionTimestamp": "2026-11-16T12:00:34Z", "deletionGracePeriodSeconds": 30});
        assert_eq!(failures(&deleted, json!({})), 0);
        assert_eq!(failures(&json!({}), json!({"reason": "Evicted"})), 0);
        let disrupted = json!({"type": "DisruptionTarget", "status": "True"});
        assert_eq!(failures(&json!({}), json!({"conditions": [disrupted]})), 0);
        let late = json!({"reason": "DeadlineExceeded", "startTime": "2026-11-16T11:59:05Z"});
        assert_eq!(failures(&json!({}), late), 1, "it did not manage in time");
    }

    #[test]
    fn a_command_that_its_node_lost_sight_of_when_it_evicted_the_pod_has_not_failed() {
        let lost = json!({"terminated": {"exitCode": 137, "reason": STATUS_UNKNOWN}});
        let failures = |state: Value, last: Value, status: Value| {
            let container = json!({"name": "web", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
                "state": state, "lastState": last});
            let mut status = status;
            status["containerStatuses"] = json!([container]);
            ended(143, "Failed", "OnFailure", &json!({}), status).failures
        };
        let evicted = || json!({"reason": "Evicted"});
        assert_eq!(failures(json!({"waiting": {}}), lost.clone(), evicted()), 0);
        assert_eq!(failures(lost.clone(), json!({}), evicted()), 0);
        assert_eq!(failures(lost, json!({}), json!({})), 1, "nobody took it away: it may have failed");
        let failed = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
        assert_eq!(failures(json!({"waiting": {}}), failed, json!({})), 2, "it is tried again");
    }

    #[test]
    fn a_command_that_is_told_to_stop_has_not_succeeded_whatever_it_says() {
        let deleted = json!({"deletionTimestamp": "2026-11-16T12:00:34Z", "deletionGracePeriodSeconds": 30});
        let later = json!({"deletionTimestamp": "2026-11-16T12:00:36Z", "deletionGracePeriodSeconds": 30});
        let zero = |phase, metadata: &Value, status| ended(0, phase, "Never", metadata, status).end;
        assert_eq!(zero("Running", &deleted, json!({})), None);
        assert_eq!(zero("Succeeded", &deleted, json!({})), Some(End::Lost("the hook pod was deleted".to_owned())));
        assert_eq!(zero("Running", &later, json!({})), Some(End::Succeeded), "it had ended by itself");
        let disrupted = |since: &str| {
            let condition = json!({"type": "DisruptionTarget", "status": "True", "lastTransitionTime": since});
            json!({"conditions": [condition]})
        };
        let lost = Some(End::Lost("the hook pod was disrupted".to_owned()));
        assert_eq!(zero("Running", &json!({}), disrupted("2026-11-16T12:00:01Z")), None);
        assert_eq!(zero("Succeeded", &json!({}), disrupted("2026-11-16T12:00:01Z")), lost);
        assert_eq!(zero("Succeeded", &json!({}), disrupted("2026-11-16T12:00:06Z")), Some(End::Succeeded));
        let evicted = json!({"reason": "Evicted", "message": "no disk"});
        assert_eq!(zero("Failed", &json!({}), evicted), Some(End::Lost("Evicted: no disk".to_owned())));
        let late = |started: &str| json!({"reason": "DeadlineExceeded", "startTime": started});
        assert_eq!(zero("Failed", &json!({}), late("2026-11-16T11:59:05Z")), Some(End::Exhausted));
        let in_time = zero("Failed", &json!({}), late("2026-11-16T11:59:06Z"));
        assert_eq!(in_time, Some(End::Succeeded), "only what was injected beside it was late");
    }

    #[test]
    fn a_command_that_had_failed_before_its_pod_was_deleted_has_failed() {
        let failed = Some(End::Failed("the hook ended with exit code 143".to_owned()));
        let later = json!({"deletionTimestamp": "2026-11-16T12:00:36Z", "deletionGracePeriodSeconds": 30});
        assert_eq!(pod("Failed", "Never", json!({})).end, failed);
        assert_eq!(pod("Failed", "Never", later).end, failed);
        assert_eq!(pod("Running", "OnFailure", json!({})).end, None, "it is tried again");
    }
}
