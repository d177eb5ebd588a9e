//! What a snapshot's hooks say.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::{ApplicationSnapshotStatus, HookRecord, Phase, SnapshotFailure},
    execution_hook::ExecutionHookSpec,
    words::{condition, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{Observed, failure, made, sharing};
use crate::{conditions, freeze_window, maker};

/// Whether a hook is frozen, will be, or never again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Freeze {
    UnderWay,
    Frozen,
    Over(SnapshotFailure),
}

pub(super) fn freeze(hook: &ExecutionHook) -> Freeze {
    if hook.metadata.deletion_timestamp.is_some() {
        return Freeze::Over(deleted(&hook.name_any()));
    }
    let Some(frozen) = said(hook, condition::FROZEN) else { return Freeze::UnderWay };
    match (frozen.status.as_str(), frozen.reason.as_str()) {
        ("True", _) => Freeze::Frozen,
        (_, reason::FREEZING) => Freeze::UnderWay,
        (_, why) => {
            let why = if why == reason::EXPIRED || why == reason::SESSION_LOST { why } else { reason::HOOK_FAILED };
            let name = hook.spec.execution_hook_template_name.as_deref().unwrap_or_default();
            Freeze::Over(failure(why, format!("hook `{name}`: {}", frozen.message)))
        }
    }
}

/// How the PostActions went; `None` while they have not ended.
pub(super) fn post(hook: &ExecutionHook) -> Option<bool> {
    hook.status.as_ref()?.post_action_succeed
}

/// Why the hook may freeze once more although its PostActions succeeded, if it may.
pub(super) fn once_more(hook: &ExecutionHook) -> Option<&str> {
    let thawed = said(hook, condition::THAWED).filter(|thawed| thawed.reason == reason::PROCESS_MAY_REMAIN)?;
    Some(&thawed.message)
}

/// The first hook that was frozen once and is not any more, or was deleted, or is another's.
pub(super) fn failure_of(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<SnapshotFailure> {
    let failure = |record: &HookRecord| match observed.hook(&record.name).map(freeze) {
        Some(Freeze::Frozen) => None,
        Some(Freeze::UnderWay) => Some(failure(reason::HOOK_FAILED, format!("hook `{}` is not frozen", record.name))),
        Some(Freeze::Over(why)) => Some(why),
        None => Some(gone(record)),
    };
    foreign(observed, status).or_else(|| status.hooks.iter().find_map(failure))
}

/// The first object that has a hook's name and is not that hook: somebody made it, who knew the name, and whatever it
/// freezes is not what was to be frozen. An owner reference anybody can write, so what it runs is compared as well.
pub(super) fn foreign(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<SnapshotFailure> {
    let is_meant = |place: usize, hook: &ExecutionHook| runs_what_is_meant(observed, status, place, hook);
    let mut named = status.hooks.iter().enumerate().filter_map(|(place, record)| {
        let hook = observed.hooks.iter().find(|hook| hook.name_any() == record.name)?;
        Some((place, hook))
    });
    let (_, hook) = named.find(|(place, hook)| observed.hook(&hook.name_any()).is_none() || !is_meant(*place, hook))?;
    let message = format!(
        "ExecutionHook `{}` already exists, and Boathook did not create it for this snapshot: check its origin, delete \
         it and create the snapshot again",
        hook.name_any()
    );
    Some(failure(reason::HOOK_FAILED, message))
}

fn runs_what_is_meant(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    place: usize,
    hook: &ExecutionHook,
) -> bool {
    let meant = made::hook(observed.object, status, place).spec;
    hook.spec == ExecutionHookSpec { thaw_requested: hook.spec.thaw_requested, ..meant }
}

/// Whether a hook of the snapshot lost its owner reference (`kubectl delete --cascade=orphan` removes it), and is to be
/// thawed all the same.
pub(super) fn is_orphan(observed: &Observed<'_>, hook: &ExecutionHook) -> bool {
    let Some(status) = observed.object.status.as_ref().filter(|status| status.shares_freeze_of.is_none()) else {
        return false;
    };
    let is_thawing = match status.phase {
        Phase::Thawing | Phase::ThawFailed | Phase::Complete | Phase::Failed => true,
        Phase::Pending | Phase::Freezing | Phase::Cutting => false,
    };
    let Some(place) = status.hooks.iter().position(|record| record.name == hook.name_any()) else { return false };
    let is_recorded = match &status.hooks[place].uid {
        Some(uid) => hook.metadata.uid.as_ref() == Some(uid),
        // It lost the reference before its UID was recorded. Another user's hook with the same actions is thawed too: that
        // does less harm than a freeze that stays.
        None => runs_what_is_meant(observed, status, place, hook),
    };
    is_thawing && is_recorded && !maker::is_made_for(hook, observed.object.metadata.uid.as_ref())
}

pub(super) fn gone(record: &HookRecord) -> SnapshotFailure {
    deleted(&record.name)
}

fn deleted(hook: &str) -> SnapshotFailure {
    failure(reason::HOOK_FAILED, format!("ExecutionHook `{hook}` was deleted, which thawed its pods"))
}

/// Whether this snapshot made the hook, and has still to record that it is thawed.
pub fn awaits_end_of(snapshot: &ApplicationSnapshot, hook: &ExecutionHook) -> bool {
    let made = maker::is_made_for(hook, snapshot.metadata.uid.as_ref());
    let Some(status) = snapshot.status.as_ref().filter(|_| made) else { return false };
    let mut records = status.hooks.iter().filter(|record| record.name == hook.name_any());
    let recorded = records.next().map(|record| record.post_action_succeed);
    match status.phase {
        Phase::Freezing | Phase::Cutting | Phase::Thawing => recorded.is_some_and(|post| post != Some(true)),
        Phase::ThawFailed => recorded == Some(Some(false)),
        Phase::Pending | Phase::Complete | Phase::Failed => false,
    }
}

/// Says of the hooks that have begun and are gone that they are not known to be thawed.
pub(super) fn mark_unconfirmed(status: &mut ApplicationSnapshotStatus) {
    let begun = status.hooks.iter_mut().filter(|record| !record.containers.is_empty());
    for record in begun.filter(|record| record.post_action_succeed.is_none()) {
        record.post_action_succeed = Some(false);
    }
}

/// Copies what the hooks say: they may be gone when somebody wants to know.
pub(super) fn copy(observed: &Observed<'_>, status: &mut ApplicationSnapshotStatus) {
    // Hooks of another one may be gone already, but it has kept what they said.
    if let Some(theirs) = sharing::first(observed, status).and_then(|first| first.status.as_ref()) {
        status.hooks.clone_from(&theirs.hooks);
    }
    for record in &mut status.hooks {
        let Some(hook) = observed.hook(&record.name) else { continue };
        let Some(seen) = &hook.status else { continue };
        record.uid = record.uid.take().or_else(|| hook.uid());
        record.pre_action_succeed = seen.pre_action_succeed;
        record.post_action_succeed = seen.post_action_succeed;
        record.containers.clone_from(&seen.container_execution_hook_statuses);
        let failed = seen.pre_action_succeed == Some(false);
        let message = conditions::find(&seen.conditions, condition::FROZEN).map(|frozen| frozen.message.clone());
        record.message = message.filter(|message| failed && !message.is_empty()).or(record.message.take());
    }
    // Those that nobody made were never frozen.
    let begun = status.hooks.iter().filter(|hook| !hook.containers.is_empty());
    let over = begun.into_iter().all(|hook| hook.post_action_succeed == Some(true));
    let containers = status.hooks.iter().flat_map(|hook| &hook.containers);
    status.freeze_window = freeze_window::of(containers, over);
}

fn said<'a>(hook: &'a ExecutionHook, kind: &str) -> Option<&'a Condition> {
    conditions::find(&hook.status.as_ref()?.conditions, kind)
}
