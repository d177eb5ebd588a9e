//! How a thaw that somebody asked for went, as the objects tell it: a pure look at a hook and its PodNotifications.

use std::collections::BTreeMap;

use boathook_api::{
    ExecutionHook, PodNotification,
    words::{condition, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt;

use crate::hooks::{State, state};

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Thawed,
    /// A pod was gone before its PostAction ran.
    PodGone,
    /// A PostAction failed since it was asked for.
    Failed,
    /// A person gave it up.
    Abandoned,
    /// Nobody hears of the node.
    Unconfirmed,
    /// Every PostAction succeeded, but a PreAction may freeze again.
    MayFreezeAgain,
}

impl Outcome {
    pub(super) fn is_good(self, forced: bool) -> bool {
        match self {
            Self::Thawed => true,
            Self::Abandoned => forced,
            Self::PodGone | Self::Failed | Self::Unconfirmed | Self::MayFreezeAgain => false,
        }
    }
}

/// When the undos had last ended before the thaw was asked for, by PodNotification and container: what failed then is
/// no news.
#[derive(Clone, Debug, Default)]
pub(super) struct Before(BTreeMap<(String, String), MicroTime>);

impl Before {
    pub(super) fn of<'a>(children: impl Iterator<Item = &'a PodNotification>) -> Self {
        Self(children.flat_map(ends).collect())
    }
}

/// The undos of a PodNotification that have ended.
fn ends(child: &PodNotification) -> impl Iterator<Item = ((String, String), MicroTime)> {
    let name = child.name_any();
    let containers = child.status.iter().flat_map(|status| &status.containers);
    containers.filter_map(move |record| {
        Some(((name.clone(), record.name.clone()), record.undo.as_ref()?.complete_time.clone()?))
    })
}

/// None while it is not known.
pub(super) fn outcome(hook: Option<&ExecutionHook>, children: &[&PodNotification], before: &Before) -> Option<Outcome> {
    // A hook that was deleted goes when its PostActions have ended, and not before.
    let Some(hook) = hook else { return Some(Outcome::Thawed) };
    match state(hook) {
        State::Thawed if is_pod_gone(hook) => return Some(Outcome::PodGone),
        State::Thawed | State::Refused => return Some(Outcome::Thawed),
        State::Abandoned => return Some(Outcome::Abandoned),
        State::ThawUnconfirmed => return Some(Outcome::Unconfirmed),
        State::MayFreezeAgain => return Some(Outcome::MayFreezeAgain),
        State::New | State::Freezing | State::Frozen | State::Thawing | State::ThawFailed => {}
    }
    let owed = children.iter().filter(|child| is_owed(child));
    let is_failed = |child: &&PodNotification| ends(child).any(|(key, end)| before.0.get(&key) != Some(&end));
    let mut failed = owed.map(|child| is_failed(child) || is_overdue(child)).peekable();
    (failed.peek().is_some() && failed.all(|failed| failed)).then_some(Outcome::Failed)
}

fn is_pod_gone(hook: &ExecutionHook) -> bool {
    let conditions = hook.status.iter().flat_map(|status| &status.conditions);
    let mut thawed = conditions.filter(|one| one.type_ == condition::THAWED);
    thawed.any(|thawed| thawed.reason == reason::POD_GONE)
}

fn is_owed(child: &PodNotification) -> bool {
    let containers = child.status.iter().flat_map(|status| &status.containers);
    let mut undos = containers.filter_map(|record| record.undo.as_ref());
    undos.any(|undo| undo.succeeded != Some(true))
}

/// Whether the controller reports that no executor has run the undo.
fn is_overdue(child: &PodNotification) -> bool {
    let mut conditions = child.status.iter().flat_map(|status| &status.conditions);
    let has_failed = conditions.any(|one| one.type_ == condition::UNDONE && one.reason == reason::UNDO_FAILED);
    has_failed && ends(child).next().is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn child(name: &str, end: Option<&str>, succeeded: Option<bool>) -> PodNotification {
        let undo = json!({"action": {"exec": {"command": ["unquiesce"]}}, "completeTime": end, "succeeded": succeeded});
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "PodNotification", "metadata": {"name": name},
            "spec": {"podName": name, "notifier": "freeze"},
            "status": {"state": "Succeeded", "containers": [{"name": "main", "succeeded": true, "undo": undo}]},
        }))
        .unwrap()
    }

    fn hook(thawed: Option<(&str, &str)>) -> ExecutionHook {
        let conditions: Vec<Value> = thawed
            .iter()
            .map(|(status, reason)| {
                json!({"type": "Thawed", "status": status, "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook", "metadata": {"name": "a"},
            "spec": {"executionHookTemplateName": "mysql"}, "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    const EARLIER: &str = "2026-01-01T00:00:01.000000Z";
    const LATER: &str = "2026-01-01T00:00:02.000000Z";

    #[test]
    fn a_hook_says_how_it_ended() {
        let ended = |thawed| outcome(Some(&hook(Some(thawed))), &[], &Before::default());
        assert_eq!(ended(("True", "Thawed")), Some(Outcome::Thawed));
        assert_eq!(ended(("True", "PodGone")), Some(Outcome::PodGone));
        assert_eq!(ended(("False", "Abandoned")), Some(Outcome::Abandoned));
        assert_eq!(ended(("Unknown", "ThawUnconfirmed")), Some(Outcome::Unconfirmed));
        assert_eq!(ended(("Unknown", "ProcessMayRemain")), Some(Outcome::MayFreezeAgain));
        assert_eq!(ended(("False", "Thawing")), None);
        assert_eq!(outcome(None, &[], &Before::default()), Some(Outcome::Thawed));
        assert!(Outcome::Abandoned.is_good(true) && !Outcome::Abandoned.is_good(false));
    }

    #[test]
    fn an_old_failure_is_no_news() {
        let failing = hook(Some(("False", "ThawFailed")));
        let old = child("a", Some(EARLIER), Some(false));
        let before = Before::of([&old].into_iter());
        assert_eq!(outcome(Some(&failing), &[&old], &before), None);
        let anew = child("a", Some(LATER), Some(false));
        assert_eq!(outcome(Some(&failing), &[&anew], &before), Some(Outcome::Failed));
        let done = child("b", Some(EARLIER), Some(true));
        assert_eq!(outcome(Some(&failing), &[&anew, &done], &before), Some(Outcome::Failed));
        let running = child("c", None, None);
        assert_eq!(outcome(Some(&failing), &[&anew, &running], &before), None);
    }

    #[test]
    fn overdue_undo_has_failed() {
        let failing = hook(Some(("False", "ThawFailed")));
        let mut silent = child("a", None, None);
        assert_eq!(outcome(Some(&failing), &[&silent], &Before::default()), None);
        let overdue = json!([{"type": "Undone", "status": "False", "reason": "UndoFailed", "message": "no report",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        silent.status.as_mut().unwrap().conditions = serde_json::from_value(overdue).unwrap();
        assert_eq!(outcome(Some(&failing), &[&silent], &Before::default()), Some(Outcome::Failed));
    }
}
