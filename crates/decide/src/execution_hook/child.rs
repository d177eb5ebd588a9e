//! The PodNotification for one pod: the PreAction as its handler, the PostAction as its undo.

use boathook_api::{
    Action, ExecutionHook, PodNotification,
    execution_hook::RecordedHook,
    hook_action::{HookAction, ValidHookAction},
    pod_notification::{DEFAULT_START_DEADLINE_SECONDS, PodNotificationSpec, Retry, Undo},
    words::{EXECUTION_HOOK_LABEL, UNDO_FINALIZER},
};
use kube::{Resource, ResourceExt, core::ObjectMeta};

use super::{Target, is_child_of, pinned_pods};
use crate::{maker, naming};

/// Its name.
pub fn name(hook: &ExecutionHook, pod_uid: &str) -> String {
    naming::derived(&hook.name_any(), &[hook.uid().unwrap_or_default().as_str(), pod_uid])
}

pub(super) fn child(hook: &ExecutionHook, recorded: &RecordedHook, target: &Target) -> PodNotification {
    let (notifier, action) = split(&recorded.pre_action);
    // What is held is released, whether or not anything is run after that.
    let taken_back = recorded.post_action.is_some() || recorded.pre_action.holds();
    let undo = taken_back.then(|| {
        let (notifier, action) = recorded.post_action.as_ref().map(split).unwrap_or_default();
        Undo { notifier, action, timeout_seconds: None, after_seconds: recorded.expiration_seconds }
    });
    let metadata = ObjectMeta {
        name: Some(name(hook, &target.pod_uid)),
        namespace: hook.namespace(),
        owner_references: hook.controller_owner_ref(&()).map(|owner| vec![owner]),
        labels: naming::label(EXECUTION_HOOK_LABEL, hook.name_any()),
        // Set from the start: one write less before the freeze.
        finalizers: undo.as_ref().map(|_| vec![UNDO_FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    let spec = PodNotificationSpec {
        pod_name: target.pod_name.clone(),
        pod_uid: Some(target.pod_uid.clone()),
        notifier,
        action,
        containers: Some(target.containers.clone()),
        start_deadline_seconds: DEFAULT_START_DEADLINE_SECONDS,
        retry: Retry::UntilTimeout,
        undo,
        undo_requested: false,
        ttl_seconds_after_finished: None,
    };
    PodNotification { metadata, spec, status: None }
}

/// The PodNotification for one pod, of these, if it was made for this hook.
pub(super) fn find<'a>(
    hook: &ExecutionHook,
    target: &Target,
    all: &'a [PodNotification],
) -> Option<&'a PodNotification> {
    named(hook, target, all).filter(|found| maker::is_made_for(*found, hook.metadata.uid.as_ref()))
}

/// What has its name and is not the one that was to be made: somebody made it, who knew the name. An owner reference
/// anybody can write, so what it runs is compared as well.
pub(super) fn foreign<'a>(
    hook: &ExecutionHook,
    recorded: &RecordedHook,
    target: &Target,
    all: &'a [PodNotification],
) -> Option<&'a PodNotification> {
    let found = named(hook, target, all)?;
    (find(hook, target, all).is_none() || !runs_what_is_meant(hook, recorded, target, found)).then_some(found)
}

/// The PodNotification to take back for one pod. One that lost its owner reference (`kubectl delete --cascade=orphan` removes
/// it) may still hold a freeze, and only its name and its actions tell that.
pub(super) fn find_to_take_back<'a>(
    hook: &ExecutionHook,
    recorded: &RecordedHook,
    target: &Target,
    all: &'a [PodNotification],
) -> Option<&'a PodNotification> {
    let orphan = || named(hook, target, all).filter(|found| runs_what_is_meant(hook, recorded, target, found));
    find(hook, target, all).or_else(orphan)
}

/// Whether a PodNotification is the one that this hook makes for one of its pods. Its owner and its name every user who may
/// create a PodNotification can write, so what it runs is compared as well.
pub fn has_made(hook: &ExecutionHook, notification: &PodNotification) -> bool {
    let Some((status, recorded)) = hook.status.as_ref().and_then(|status| Some((status, status.recorded.as_ref()?)))
    else {
        return false;
    };
    let mut targets = pinned_pods(status).into_iter();
    is_child_of(hook, notification) && targets.any(|target| runs_what_is_meant(hook, recorded, &target, notification))
}

fn runs_what_is_meant(hook: &ExecutionHook, recorded: &RecordedHook, target: &Target, found: &PodNotification) -> bool {
    let PodNotificationSpec { undo_requested, ttl_seconds_after_finished, .. } = found.spec;
    let meant = child(hook, recorded, target).spec;
    // What can be changed later says nothing of who made it.
    found.spec == PodNotificationSpec { undo_requested, ttl_seconds_after_finished, ..meant }
}

fn named<'a>(hook: &ExecutionHook, target: &Target, all: &'a [PodNotification]) -> Option<&'a PodNotification> {
    let name = name(hook, &target.pod_uid);
    all.iter().find(|one| one.metadata.name.as_ref() == Some(&name))
}

/// A hook's action as a PodNotification has it. It was validated when the hook was accepted.
fn split(action: &HookAction) -> (Option<String>, Option<Action>) {
    match action.validate() {
        Ok(ValidHookAction::Notifier(name)) => (Some(name), None),
        Ok(ValidHookAction::Inline(action)) => (None, Some(Action::from(&action))),
        Err(_) => (None, None),
    }
}
