//! An accepted hook: it freezes, stays frozen, and is taken back, as its PodNotifications say.

use std::collections::BTreeMap;

use boathook_api::{
    PodNotification,
    execution_hook::{ExecutionHookActionStatus, ExecutionHookStatus, RecordedHook},
    words::{ABANDON_UNDO, ABANDONED_BY, UNDO_NOW, condition, reason},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{
    Decision, Effect, Observed, TakeBack, Target, child, has_finalizer, is_abandoned, is_deleted,
    observed_children::{self as seen, Post, Pre},
    pinned_pods,
    saying::{is_last_word, is_news, next_status, reports},
};
use crate::{conditions, maker, moment::moment};

/// How often a hook looks at a PodNotification that lost its owner reference, until it is undone.
const LOOK_AT_ORPHANS: SignedDuration = SignedDuration::from_secs(1);

/// How often a deleted hook looks whether its ApplicationSnapshot has recorded that it is thawed.
const LOOK_AT_THE_RECORD: SignedDuration = SignedDuration::from_secs(1);

/// One pod, and its PodNotification if there is one.
pub(super) type Part<'a> = (Target, Option<&'a PodNotification>);

/// Why nothing is to be frozen any more: once there is a reason, it stays.
#[derive(Clone, Debug)]
pub(super) struct Over {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

pub(super) fn decide(observed: &Observed<'_>, mut status: ExecutionHookStatus, now: Timestamp) -> Decision {
    let object = observed.object;
    let Some(recorded) = status.recorded.clone() else {
        // It was refused: nothing was run.
        let effects = if has_finalizer(object) { vec![Effect::RemoveFinalizer] } else { vec![] };
        return Decision { effects, ..Decision::default() };
    };
    record_begun(&mut status, &observed.begun);
    let all = &observed.children;
    let mut parts = find_parts(&status, |target| child::find(object, target, all));
    let expires = expiry(&recorded, &parts);
    let over = why_over(observed, &status, &parts, expires, now);

    let mut decision = Decision { again: expires, ..Decision::default() };
    if over.is_some() {
        parts = find_parts(&status, |target| child::find_to_take_back(object, &recorded, target, all));
        decision.effects.extend(take_back(observed, &parts));
        let wakes_no_hook = |child: &&PodNotification| {
            !is_closed(Some(child)) && !maker::is_made_for(*child, object.metadata.uid.as_ref())
        };
        let orphan = parts.iter().filter_map(|(_, child)| *child).find(wakes_no_hook);
        decision.again = orphan.map(|_| now + LOOK_AT_ORPHANS);
    }
    let next = next_status(observed, &status, &parts, over.as_ref(), now);
    let closed = over.is_some() && parts.iter().all(|(_, child)| is_closed(*child));
    let thawed = closed && is_deleted(object) && has_finalizer(object) && next.post_action_succeed == Some(true);
    // Its snapshot reads the last status from the object, and would not know that a hook that is gone was thawed.
    let is_kept = thawed && observed.is_awaited;
    if is_kept {
        decision.again = Some(now + LOOK_AT_THE_RECORD);
    }
    // Nobody could read it: the object goes with the finalizer. What was given up is said all the same.
    let goes = thawed && !is_kept;
    let missing = parts.iter().filter(|(_, child)| child.is_none() && over.is_none());
    let made = missing.map(|(target, _)| child::child(object, &recorded, target));
    let made: Vec<_> = made.map(|child| Effect::CreateChild(Box::new(child))).collect();
    let news = is_news(&status, &next) || is_last_word(&status, &next, &parts);
    if news {
        decision.reports = reports(&status, &next);
    }
    // Nothing is frozen but after a write against the version that was looked at: that may be an old one, and the hook
    // taken back since.
    if news && !goes || !made.is_empty() {
        decision.effects.push(Effect::WriteStatus(Box::new(next)));
    }
    decision.effects.extend(made);
    if closed && has_finalizer(object) && !is_kept {
        decision.effects.push(Effect::RemoveFinalizer);
    }
    decision
}

/// Says of the pods whose PreAction this process saw begin that it has: their PodNotifications may be gone by now.
fn record_begun(status: &mut ExecutionHookStatus, begun: &BTreeMap<String, Timestamp>) {
    let records = &mut status.container_execution_hook_statuses;
    for record in records.iter_mut().filter(|record| record.pre_action_status.is_none()) {
        let begun = begun.get(&record.pod_uid).map(|claimed| ExecutionHookActionStatus {
            action_timestamp: Some(moment(*claimed)),
            ..ExecutionHookActionStatus::default()
        });
        record.pre_action_status = begun;
    }
}

/// The pods that the hook pinned, each with its PodNotification as `find` finds it.
fn find_parts<'a>(
    status: &ExecutionHookStatus,
    find: impl Fn(&Target) -> Option<&'a PodNotification>,
) -> Vec<Part<'a>> {
    pinned_pods(status)
        .into_iter()
        .map(|target| {
            let child = find(&target);
            (target, child)
        })
        .collect()
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
    let children = || parts.iter().filter_map(|(_, child)| *child);
    let lost = children().find_map(seen::session_lost);
    let said = conditions::find(&status.conditions, condition::FROZEN);
    let sticky = [reason::THAW_REQUESTED, reason::PRE_ACTION_FAILED, reason::SESSION_LOST, reason::EXPIRED];
    if let Some((said, reason)) =
        said.and_then(|said| Some((said, sticky.into_iter().find(|one| *one == said.reason)?)))
    {
        return match lost {
            // It was lost before, and whoever held it says so only now.
            Some(message) if reason == reason::THAW_REQUESTED => over(reason::SESSION_LOST, message),
            Some(_) | None => over(reason, said.message.clone()),
        };
    }
    if observed.object.spec.thaw_requested || is_deleted(observed.object) {
        return over(reason::THAW_REQUESTED, "the thaw was requested".to_owned());
    }
    if let Some(failed) = children().find(|child| seen::pre(child) == Pre::Failed) {
        return over(reason::PRE_ACTION_FAILED, seen::failure(failed).unwrap_or_default());
    }
    if let Some(message) = &observed.refused {
        return over(reason::PRE_ACTION_FAILED, message.clone());
    }
    if let Some(foreign) = foreign(observed, status, parts) {
        let message = format!(
            "PodNotification `{}` already exists, and Boathook did not create it for this hook: check its origin, \
             delete it and create the hook again",
            foreign.name_any()
        );
        return over(reason::PRE_ACTION_FAILED, message);
    }
    if let Some(message) = lost {
        return over(reason::SESSION_LOST, message);
    }
    let undone_by_itself = children().any(|child| !seen::is_asked(child) && seen::undo_begun(child));
    if undone_by_itself || expires.is_some_and(|expires| expires <= now) {
        let message = "expirationSeconds passed before the thaw was requested".to_owned();
        return over(reason::EXPIRED, message);
    }
    // Somebody thaws one pod by hand: the others would be frozen for nothing.
    let by_hand = |target: &Target, child: Option<&PodNotification>| match child {
        Some(child) => seen::is_asked(child),
        None => was_begun(status, target),
    };
    let (thawed, _) = parts.iter().find(|(target, child)| by_hand(target, *child))?;
    let message = format!("the PodNotification of pod `{}` was deleted, or its undo was requested", thawed.pod_name);
    over(reason::THAW_REQUESTED, message)
}

/// The first object that has the name of a PodNotification of this hook and is not that.
fn foreign<'a>(
    observed: &'a Observed<'_>,
    status: &ExecutionHookStatus,
    parts: &[Part<'_>],
) -> Option<&'a PodNotification> {
    let recorded = status.recorded.as_ref()?;
    parts.iter().find_map(|(target, _)| child::foreign(observed.object, recorded, target, &observed.children))
}

/// Whether this object says that the PreAction was begun in that pod.
fn was_begun(status: &ExecutionHookStatus, target: &Target) -> bool {
    let records = status.container_execution_hook_statuses.iter();
    records.filter(|record| record.pod_uid == target.pod_uid).any(|record| record.pre_action_status.is_some())
}

pub(super) fn is_closed(child: Option<&PodNotification>) -> bool {
    match child.map(seen::post) {
        // Never made, or gone: nobody can ask it for its undo. `saying` tells whether that is known to be done.
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
            || abandon && child.annotations().get(ABANDON_UNDO).is_none_or(|value| value != "true")
    });
    let abandoned_by = object.annotations().get(ABANDONED_BY).filter(|_| abandon);
    let take_back = |child: &PodNotification| TakeBack {
        child: child.name_any(),
        undo_now: undo_now.cloned(),
        abandon,
        abandoned_by: abandoned_by.cloned(),
    };
    lacking.map(|child| Effect::TakeBack(take_back(child))).collect()
}
