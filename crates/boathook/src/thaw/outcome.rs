//! How a thaw that somebody asked for went, as the objects tell it: a pure look at a hook and its PodNotifications.

use std::collections::{BTreeMap, BTreeSet};

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
    /// It was deleted before it said how it ended.
    Gone,
}

impl Outcome {
    pub(super) fn is_good(self, forced: bool) -> bool {
        match self {
            Self::Thawed => true,
            Self::Abandoned => forced,
            Self::PodGone | Self::Failed | Self::Unconfirmed | Self::MayFreezeAgain | Self::Gone => false,
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
pub(super) fn outcome(hook: &ExecutionHook, children: &[&PodNotification], before: &Before) -> Option<Outcome> {
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

/// The last state of a hook and the undos of its PodNotifications, for the case that the hook goes. A deleted hook goes when it is thawed,
/// maybe without saying so; but its finalizer may also be removed by hand.
pub(super) struct Seen {
    hook: ExecutionHook,
    /// Containers whose undo succeeded, by the UID of the pod and by name.
    undone: BTreeSet<(String, String)>,
}

impl Seen {
    pub(super) fn of(hook: &ExecutionHook) -> Self {
        Self { hook: hook.clone(), undone: BTreeSet::new() }
    }

    pub(super) fn note<'a>(
        &mut self,
        hook: Option<&ExecutionHook>,
        children: impl Iterator<Item = &'a PodNotification>,
    ) {
        if let Some(hook) = hook {
            self.hook.clone_from(hook);
        }
        self.undone.extend(children.flat_map(undone));
    }

    /// Whether every container of the hook was seen thawed.
    pub(super) fn is_thawed(&self) -> bool {
        let records = self.hook.status.iter().flat_map(|status| &status.container_execution_hook_statuses);
        let thawed = records.map(|record| {
            let said = record.post_action_status.as_ref().and_then(|action| action.action_succeed);
            said == Some(true) || self.undone.contains(&(record.pod_uid.clone(), record.container_name.clone()))
        });
        let mut thawed = thawed.peekable();
        thawed.peek().is_some() && thawed.all(|thawed| thawed)
    }
}

fn undone(child: &PodNotification) -> impl Iterator<Item = (String, String)> {
    let pod = child.spec.pod_uid.clone();
    let containers = child.status.iter().flat_map(|status| &status.containers);
    let undone = containers.filter(|record| record.undo.as_ref().is_some_and(|undo| undo.succeeded == Some(true)));
    undone.filter_map(move |record| Some((pod.clone()?, record.name.clone())))
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

    #[test]
    fn hook_that_is_gone_is_thawed_only_if_that_was_seen() {
        let of_pod = |pod: &str, undone| {
            let mut child = child(pod, Some(EARLIER), undone);
            child.spec.pod_uid = Some(pod.to_owned());
            child
        };
        let mut frozen = hook(None);
        assert!(!Seen::of(&frozen).is_thawed(), "it is not known what it froze");
        let record = |pod: &str, post: Value| json!({"podName": pod, "podUID": pod, "containerName": "main", "preActionStatus": {}, "postActionStatus": post});
        let records = json!([record("a", json!({})), record("b", json!({"actionSucceed": true}))]);
        frozen.status.as_mut().unwrap().container_execution_hook_statuses = serde_json::from_value(records).unwrap();
        let mut seen = Seen::of(&hook(None));
        seen.note(Some(&frozen), [of_pod("a", Some(false))].iter());
        assert!(!seen.is_thawed());
        seen.note(None, [of_pod("a", Some(true))].iter());
        seen.note(None, std::iter::empty());
        assert!(seen.is_thawed(), "its PodNotification said so before it went");
    }

    const EARLIER: &str = "2026-01-01T00:00:01.000000Z";
    const LATER: &str = "2026-01-01T00:00:02.000000Z";

    #[test]
    fn a_hook_says_how_it_ended() {
        let ended = |thawed| outcome(&hook(Some(thawed)), &[], &Before::default());
        assert_eq!(ended(("True", "Thawed")), Some(Outcome::Thawed));
        assert_eq!(ended(("True", "PodGone")), Some(Outcome::PodGone));
        assert_eq!(ended(("False", "Abandoned")), Some(Outcome::Abandoned));
        assert_eq!(ended(("Unknown", "ThawUnconfirmed")), Some(Outcome::Unconfirmed));
        assert_eq!(ended(("Unknown", "ProcessMayRemain")), Some(Outcome::MayFreezeAgain));
        assert_eq!(ended(("False", "Thawing")), None);
        assert!(!Outcome::Gone.is_good(true) && !Outcome::Gone.is_good(false));
        assert!(Outcome::Abandoned.is_good(true) && !Outcome::Abandoned.is_good(false));
    }

    #[test]
    fn an_old_failure_is_no_news() {
        let failing = hook(Some(("False", "ThawFailed")));
        let old = child("a", Some(EARLIER), Some(false));
        let before = Before::of([&old].into_iter());
        assert_eq!(outcome(&failing, &[&old], &before), None);
        let anew = child("a", Some(LATER), Some(false));
        assert_eq!(outcome(&failing, &[&anew], &before), Some(Outcome::Failed));
        let done = child("b", Some(EARLIER), Some(true));
        assert_eq!(outcome(&failing, &[&anew, &done], &before), Some(Outcome::Failed));
        let running = child("c", None, None);
        assert_eq!(outcome(&failing, &[&anew, &running], &before), None);
    }

    #[test]
    fn overdue_undo_has_failed() {
        let failing = hook(Some(("False", "ThawFailed")));
        let mut silent = child("a", None, None);
        assert_eq!(outcome(&failing, &[&silent], &Before::default()), None);
        let overdue = json!([{"type": "Undone", "status": "False", "reason": "UndoFailed", "message": "no report",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        silent.status.as_mut().unwrap().conditions = serde_json::from_value(overdue).unwrap();
        assert_eq!(outcome(&failing, &[&silent], &Before::default()), Some(Outcome::Failed));
    }
}
