//! The steps of a snapshot, as far as they are known to have been made: a pure look at its object and its hooks.

use std::time::Duration;

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::{HookRecord, Phase, SnapshotRecord},
    execution_hook::ContainerExecutionHookStatus,
    words::{condition, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use crate::{
    hooks::why,
    output::{
        Colour,
        duration::shown,
        plain::{names, one_line},
        steps::Step,
    },
};

/// One hook, as far as it is known: from itself, or when it is gone from its snapshot's record.
struct Hook<'a> {
    /// `hook 1 of 2 (mysql)`.
    title: String,
    name: &'a str,
    containers: &'a [ContainerExecutionHookStatus],
    pre_action_succeed: Option<bool>,
    post_action_succeed: Option<bool>,
    /// Its PostActions are under way, or over.
    is_thawing: bool,
    /// Why its freeze failed, why its thaw did.
    messages: [String; 2],
    expired: bool,
}

pub(super) fn steps(snapshot: &ApplicationSnapshot, hooks: &[&ExecutionHook]) -> Vec<Step> {
    let Some(status) = &snapshot.status else { return vec![] };
    let all = snapshot.spec.execution_hook_infos.len().max(status.hooks.len());
    let seen = status.hooks.iter().enumerate().map(|(number, record)| {
        let live = hooks.iter().copied().find(|hook| hook.name_any() == record.name);
        Hook::new(format!("hook {} of {all} ({})", number + 1, record.execution_hook_template_name), record, live)
    });
    let seen: Vec<_> = seen.collect();
    let mut steps = Vec::new();
    if status.phase == Phase::Pending {
        let why = status.conditions.iter().map(|condition| one_line(&condition.message)).find(|why| !why.is_empty());
        steps.extend(why.map(|why| Step::new(format!("wait {why}"), "waiting", Some(Colour::Odd), why)));
    }
    steps.extend(seen.iter().flat_map(Hook::freeze));
    if let Some(idle) = find(&status.conditions, condition::FROZEN).filter(|frozen| frozen.reason == reason::NOT_IN_USE)
    {
        steps.push(Step::new("idle".to_owned(), "idle", None, one_line(&idle.message)));
    }
    if status.cut_time.is_some() || status.phase == Phase::Cutting {
        steps.extend(status.snapshots.iter().map(|cut| {
            let text = format!("claim {}", cut.persistent_volume_claim_name);
            Step::new(format!("cutting {text}"), "cutting", None, text)
        }));
    }
    steps.extend(status.snapshots.iter().filter_map(cut));
    match status.phase {
        // What became of the cut comes first, also when the hooks are heard of first.
        Phase::Freezing | Phase::Cutting => {}
        Phase::Pending | Phase::Thawing | Phase::ThawFailed | Phase::Complete | Phase::Failed => {
            steps.extend(seen.iter().rev().flat_map(Hook::thaw));
        }
    }
    steps
}

/// What is being waited for, for the line that is painted over.
pub(super) fn waiting_for(snapshot: &ApplicationSnapshot, hooks: &[&ExecutionHook]) -> String {
    let Some(status) = &snapshot.status else { return "waiting for a controller".to_owned() };
    match (status.phase, steps(snapshot, hooks).last()) {
        (Phase::Pending, None) => "waiting to begin".to_owned(),
        (_, Some(last)) if last.word.ends_with("ing") => format!("{} {}", last.word, last.text),
        (Phase::Freezing, _) => "freezing".to_owned(),
        (Phase::Cutting, _) => "cutting".to_owned(),
        (Phase::Pending | Phase::Thawing | Phase::ThawFailed | Phase::Complete | Phase::Failed, _) => {
            "thawing".to_owned()
        }
    }
}

fn cut(record: &SnapshotRecord) -> Option<Step> {
    let SnapshotRecord { persistent_volume_claim_name: claim, volume_snapshot_name: name, .. } = record;
    match (&record.cut_seen_time, &record.error) {
        (Some(_), _) => {
            let text = format!("claim {claim}: VolumeSnapshot {name}");
            Some(Step::new(format!("cut {claim}"), "cut", Some(Colour::Good), text))
        }
        (None, Some(error)) => {
            let text = format!("cut of claim {claim}: {}", one_line(error));
            Some(Step::new(format!("cut {claim}"), "FAILED", Some(Colour::Bad), text))
        }
        (None, None) => None,
    }
}

impl<'a> Hook<'a> {
    fn new(title: String, record: &'a HookRecord, live: Option<&'a ExecutionHook>) -> Self {
        let status = live.and_then(|live| live.status.as_ref());
        let message =
            |kind| status.and_then(|status| find(&status.conditions, kind)).map(|found| one_line(&found.message));
        let of_record = || record.message.as_deref().map(one_line);
        let post_action_succeed = status.and_then(|status| status.post_action_succeed).or(record.post_action_succeed);
        let containers = match status.map(|status| status.container_execution_hook_statuses.as_slice()) {
            Some(live) if !live.is_empty() => live,
            _ => record.containers.as_slice(),
        };
        Self {
            title,
            name: &record.name,
            containers,
            pre_action_succeed: pre_action_succeed(record, live),
            post_action_succeed,
            is_thawing: post_action_succeed.is_some()
                || status.is_some_and(|status| find(&status.conditions, condition::THAWED).is_some())
                || containers.iter().any(|container| container.post_action_status.is_some()),
            messages: [condition::FROZEN, condition::THAWED]
                .map(|kind| message(kind).filter(|told| !told.is_empty()).or_else(of_record).unwrap_or_default()),
            expired: status.is_some_and(|status| find(&status.conditions, condition::EXPIRED).is_some()),
        }
    }

    fn freeze(&self) -> Vec<Step> {
        let Self { title, name, containers, .. } = self;
        let mut steps = Vec::new();
        if !containers.is_empty() {
            steps.push(Step::new(
                format!("freezing {name}"),
                "freezing",
                None,
                format!("{title}: {}", places(containers)),
            ));
        }
        match self.pre_action_succeed {
            Some(true) => {
                let took = took(containers).map(|took| format!(" in {}", shown(took))).unwrap_or_default();
                steps.push(Step::new(format!("frozen {name}"), "frozen", Some(Colour::Odd), format!("{title}{took}")));
            }
            Some(false) => {
                let text = with_reason(title, &self.messages[0]);
                steps.push(Step::new(format!("frozen {name}"), "FAILED", Some(Colour::Bad), text));
            }
            None => {}
        }
        if self.expired {
            let text = with_reason(title, &self.messages[0]);
            steps.push(Step::new(format!("expired {name}"), "EXPIRED", Some(Colour::Bad), text));
        }
        steps
    }

    fn thaw(&self) -> Vec<Step> {
        let Self { title, name, containers, .. } = self;
        // Of a hook that never ran there is nothing to tell.
        if containers.iter().all(|container| container.pre_action_status.is_none()) {
            return vec![];
        }
        let mut steps = Vec::new();
        if self.is_thawing {
            steps.push(Step::new(format!("thawing {name}"), "thawing", None, title.clone()));
        }
        match self.post_action_succeed {
            Some(true) => steps.push(Step::new(format!("thawed {name}"), "thawed", Some(Colour::Good), title.clone())),
            Some(false) => {
                let text = format!("thaw of {}", with_reason(title, &self.messages[1]));
                steps.push(Step::new(format!("not thawed {name}"), "FAILED", Some(Colour::Bad), text));
            }
            None => {}
        }
        steps
    }
}

/// As soon as one PreAction failed the whole has, though others may still run.
fn pre_action_succeed(record: &HookRecord, live: Option<&ExecutionHook>) -> Option<bool> {
    let failed = live.and_then(why).is_some_and(|why| why.reason != reason::EXPIRED);
    let told = live.and_then(|live| live.status.as_ref()?.pre_action_succeed).or(record.pre_action_succeed);
    told.or_else(|| failed.then_some(false))
}

fn with_reason(title: &str, why: &str) -> String {
    if why.is_empty() { title.to_owned() } else { format!("{title}: {why}") }
}

fn places(containers: &[ContainerExecutionHookStatus]) -> String {
    let all: Vec<_> = containers.iter().map(|one| format!("{}/{}", one.pod_name, one.container_name)).collect();
    names(all.iter().map(String::as_str))
}

/// From the start of the first PreAction to the end of the last.
fn took(containers: &[ContainerExecutionHookStatus]) -> Option<Duration> {
    let actions = || containers.iter().filter_map(|container| container.pre_action_status.as_ref());
    let start = actions().filter_map(|action| action.action_timestamp.as_ref()).map(|time| time.0).min()?;
    let end = actions().filter_map(|action| action.complete_timestamp.as_ref()).map(|time| time.0).max()?;
    end.duration_since(start).try_into().ok()
}

pub(super) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn snapshot(status: &Value) -> ApplicationSnapshot {
        serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "ApplicationSnapshot",
            "metadata": {"name": "nightly", "namespace": "sea", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"source": {"persistentVolumeClaimName": "data"},
                "executionHookInfos": [{"executionHookTemplateName": "mysql"}, {"executionHookTemplateName": "files"}]},
            "status": status,
        }))
        .unwrap()
    }

    fn container(pod: &str) -> Value {
        json!({"podName": pod, "podUID": "u", "containerName": "main", "preActionStatus": {
            "actionTimestamp": "2026-01-01T00:00:00.000000Z", "completeTimestamp": "2026-01-01T00:00:00.240000Z"}})
    }

    fn record(number: usize, template: &str, pre: Option<bool>, post: Option<bool>) -> Value {
        json!({"name": format!("nightly-{number}"), "executionHookTemplateName": template,
            "preActionSucceed": pre, "postActionSucceed": post, "containers": [container(template)]})
    }

    fn told(status: &Value, hooks: &[&ExecutionHook]) -> Vec<String> {
        steps(&snapshot(status), hooks).iter().map(|step| format!("{} {}", step.word, step.text)).collect()
    }

    #[test]
    fn a_snapshot_goes_from_step_to_step() {
        let cut = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly",
            "cutSeenTime": "2026-01-01T00:00:00.500000Z"});
        let whole = json!({"phase": "Complete", "cutTime": "2026-01-01T00:00:00.400000Z", "snapshots": [cut], "hooks": [
            record(0, "mysql", Some(true), Some(true)), record(1, "files", Some(true), Some(true))]});
        let wanted = [
            "freezing hook 1 of 2 (mysql): mysql/main",
            "frozen hook 1 of 2 (mysql) in 240ms",
            "freezing hook 2 of 2 (files): files/main",
            "frozen hook 2 of 2 (files) in 240ms",
            "cutting claim data",
            "cut claim data: VolumeSnapshot nightly",
            "thawing hook 2 of 2 (files)",
            "thawed hook 2 of 2 (files)",
            "thawing hook 1 of 2 (mysql)",
            "thawed hook 1 of 2 (mysql)",
        ];
        assert_eq!(told(&whole, &[]), wanted);
        let begun = json!({"phase": "Freezing", "hooks": [record(0, "mysql", Some(true), None)]});
        assert_eq!(told(&begun, &[]), wanted[..2]);
        assert_eq!(waiting_for(&snapshot(&begun), &[]), "freezing");
        let cutting = json!({"phase": "Cutting", "snapshots": [
            {"persistentVolumeClaimName": "data", "volumeSnapshotName": "nightly"}]});
        assert_eq!(waiting_for(&snapshot(&cutting), &[]), "cutting claim data");
        assert_eq!(waiting_for(&snapshot(&Value::Null), &[]), "waiting for a controller");
    }

    #[test]
    fn every_step_has_a_key_of_its_own() {
        let whole = json!({"phase": "Complete", "hooks": [
            record(0, "mysql", Some(true), Some(false)), record(1, "mysql", Some(false), Some(true))]});
        let steps = steps(&snapshot(&whole), &[]);
        let keys: std::collections::BTreeSet<_> = steps.iter().map(|step| step.key.as_str()).collect();
        assert_eq!(keys.len(), steps.len());
    }

    #[test]
    fn failures_say_why() {
        let mut failed = record(0, "mysql", Some(false), Some(true));
        failed["message"] = json!("exit code 3");
        let cut = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": "n", "error": "no room"});
        let told = told(&json!({"phase": "Thawing", "hooks": [failed], "snapshots": [cut]}), &[]);
        assert_eq!(told[1], "FAILED hook 1 of 2 (mysql): exit code 3");
        assert_eq!(told[2], "FAILED cut of claim data: no room");
    }

    #[test]
    fn a_hook_that_exists_knows_more() {
        let live: ExecutionHook = serde_json::from_value(json!({
            "apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook", "metadata": {"name": "nightly-0"},
            "spec": {"executionHookTemplateName": "mysql"},
            "status": {"containerExecutionHookStatuses": [container("mysql-7")], "postActionSucceed": false,
                "preActionSucceed": true, "conditions": [{"type": "Thawed", "status": "False",
                    "reason": "ThawFailed", "message": "pod `mysql-7`: no", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap();
        let bare = json!({"name": "nightly-0", "executionHookTemplateName": "mysql"});
        let mut failing = live.clone();
        let status = failing.status.as_mut().unwrap();
        (status.pre_action_succeed, status.post_action_succeed) = (None, None);
        let mut frozen = status.conditions[0].clone();
        (frozen.type_, frozen.reason, frozen.message) =
            ("Frozen".to_owned(), "PreActionFailed".to_owned(), "no".to_owned());
        status.conditions.push(frozen);
        let early = steps(&snapshot(&json!({"phase": "Thawing", "hooks": [bare]})), &[&failing]);
        assert_eq!(early[1].text, "hook 1 of 2 (mysql): no", "that it failed is told before its thaw: {early:?}");
        let before_the_cut = told(&json!({"phase": "Cutting", "hooks": [bare]}), &[&live]);
        assert_eq!(before_the_cut.last().unwrap(), "frozen hook 1 of 2 (mysql) in 240ms");
        let told = told(&json!({"phase": "Thawing", "hooks": [bare]}), &[&live]);
        assert_eq!(told[0], "freezing hook 1 of 2 (mysql): mysql-7/main");
        assert_eq!(told.last().unwrap(), "FAILED thaw of hook 1 of 2 (mysql): pod `mysql-7`: no");
    }

    #[test]
    fn who_waits_says_for_what() {
        let waiting = json!({"phase": "Pending", "conditions": [{"type": "Frozen", "status": "False", "reason": "Waiting",
            "message": "another snapshot of claim `data` is under way", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        assert_eq!(told(&waiting, &[]), ["waiting another snapshot of claim `data` is under way"]);
    }
}
