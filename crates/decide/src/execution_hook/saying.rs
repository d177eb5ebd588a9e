//! What an accepted hook says of itself: container by container, in all, and when that is worth a write.

use boathook_api::{
    PodNotification,
    execution_hook::ExecutionHookStatus,
    words::{condition, reason},
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{
    Observed,
    observed_children::{self as seen, Post, Pre},
    progress::{Over, Part},
};
use crate::{
    About, Gravity, Report,
    conditions::{self, Saying},
    freeze_window,
};

/// Whether a PostAction was given up: that stays so, also when the PodNotification that says it is gone.
pub(super) fn is_given_up(status: &ExecutionHookStatus) -> bool {
    let thawed = conditions::find(&status.conditions, condition::THAWED);
    thawed.is_some_and(|thawed| thawed.reason == reason::ABANDONED || thawed.reason == reason::THAW_UNCONFIRMED)
}

pub(super) fn next_status(
    observed: &Observed<'_>,
    status: &ExecutionHookStatus,
    parts: &[Part<'_>],
    over: Option<&Over>,
    now: Timestamp,
) -> ExecutionHookStatus {
    let mut next = status.clone();
    for record in &mut next.container_execution_hook_statuses {
        let part = parts.iter().find(|(target, _)| target.pod_uid == record.pod_uid);
        *record = seen::container(record, part.and_then(|(_, child)| *child));
    }
    if next.pre_action_succeed.is_none() {
        // What somebody else ran under the name of one of them does not count.
        let counts = over.is_none_or(|over| over.reason != reason::PRE_ACTION_FAILED);
        next.pre_action_succeed = pre_action_succeed(parts, over.is_some()).map(|well| well && counts);
    }
    if over.is_some() && next.post_action_succeed != Some(true) && !is_given_up(status) {
        next.post_action_succeed = post_action_succeed(parts).or(next.post_action_succeed);
    }
    let thawed = next.post_action_succeed == Some(true);
    next.freeze_window = freeze_window::of(next.container_execution_hook_statuses.iter(), thawed);
    let generation = observed.object.metadata.generation;
    let mut say = |kind, status, reason, message: &str| {
        conditions::set(&mut next.conditions, Saying { kind, status, reason, message }, generation, now);
    };
    match (over, next.pre_action_succeed) {
        (Some(Over { reason, message }), _) => say(condition::FROZEN, "False", reason, message),
        (None, Some(true)) => say(condition::FROZEN, "True", reason::FROZEN, &frozen_message(parts)),
        (None, None | Some(false)) => say(condition::FROZEN, "False", reason::FREEZING, ""),
    }
    let Some(over) = over else { return next };
    if over.reason == reason::EXPIRED {
        say(condition::EXPIRED, "True", reason::EXPIRED, &over.message);
    }
    if !is_given_up(status) {
        let (truth, why, message) = thaw(observed, parts, next.post_action_succeed);
        say(condition::THAWED, truth, why, &message);
    }
    next
}

fn pre_action_succeed(parts: &[Part<'_>], over: bool) -> Option<bool> {
    let pre = |child: &Option<&PodNotification>| match child {
        Some(child) => seen::pre(child),
        // It will not be made any more.
        None if over => Pre::Failed,
        None => Pre::UnderWay,
    };
    let all: Vec<_> = parts.iter().map(|(_, child)| pre(child)).collect();
    (!all.contains(&Pre::UnderWay)).then(|| all.iter().all(|pre| *pre == Pre::Succeeded))
}

fn post_action_succeed(parts: &[Part<'_>]) -> Option<bool> {
    let all: Vec<_> = parts.iter().map(|(_, child)| child.map_or(Post::Done, seen::post)).collect();
    (!all.contains(&Post::Owed)).then(|| all.iter().all(|post| *post == Post::Done))
}

fn frozen_message(parts: &[Part<'_>]) -> String {
    let containers: usize = parts.iter().map(|(target, _)| target.containers.len()).sum();
    format!("{containers} container(s) of {} pod(s)", parts.len())
}

fn thaw(
    observed: &Observed<'_>,
    parts: &[Part<'_>],
    post_action_succeed: Option<bool>,
) -> (&'static str, &'static str, String) {
    let in_state =
        |wanted: Post| parts.iter().filter_map(|(_, child)| *child).find(move |child| seen::post(child) == wanted);
    match post_action_succeed {
        None => ("False", reason::THAWING, String::new()),
        Some(true) => ("True", reason::THAWED, String::new()),
        Some(false) => match (in_state(Post::Failed), in_state(Post::GivenUp)) {
            (None, Some(child)) if seen::is_abandoned(child) => {
                ("False", reason::ABANDONED, seen::undone_message(child))
            }
            (None, Some(child)) => ("Unknown", reason::THAW_UNCONFIRMED, seen::undone_message(child)),
            (failed, _) => {
                let what = failed.map(seen::undone_message).unwrap_or_default();
                let name = observed.object.name_any();
                let message =
                    format!("{what}. When it is mended, `boathook thaw {name}` tries at once; `--force` gives it up");
                ("False", reason::POST_ACTION_FAILED, message)
            }
        },
    }
}

/// Whether something changed that is worth a write: what else changed comes with it.
pub(super) fn is_news(before: &ExecutionHookStatus, after: &ExecutionHookStatus) -> bool {
    before.pre_action_succeed != after.pre_action_succeed
        || before.post_action_succeed != after.post_action_succeed
        || conditions::differ(&before.conditions, &after.conditions)
}

pub(super) fn reports(before: &ExecutionHookStatus, after: &ExecutionHookStatus) -> Vec<Report> {
    let changed = conditions::changed(&before.conditions, &after.conditions);
    let told = changed.filter_map(|condition| {
        let window = after.freeze_window.as_ref().and_then(|window| window.duration.as_deref());
        let (gravity, action, note) = match (condition.type_.as_str(), condition.reason.as_str()) {
            (condition::FROZEN, reason::FROZEN) => (Gravity::Normal, "Freeze", condition.message.clone()),
            (condition::FROZEN, reason::PRE_ACTION_FAILED | reason::SESSION_LOST | reason::EXPIRED) => {
                (Gravity::Warning, "Freeze", condition.message.clone())
            }
            (condition::THAWED, reason::THAWED) => {
                let note = window.map(|window| format!("thawed after {window}"));
                (Gravity::Normal, "Thaw", note.unwrap_or_else(|| "there is nothing left to thaw".to_owned()))
            }
            (condition::THAWED, reason::POST_ACTION_FAILED | reason::ABANDONED | reason::THAW_UNCONFIRMED) => {
                (Gravity::Warning, "Thaw", condition.message.clone())
            }
            _ => return None,
        };
        Some(Report { about: About::Object, gravity, reason: condition.reason.clone(), action, note })
    });
    told.collect()
}
