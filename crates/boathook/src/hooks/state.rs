//! How a hook is, in one word, and why.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    words::{condition, reason},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;

use crate::output::{
    Colour,
    plain::{cut, one_line},
};

/// Of a message in a cell: `hooks describe` shows all of it.
const LONGEST_WHY: usize = 60;

/// One word for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No controller has looked at it yet.
    New,
    /// It could not run: nothing was frozen.
    Refused,
    Freezing,
    Frozen,
    Thawing,
    Thawed,
    /// A PostAction failed, and is tried again.
    ThawFailed,
    /// A person gave it up.
    Abandoned,
    /// The node does not answer, or the PodNotification is gone: the thaw is not known to have happened.
    ThawUnconfirmed,
    /// Thawed, but a PreAction that could not be ended may freeze again; then the PostAction runs once more.
    MayFreezeAgain,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::New => "New",
            Self::Refused => "Refused",
            Self::Freezing => "Freezing",
            Self::Frozen => "Frozen",
            Self::Thawing => "Thawing",
            Self::Thawed => "Thawed",
            Self::ThawFailed => "THAW FAILED",
            Self::Abandoned => "ABANDONED",
            Self::ThawUnconfirmed => "THAW UNCONFIRMED",
            Self::MayFreezeAgain => "MAY FREEZE AGAIN",
        }
    }

    pub(crate) fn colour(self) -> Colour {
        match self {
            Self::Thawed => Colour::Good,
            Self::New | Self::Freezing | Self::Frozen | Self::Thawing => Colour::Odd,
            Self::Refused | Self::ThawFailed | Self::Abandoned | Self::ThawUnconfirmed | Self::MayFreezeAgain => {
                Colour::Bad
            }
        }
    }
}

pub(crate) fn state(hook: &ExecutionHook) -> State {
    let found = |kind| find(hook, kind);
    if found(condition::ACCEPTED).is_some_and(|accepted| accepted.status == "False") {
        return State::Refused;
    }
    if let Some(thawed) = found(condition::THAWED) {
        return match (thawed.status.as_str(), thawed.reason.as_str()) {
            ("True", _) => State::Thawed,
            (_, reason::THAW_FAILED) => State::ThawFailed,
            (_, reason::ABANDONED) => State::Abandoned,
            (_, reason::THAW_UNCONFIRMED) => State::ThawUnconfirmed,
            (_, reason::PROCESS_MAY_REMAIN) => State::MayFreezeAgain,
            _ => State::Thawing,
        };
    }
    match found(condition::FROZEN) {
        Some(frozen) if frozen.status == "True" => State::Frozen,
        Some(_) => State::Freezing,
        None => State::New,
    }
}

/// Why it was thawed or refused, unless a request was the reason.
pub(crate) fn why(hook: &ExecutionHook) -> Option<&Condition> {
    let frozen = find(hook, condition::FROZEN)?;
    let usual = [reason::FREEZING, reason::FROZEN, reason::THAW_REQUESTED];
    (!usual.contains(&frozen.reason.as_str())).then_some(frozen)
}

/// Why its state is what it is, for a cell of a table: a reason; or what the thaw waits for, cut to fit.
pub(super) fn why_in_short(hook: &ExecutionHook) -> Option<String> {
    let thawed = || match state(hook) {
        State::ThawFailed | State::Abandoned | State::ThawUnconfirmed | State::MayFreezeAgain => {
            find(hook, condition::THAWED).map(|thawed| cut(&one_line(&thawed.message), LONGEST_WHY))
        }
        State::New | State::Refused | State::Freezing | State::Frozen | State::Thawing | State::Thawed => None,
    };
    why(hook).map(|why| why.reason.clone()).or_else(thawed)
}

/// When it thaws by itself, if it is frozen.
pub(crate) fn expires(hook: &ExecutionHook) -> Option<Timestamp> {
    let status = hook.status.as_ref()?;
    let after = status.recorded.as_ref()?.expiration_seconds?;
    let begun = status.freeze_window.as_ref()?.start_time.as_ref()?;
    Some(begun.0 + jiff::SignedDuration::from_secs(after.into()))
}

/// The ApplicationSnapshot that it was made for, if any.
pub(crate) fn snapshot_of(hook: &ExecutionHook) -> Option<&str> {
    let mut owners = hook.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.kind == ApplicationSnapshot::kind(&())).map(|owner| owner.name.as_str())
}

fn find<'a>(hook: &'a ExecutionHook, kind: &str) -> Option<&'a Condition> {
    hook.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == kind)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A hook with these conditions: type, status, reason.
    pub(crate) fn hook(conditions: &[(&str, &str, &str)]) -> ExecutionHook {
        let condition = |(kind, status, reason): &(&str, &str, &str)| {
            json!({"type": kind, "status": status, "reason": reason, "message": "it says why",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook",
            "metadata": {"name": "nightly-0", "namespace": "sea", "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "boathook.dev/v1alpha1", "kind": "ApplicationSnapshot",
                    "name": "nightly", "uid": "u", "controller": true}]},
            "spec": {"executionHookTemplateName": "mysql"},
            "status": {"conditions": conditions.iter().map(condition).collect::<Vec<Value>>(),
                "recorded": {"policy": "ExecuteAll", "preAction": {"exec": {"command": ["quiesce"]}},
                    "postAction": {"exec": {"command": ["unquiesce"]}}, "expirationSeconds": 30},
                "freezeWindow": {"startTime": "2026-01-01T00:00:01.000000Z"},
                "containerExecutionHookStatuses": [{"podName": "mysql-0", "podUID": "p", "containerName": "mysql",
                    "preActionStatus": {"actionTimestamp": "2026-01-01T00:00:01.000000Z",
                        "completeTimestamp": "2026-01-01T00:00:01.250000Z", "actionSucceed": true, "attempts": 1}}]},
        }))
        .unwrap()
    }

    #[test]
    fn the_word_is_that_of_the_latest_condition() {
        let accepted = ("Accepted", "True", "Pinned");
        for (conditions, wanted) in [
            (vec![], State::New),
            (vec![("Accepted", "False", "NoTarget"), ("Thawed", "True", "NothingToUndo")], State::Refused),
            (vec![accepted, ("Frozen", "False", "Freezing")], State::Freezing),
            (vec![accepted, ("Frozen", "True", "Frozen")], State::Frozen),
            (vec![("Frozen", "False", "Expired"), ("Thawed", "False", "Thawing")], State::Thawing),
            (vec![("Frozen", "False", "Expired"), ("Thawed", "True", "Thawed")], State::Thawed),
            (vec![("Thawed", "False", "ThawFailed")], State::ThawFailed),
            (vec![("Thawed", "Unknown", "ThawUnconfirmed")], State::ThawUnconfirmed),
            (vec![("Thawed", "Unknown", "ProcessMayRemain")], State::MayFreezeAgain),
            (vec![("Thawed", "False", "Abandoned")], State::Abandoned),
        ] {
            assert_eq!(state(&hook(&conditions)), wanted, "{conditions:?}");
        }
    }

    #[test]
    fn only_what_nobody_wished_for_is_a_reason() {
        assert_eq!(why(&hook(&[("Frozen", "False", "ThawRequested")])), None);
        let expired = hook(&[("Frozen", "False", "Expired")]);
        assert_eq!(why(&expired).map(|why| why.reason.as_str()), Some("Expired"));
        assert_eq!(expires(&expired), Some("2026-01-01T00:00:31Z".parse().unwrap()));
        assert_eq!(snapshot_of(&expired), Some("nightly"));
    }
}
