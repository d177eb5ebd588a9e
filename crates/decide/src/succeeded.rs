//! The condition `Succeeded`, the same for every kind: Unknown until the end is known, then True or False.
//!
//! It is derived from the rest of a status just before that is written, so it never contradicts the rest.

use boathook_api::{
    application_snapshot::{ApplicationSnapshotSpec, ApplicationSnapshotStatus, Consistency, Phase},
    execution_hook::ExecutionHookStatus,
    notification::NotificationStatus,
    pod_notification::PodNotificationStatus,
    words::{condition, reason},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::conditions;

/// What the condition says: status, reason, message.
type Word = (&'static str, String, String);

fn in_progress() -> Word {
    ("Unknown", reason::IN_PROGRESS.to_owned(), String::new())
}

fn as_said(status: &'static str, said: &Condition) -> Word {
    (status, said.reason.clone(), said.message.clone())
}

pub(crate) fn set(conditions: &mut Vec<Condition>, word: Word, generation: Option<i64>, now: Timestamp) {
    let (status, reason, message) = word;
    let saying = conditions::Saying { kind: condition::SUCCEEDED, status, reason: &reason, message: &message };
    conditions::set(conditions, saying, generation, now);
}

/// Every handler ran and succeeded. A pod that declares no such notifier is not a success.
pub(crate) fn of_pod_notification(status: &PodNotificationStatus) -> Word {
    of_completion(&status.conditions)
}

/// At least one pod was notified, and none failed. Under AllPods only a failure is final.
pub(crate) fn of_notification(status: &NotificationStatus) -> Word {
    match of_completion(&status.conditions) {
        ("Unknown", ..) if status.failed_count > 0 => {
            ("False", reason::FAILED.to_owned(), format!("failed in {} pod(s)", status.failed_count))
        }
        word => word,
    }
}

fn of_completion(conditions: &[Condition]) -> Word {
    match conditions::find(conditions, condition::COMPLETE).filter(|complete| complete.status == "True") {
        Some(complete) if complete.reason == reason::SUCCEEDED => as_said("True", complete),
        Some(complete) => as_said("False", complete),
        None => in_progress(),
    }
}

/// Every PreAction succeeded, what it did lasted until the thaw was requested, and every PostAction succeeded.
pub(crate) fn of_execution_hook(status: &ExecutionHookStatus) -> Word {
    let frozen = conditions::find(&status.conditions, condition::FROZEN);
    let cut_short = [reason::PRE_ACTION_FAILED, reason::EXPIRED, reason::SESSION_LOST];
    let is_failure =
        |frozen: &&Condition| status.pre_action_succeed == Some(false) || cut_short.contains(&frozen.reason.as_str());
    let thawed = conditions::find(&status.conditions, condition::THAWED);
    match (frozen.filter(is_failure), thawed, status.post_action_succeed) {
        (Some(frozen), _, _) => as_said("False", frozen),
        (None, Some(thawed), Some(true)) if thawed.reason == reason::POD_GONE => as_said("False", thawed),
        (None, Some(thawed), Some(true)) if thawed.status == "Unknown" => as_said("Unknown", thawed),
        (None, Some(thawed), Some(true)) => as_said("True", thawed),
        (None, Some(thawed), Some(false)) => as_said("False", thawed),
        (None, _, _) => in_progress(),
    }
}

/// The snapshot is as consistent as its hooks were to make it, and thawed.
pub(crate) fn of_application_snapshot(spec: &ApplicationSnapshotSpec, status: &ApplicationSnapshotStatus) -> Word {
    let said = |kind| conditions::find(&status.conditions, kind);
    if !status.phase.is_terminal() {
        return in_progress();
    }
    let thawed = said(condition::THAWED).filter(|thawed| thawed.status != "True");
    let complete = said(condition::COMPLETE).filter(|_| status.phase == Phase::Complete);
    match (said(condition::FAILED), thawed, complete) {
        (Some(failed), _, _) => as_said("False", failed),
        (None, Some(thawed), _) if thawed.reason == reason::PROCESS_MAY_REMAIN => as_said("Unknown", thawed),
        (None, Some(thawed), _) => as_said("False", thawed),
        (None, None, Some(complete)) => {
            let reached = status.consistency == Some(Consistency::Application) || spec.execution_hook_infos.is_empty();
            let failure = status.failure.as_ref().filter(|_| !reached).map(|failure| failure.reason.clone());
            let (truth, _, message) = as_said(if reached { "True" } else { "False" }, complete);
            (truth, failure.unwrap_or_else(|| complete.reason.clone()), message)
        }
        (None, None, None) => in_progress(),
    }
}

/// The rollout is complete; False if it was aborted, or if its hooks cannot be run until a person changes something.
pub(crate) fn of_deployment_lifecycle(conditions: &[Condition]) -> Word {
    let said = |kind| conditions::find(conditions, kind);
    let is_true = |one: &&Condition| one.status == "True";
    let needs_a_person = |accepted: &&Condition| {
        let reasons = [reason::STRATEGY, reason::REFUSED, reason::INVALID];
        accepted.status == "False" && reasons.contains(&accepted.reason.as_str())
    };
    match (said(condition::FAILED), said(condition::COMPLETE), said(condition::ACCEPTED)) {
        (Some(failed), _, _) if is_true(&failed) => as_said("False", failed),
        (_, _, Some(accepted)) if needs_a_person(&accepted) => as_said("False", accepted),
        (_, Some(complete), _) if is_true(&complete) => as_said("True", complete),
        (_, Some(complete), _) => as_said("Unknown", complete),
        (_, None, _) => in_progress(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn conditions(all: &[(&str, &str, &str)]) -> Value {
        let one = |(kind, status, reason): &(&str, &str, &str)| {
            json!({"type": kind, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn undeclared_notifier_is_not_a_success() {
        let of = |state: &str, reason: &str| {
            let conditions = conditions(&[("Complete", "True", reason)]);
            of_pod_notification(&from_value(json!({"state": state, "conditions": conditions})).unwrap()).0
        };
        assert_eq!(of("Succeeded", "Succeeded"), "True");
        assert_eq!(of("Succeeded", "NoMatchingNotifier"), "False");
        assert_eq!(of("Failed", "Failed"), "False");
        assert_eq!(of_pod_notification(&PodNotificationStatus::default()).0, "Unknown");
    }

    #[test]
    fn hook_succeeds_when_held_until_its_thaw() {
        let of = |pre: Value, post: Value, all: &[(&str, &str, &str)]| {
            let status = json!({"preActionSucceed": pre, "postActionSucceed": post, "conditions": conditions(all)});
            let (truth, reason, _) = of_execution_hook(&from_value(status).unwrap());
            (truth, reason)
        };
        let frozen = ("Frozen", "True", "Frozen");
        let requested = ("Frozen", "False", "ThawRequested");
        let thawed = ("Thawed", "True", "Thawed");
        assert_eq!(of(json!(true), json!(null), &[frozen]).0, "Unknown");
        assert_eq!(of(json!(true), json!(null), &[requested, ("Thawed", "False", "Thawing")]).0, "Unknown");
        assert_eq!(of(json!(true), json!(true), &[requested, thawed]).0, "True");
        for why in ["Expired", "SessionLost"] {
            let word = of(json!(true), json!(true), &[("Frozen", "False", why), thawed]);
            assert_eq!(word, ("False", why.to_owned()));
        }
        let refused = [("Frozen", "False", "NoTarget"), ("Thawed", "True", "NothingToUndo")];
        assert_eq!(of(json!(false), json!(true), &refused), ("False", "NoTarget".to_owned()));
        let still_frozen = [requested, ("Thawed", "False", "ThawFailed")];
        assert_eq!(of(json!(true), json!(false), &still_frozen), ("False", "ThawFailed".to_owned()));
    }

    #[test]
    fn crash_consistent_snapshot_with_hooks_has_failed() {
        let of = |hooks: Value, status: Value| {
            let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": hooks});
            let (truth, reason, _) = of_application_snapshot(&from_value(spec).unwrap(), &from_value(status).unwrap());
            (truth, reason)
        };
        let hooks = || json!([{"executionHookTemplateName": "db"}]);
        let complete = |consistency: &str, thawed: (&str, &str, &str)| {
            let conditions = conditions(&[("Complete", "True", "Cut"), thawed]);
            json!({"phase": "Complete", "consistency": consistency, "conditions": conditions,
                "failure": {"reason": "PodNotFrozen", "message": ""}})
        };
        let thawed = ("Thawed", "True", "Thawed");
        assert_eq!(of(hooks(), json!({"phase": "Cutting"})).0, "Unknown");
        assert_eq!(of(hooks(), complete("Application", thawed)).0, "True");
        assert_eq!(of(hooks(), complete("Crash", thawed)), ("False", "PodNotFrozen".to_owned()));
        assert_eq!(of(json!([]), complete("Crash", thawed)).0, "True");
        let owed = ("Thawed", "False", "ThawFailed");
        assert_eq!(of(hooks(), complete("Application", owed)), ("False", "ThawFailed".to_owned()));
        let failed = json!({"phase": "Failed", "conditions": conditions(&[("Failed", "True", "HookFailed"), thawed])});
        assert_eq!(of(hooks(), failed), ("False", "HookFailed".to_owned()));
    }

    #[test]
    fn lifecycle_has_failed_when_aborted_or_unfit() {
        let of =
            |all: &[(&str, &str, &str)]| of_deployment_lifecycle(&from_value::<Vec<_>>(conditions(all)).unwrap()).0;
        assert_eq!(of(&[]), "Unknown");
        assert_eq!(of(&[("Complete", "True", "Complete"), ("Failed", "False", "Complete")]), "True");
        assert_eq!(of(&[("Complete", "False", "Rolling"), ("Failed", "False", "Rolling")]), "Unknown");
        assert_eq!(of(&[("Complete", "False", "Aborted"), ("Failed", "True", "Aborted")]), "False");
        assert_eq!(of(&[("Accepted", "False", "Strategy")]), "False");
        assert_eq!(of(&[("Accepted", "False", "DeploymentNotFound")]), "Unknown");
    }
}
