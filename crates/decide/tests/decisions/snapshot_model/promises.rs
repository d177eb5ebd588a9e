//! What must always hold, by the numbers of the design, of every version of every object.

use std::rc::Rc;

use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, Consistency, Phase},
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookStatus},
    words::{THAW_FINALIZER, condition, reason},
};
use boathook_decide::execution_hook::{child_name, pinned_pods};
use jiff::SignedDuration;

use super::{
    Wish, World,
    look::notification,
    objects::{Key, Kind, Object},
    process::Doing,
};
use crate::world::{self, is_closed};

/// How many writes each phase of an object may take; a snapshot has one more for each hook, and two for one that shares
/// its freeze; a PodNotification has two whenever a person cannot wait: one hands that down, one says what came of it; a
/// hook has one more for each pod but the first, and one if a PostAction failed: it reports the failure, and then the success
/// of a later attempt.
const MOST_WRITES: usize = 5;

impl World {
    /// Every revision that is new since the last time, against the one before it.
    pub(crate) fn check_revisions(&mut self) {
        for revision in self.checked..self.server.newest() {
            let (before, after) = (self.server.at(revision), self.server.at(revision + 1));
            for (key, now) in after {
                let earlier = before.get(key).filter(|earlier| earlier.meta().uid == now.meta().uid);
                if earlier.is_some_and(|earlier| Rc::ptr_eq(earlier, now)) {
                    continue;
                }
                match (earlier.map(|earlier| &**earlier), &**now) {
                    (Some(Object::Hook(before)), Object::Hook(after)) => self.check_hook(before, after),
                    (Some(Object::Snapshot(before)), Object::Snapshot(after)) => self.check_snapshot(before, after),
                    _ => {}
                }
            }
        }
        self.checked = self.server.newest();
    }

    fn check_hook(&self, before: &ExecutionHook, after: &ExecutionHook) {
        let (old, new) = (status(before), status(after));
        if old.pre_action_succeed.is_some() {
            assert_eq!(old.pre_action_succeed, new.pre_action_succeed, "I8: preActionSucceed changed");
        }
        match (old.post_action_succeed, new.post_action_succeed) {
            (None, _) | (Some(false), Some(_)) | (Some(true), Some(true)) => {}
            changed => panic!("I8: postActionSucceed went from {changed:?}"),
        }
        assert!(!is_over(before) || is_over(after), "I8: what was taken back is not");
        assert!(old.recorded.is_none() || old.recorded == new.recorded, "what was recorded changed");
        let held = |hook: &ExecutionHook| Object::Hook(hook.clone()).finalizers().contains(&THAW_FINALIZER.to_owned());
        let let_go = held(before) && !held(after);
        let thawed = new.post_action_succeed == Some(true) && old.post_action_succeed != Some(true);
        if new.recorded.is_none() || !let_go && !thawed {
            return;
        }
        for child in self.children(after) {
            assert!(is_done(&child, let_go), "I7, I9: let go {let_go}, thawed {thawed}, and not done: {child:#?}");
        }
    }

    /// The PodNotifications of a hook that are there.
    pub(crate) fn children(&self, hook: &ExecutionHook) -> Vec<PodNotification> {
        let names = hook.status.iter().flat_map(pinned_pods).map(|pod| child_name(hook, &pod.pod_uid));
        names.filter_map(|name| notification(self.server.get(&(Kind::Notification, name)).as_ref())).collect()
    }

    fn check_snapshot(&self, before: &ApplicationSnapshot, after: &ApplicationSnapshot) {
        let old = before.status.clone().unwrap_or_default();
        let new = after.status.clone().unwrap_or_default();
        assert!(old.phase <= new.phase, "I8: from {:?} back to {:?}", old.phase, new.phase);
        if old.phase.is_terminal() {
            assert_eq!(old.failure, new.failure, "I8: what was over changed");
            let kept = (old.phase, old.complete_time.clone()) == (new.phase, new.complete_time.clone());
            assert!(kept || old.phase == Phase::ThawFailed, "I8: what was over changed");
        }
        if old.consistency.is_some() || old.phase > Phase::Cutting {
            let kept = old.consistency == new.consistency || is_taken_back(&old, &new);
            assert!(kept, "I3: a verdict changed, or came late: {before:#?} {after:#?}");
        }
        let is_true = |kind: &str| new.conditions.iter().any(|said| said.type_ == kind && said.status == "True");
        let (complete, failed) = (is_true(condition::COMPLETE), is_true(condition::FAILED));
        assert_eq!((complete, failed), (new.phase == Phase::Complete, new.phase == Phase::Failed), "I8: one of both");
        let has_ended = new.phase > Phase::ThawFailed;
        assert_eq!(complete, has_ended && new.consistency.is_some(), "without a cut there is no verdict");
        let owed = new.hooks.iter().any(|hook| hook.post_action_succeed == Some(false));
        assert_eq!(new.phase == Phase::ThawFailed, new.phase.is_terminal() && owed, "I18: it is not thawed: {new:#?}");
        let frozen = new.conditions.iter().find(|said| said.type_ == condition::FROZEN);
        assert!(!owed || frozen.is_none_or(|said| said.status != "False"), "I18: it may be frozen: {new:#?}");
        if new.consistency.is_some() && old.consistency.is_none() {
            self.check_verdict(after, &new);
        }
        if new.phase.is_terminal() && !old.phase.is_terminal() {
            self.check_all_ended(&new.execution_hook_names);
        }
    }

    /// Every PostAction has ended, well or not, of the hooks that are there.
    fn check_all_ended(&self, names: &[String]) {
        for name in names {
            let hook = self.server.get(&(Kind::Hook, name.clone()));
            let Some(Object::Hook(hook)) = hook.as_deref() else { continue };
            // One whose making was on its way was not there to be waited for.
            let ended = status(hook).post_action_succeed.is_some() || status(hook).start_time.is_none();
            assert!(ended, "it is over, and a PostAction is not: {hook:#?}");
        }
    }

    /// I4: a child is made only by who looked at a hook that was not taken back.
    pub(crate) fn check_child(&self, doing: &Doing, child: &PodNotification) {
        let hook = self.server.at(doing.decided).get(&doing.object.key());
        let Some(Object::Hook(hook)) = hook.map(|hook| &**hook) else { panic!("I4: for a hook that is gone") };
        assert!(!is_over(hook), "I4: a child is made after the hook was taken back: {hook:#?}");
        let Object::Hook(hook) = &*doing.object else { panic!("children are of hooks") };
        let recorded = status(hook).recorded.expect("it is accepted");
        let command = |action: Option<&boathook_api::ExecAction>| action.map(|exec| exec.command.clone());
        let runs = child.spec.action.as_ref().and_then(|action| action.exec.as_ref());
        assert_eq!(command(runs), command(recorded.pre_action.exec.as_ref()), "what runs is what was recorded");
    }

    /// I4: hooks and VolumeSnapshots are made only by who looked at a snapshot that was not over.
    pub(crate) fn check_begun(&self, doing: &Doing) {
        let object = self.server.at(doing.decided).get(&doing.object.key());
        let Some(Object::Snapshot(object)) = object.map(|object| &**object) else { panic!("I4: of one that is gone") };
        let phase = object.status.as_ref().map(|status| status.phase).unwrap_or_default();
        let over = phase > Phase::Cutting || object.metadata.deletion_timestamp.is_some();
        assert!(!over, "I4: something is made after it was over: {object:#?}");
    }

    /// A hook is asked to thaw when those after it have been thawed, as well as that went.
    pub(crate) fn check_order(&self, doing: &Doing, name: &str) {
        let Object::Snapshot(snapshot) = &*doing.object else { panic!("hooks are of snapshots") };
        let names = snapshot.status.iter().flat_map(|status| &status.execution_hook_names);
        for later in names.skip_while(|one| *one != name).skip(1) {
            let later = self.server.at(doing.decided).get(&(Kind::Hook, later.clone()));
            let Some(Object::Hook(later)) = later.map(|later| &**later) else { continue };
            let done = status(later).post_action_succeed.is_some();
            assert!(done, "`{name}` is thawed before the hook after it: {later:#?}");
        }
    }

    /// I13: a write has changed an object.
    pub(crate) fn count_write(&mut self, key: &Key, before: usize, turns: bool) {
        let earlier = self.server.at(before).get(key).cloned();
        let turned = turns || earlier.as_ref().is_some_and(|object| has_turned(object));
        let sharing = if self.plan.wish == Wish::Snapshots { 2 } else { 0 };
        let most = match key.0 {
            Kind::Snapshot => MOST_WRITES + self.plan.hooks.len() + sharing,
            Kind::Notification => MOST_WRITES + 2 * self.impatience,
            Kind::Hook => {
                let failed = earlier.as_ref().is_some_and(|object| has_failed_to_thaw(object));
                MOST_WRITES + usize::from(failed) + self.plan.pods.saturating_sub(1)
            }
            Kind::Volume => MOST_WRITES,
        };
        let uid = earlier.clone().or_else(|| self.server.get(key)).and_then(|object| object.meta().uid.clone());
        if self.server.get(key).zip(earlier.as_deref()).is_some_and(|(now, before)| reports_failure_again(before, &now))
        {
            return;
        }
        let writes = self.writes.entry(uid.unwrap_or_default()).or_default();
        writes[usize::from(turned)] += 1;
        assert!(writes[usize::from(turned)] <= most, "I13: {writes:?} writes of {key:?}");
    }
}

fn has_failed_to_thaw(object: &Object) -> bool {
    match object {
        Object::Hook(hook) => {
            let records = status(hook).container_execution_hook_statuses;
            let mut posts = records.iter().filter_map(|record| record.post_action_status.as_ref());
            posts.any(|post| post.attempts.is_some_and(|attempts| attempts > 1) || post.action_succeed == Some(false))
        }
        Object::Snapshot(_) | Object::Notification(_) | Object::Volume(_) => false,
    }
}

/// Whether a write reports once more that a PostAction failed, a minute or more after the last report: I13 allows for
/// these beside the writes that it counts.
fn reports_failure_again(before: &Object, after: &Object) -> bool {
    let last = |records: &mut dyn Iterator<Item = &ContainerExecutionHookStatus>| {
        let posts = records.filter_map(|record| record.post_action_status.as_ref());
        let failed = posts.filter(|post| post.action_succeed == Some(false));
        failed.filter_map(|post| post.complete_timestamp.as_ref().map(|time| time.0)).max()
    };
    let failed = |object: &Object| match object {
        Object::Hook(hook) => last(&mut status(hook).container_execution_hook_statuses.iter()),
        Object::Snapshot(snapshot) => {
            let hooks = snapshot.status.iter().flat_map(|status| &status.hooks);
            last(&mut hooks.flat_map(|hook| &hook.containers))
        }
        Object::Notification(_) | Object::Volume(_) => None,
    };
    match (before, after) {
        (Object::Notification(before), Object::Notification(after)) => world::reports_failure_again(before, after),
        _ => failed(before)
            .zip(failed(after))
            .is_some_and(|(before, after)| after.duration_since(before).abs() >= SignedDuration::from_secs(60)),
    }
}

/// I14: who held a session may say only after the verdict that it had been lost before. Until it is over, and only then,
/// the verdict goes from Application to Crash.
fn is_taken_back(old: &ApplicationSnapshotStatus, new: &ApplicationSnapshotStatus) -> bool {
    let verdicts = (old.consistency, new.consistency) == (Some(Consistency::Application), Some(Consistency::Crash));
    let lost = new.failure.as_ref().is_some_and(|failure| failure.reason == reason::SESSION_LOST);
    verdicts && lost && old.phase == Phase::Thawing
}

/// Whether what is done to it now belongs to the way back.
fn has_turned(object: &Object) -> bool {
    match object {
        Object::Notification(object) => object.status.as_ref().is_some_and(|status| status.state.is_terminal()),
        Object::Hook(hook) => is_over(hook),
        Object::Snapshot(object) => object.status.as_ref().is_some_and(|status| status.phase > Phase::Cutting),
        Object::Volume(_) => false,
    }
}

pub(crate) fn status(hook: &ExecutionHook) -> ExecutionHookStatus {
    hook.status.clone().unwrap_or_default()
}

/// Somebody asked for its thaw, or it says itself that it is not frozen any more.
pub(crate) fn is_over(hook: &ExecutionHook) -> bool {
    let said = status(hook).conditions.into_iter().find(|said| said.type_ == condition::FROZEN);
    let says = said.is_some_and(|said| said.status != "True" && said.reason != "Freezing");
    says || hook.spec.thaw_requested || hook.metadata.deletion_timestamp.is_some()
}

/// Nothing of it is owed: taken back, never run, or nothing to take back; or, if that is enough, given up.
fn is_done(child: &PodNotification, given_up_is_enough: bool) -> bool {
    let status = child.status.clone().unwrap_or_default();
    if !status.state.is_terminal() {
        return false;
    }
    let undone = status.conditions.iter().find(|one| one.type_ == condition::UNDONE);
    let well = undone.is_some_and(|undone| undone.status == "True");
    status.claim.is_none() || child.spec.undo.is_none() || well || given_up_is_enough && is_closed(child)
}
