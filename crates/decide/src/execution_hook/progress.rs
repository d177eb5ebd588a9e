//! An accepted hook: it freezes, stays frozen, and is taken back, as its PodNotifications say.

use boathook_api::{
    PodNotification,
    execution_hook::{ExecutionHookStatus, RecordedHook},
    words::{ABANDON_UNDO, UNDO_NOW, condition, reason},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{
    Decision, Effect, Observed, TakeBack, Target, child, has_finalizer, is_abandoned, is_deleted,
    observed_children::{self as seen, Post, Pre},
    pinned_pods,
};
use crate::{
    About, Gravity, Report,
    conditions::{self, Saying},
    freeze_window,
};

/// One pod, and its PodNotification if there is one.
type Part<'a> = (Target, Option<&'a PodNotification>);

/// Why nothing is to be frozen any more: once there is a reason, it stays.
#[derive(Clone, Debug)]
struct Over {
    reason: &'static str,
    message: String,
}

pub(super) fn decide(observed: &Observed<'_>, status: ExecutionHookStatus, now: Timestamp) -> Decision {
    let object = observed.object;
    let Some(recorded) = status.recorded.clone() else {
        // It was refused: nothing was run.
        let effects = if has_finalizer(object) { vec![Effect::RemoveFinalizer] } else { vec![] };
        return Decision { effects, ..Decision::default() };
    };
    let by_pod =
        |target: &Target| observed.children.iter().find(|child| child.spec.pod_uid.as_deref() == Some(&target.pod_uid));
    let parts: Vec<Part<'_>> = pinned_pods(&status)
        .into_iter()
        .map(|target| (by_pod(&target), target))
        .map(|(child, target)| (target, child))
        .collect();
    let expires = expiry(&recorded, &parts);
    let over = why_over(observed, &status, &parts, expires, now);

    let mut decision = Decision::default();
    match &over {
        Some(_) => decision.effects.extend(take_back(observed, &parts)),
        None => {
            let missing = parts.iter().filter(|(_, child)| child.is_none());
            let made = missing.map(|(target, _)| child::child(object, &recorded, target));
            decision.effects.extend(made.map(|child| Effect::CreateChild(Box::new(child))));
            decision.again = expires;
        }
    }
    let next = next_status(observed, &status, &parts, over.as_ref(), now);
    let closed = over.is_some() && parts.iter().all(|(_, child)| is_closed(*child));
    // Nobody could read it: the object goes with the finalizer.
    let goes = closed && is_deleted(object) && has_finalizer(object);
    if is_news(&status, &next) {
        decision.reports = reports(&status, &next);
        if !goes {
            decision.effects.push(Effect::WriteStatus(Box::new(next)));
        }
    }
    if closed && has_finalizer(object) {
        decision.effects.push(Effect::RemoveFinalizer);
    }
    decision
}

/// When the time since the first PreAction is over.
fn expiry(recorded: &RecordedHook, parts: &[Part<'_>]) -> Option<Timestamp> {
    let first = parts.iter().filter_map(|(_, child)| seen::claimed((*child)?)).min()?;
    Some(first + SignedDuration::from_secs(recorded.expiration_seconds?.into()))
}

fn why_over(
    observed: &Observed<'_>,
    status: &ExecutionHookStatus,
    parts: &[Part<'_>],
    expires: Option<Timestamp>,
    now: Timestamp,
) -> Option<Over> {
    let over = |reason, message: String| Some(Over { reason, message });
    let said = conditions::find(&status.conditions, condition::FROZEN);
    let sticky = [reason::THAW_REQUESTED, reason::PRE_ACTION_FAILED, reason::SESSION_LOST, reason::EXPIRED];
    if let Some((said, reason)) =
        said.and_then(|said| Some((said, sticky.into_iter().find(|one| *one == said.reason)?)))
    {
        return over(reason, said.message.clone());
    }
    if observed.object.spec.thaw_requested || is_deleted(observed.object) {
        return over(reason::THAW_REQUESTED, "the thaw was asked for".to_owned());
    }
    let children = || parts.iter().filter_map(|(_, child)| *child);
    if let Some(failed) = children().find(|child| seen::pre(child) == Pre::Failed) {
        return over(reason::PRE_ACTION_FAILED, seen::failure(failed).unwrap_or_default());
    }
    if let Some((gone, _)) = parts.iter().find(|(target, child)| child.is_none() && was_begun(status, target)) {
        let message = format!("the PodNotification of pod `{}` was deleted", gone.pod_name);
        return over(reason::PRE_ACTION_FAILED, message);
    }
    if let Some(message) = children().find_map(seen::session_lost) {
        return over(reason::SESSION_LOST, message);
    }
    let undone_by_itself = children().any(|child| !child.spec.undo_requested && seen::undo_begun(child));
    if undone_by_itself || expires.is_some_and(|expires| expires <= now) {
        let message = "the time was over before anybody asked for the thaw: it was taken back".to_owned();
        return over(reason::EXPIRED, message);
    }
    None
}

/// Whether this object says that the PreAction was begun in that pod.
fn was_begun(status: &ExecutionHookStatus, target: &Target) -> bool {
    let records = status.container_execution_hook_statuses.iter();
    records.filter(|record| record.pod_uid == target.pod_uid).any(|record| record.pre_action_status.is_some())
}

fn is_closed(child: Option<&PodNotification>) -> bool {
    match child.map(seen::post) {
        // Never made, or gone: and none goes while its undo is owed.
        None | Some(Post::Done | Post::GivenUp) => true,
        Some(Post::Owed | Post::Failed) => false,
    }
}

/// Asks for what was not asked for yet.
fn take_back(observed: &Observed<'_>, parts: &[Part<'_>]) -> Vec<Effect> {
    let object = observed.object;
    let (undo_now, abandon) = (object.annotations().get(UNDO_NOW), is_abandoned(object));
    let open = parts.iter().filter_map(|(_, child)| *child).filter(|child| !is_closed(Some(child)));
    let lacking = open.filter(|child| {
        !child.spec.undo_requested
            || undo_now.is_some() && child.annotations().get(UNDO_NOW) != undo_now
            || abandon && !child.annotations().contains_key(ABANDON_UNDO)
    });
    let take_back =
        |child: &PodNotification| TakeBack { child: child.name_any(), undo_now: undo_now.cloned(), abandon };
    lacking.map(|child| Effect::TakeBack(take_back(child))).collect()
}

fn next_status(
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
        next.pre_action_succeed = pre_action_succeed(parts, over.is_some());
    }
    if over.is_some() && next.post_action_succeed != Some(true) {
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
    let (truth, why, message) = thaw(observed, parts, next.post_action_succeed);
    say(condition::THAWED, truth, why, &message);
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
            (None, Some(child)) if is_abandoned(observed.object) => {
                ("False", reason::ABANDONED, seen::undone_message(child))
            }
            (None, Some(child)) => ("Unknown", reason::THAW_UNCONFIRMED, seen::undone_message(child)),
            (failed, _) => {
                let what = failed.map(seen::undone_message).unwrap_or_default();
                let name = observed.object.name_any();
                let message = format!(
                    "{what}. When it is mended, `kubectl boathook thaw {name}` tries at once; `--force` gives it up"
                );
                ("False", reason::POST_ACTION_FAILED, message)
            }
        },
    }
}

/// Whether something changed that is worth a write: what else changed comes with it.
fn is_news(before: &ExecutionHookStatus, after: &ExecutionHookStatus) -> bool {
    before.pre_action_succeed != after.pre_action_succeed
        || before.post_action_succeed != after.post_action_succeed
        || conditions::differ(&before.conditions, &after.conditions)
}

fn reports(before: &ExecutionHookStatus, after: &ExecutionHookStatus) -> Vec<Report> {
    let changed = conditions::changed(&before.conditions, &after.conditions);
    let told = changed.filter_map(|condition| {
        let window = after.freeze_window.as_ref().and_then(|window| window.duration.as_deref());
        let (gravity, action, note) = match (condition.type_.as_str(), condition.reason.as_str()) {
            (condition::FROZEN, reason::FROZEN) => (Gravity::Normal, "Freeze", condition.message.clone()),
            (condition::FROZEN, reason::PRE_ACTION_FAILED | reason::SESSION_LOST | reason::EXPIRED) => {
                (Gravity::Warning, "Freeze", condition.message.clone())
            }
            (condition::THAWED, reason::THAWED) => {
                (Gravity::Normal, "Thaw", format!("thawed after {}", window.unwrap_or("nothing was run")))
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
