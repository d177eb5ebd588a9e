//! ExecutionHook: targets pinned, then one PodNotification for each pod, whose undo is the PostAction; then, when it is
//! deleted, asked to thaw, expired or failed, every undo is asked for.
//!
//! Why nothing stays frozen: the undo is in the same object as the PreAction and runs whatever happens up here. Why
//! nothing is frozen late: the children are made only while nothing has been asked for that takes them back, and whoever
//! asks writes into the same objects that an executor must claim first.

mod accept;
mod child;
mod observed_children;
mod progress;
mod saying;
mod targets;

use std::collections::BTreeMap;

use boathook_api::{
    ExecutionHook, PodNotification,
    execution_hook::{ExecutionHookStatus, RecordedHook},
    execution_hook_template::ExecutionHookTemplate,
    words::{ABANDON_UNDO, THAW_FINALIZER, condition, reason},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

pub use accept::plan;
pub use child::{has_made, name as child_name};
pub use targets::{Pod, Refusal, Selection, Target, recorded, selection, targets};

use crate::{Leadership, maker, succeeded};

/// What one look found.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    pub object: &'a ExecutionHook,
    /// This process: a name that no other has, and no later one.
    pub identity: &'a str,
    pub leadership: Leadership,
    /// What is needed to accept it; absent if it is accepted.
    pub surroundings: Option<Surroundings>,
    /// What has the names of the PodNotifications of the pods that are pinned, whoever made it: looked up, so that one that
    /// is not here does not exist.
    pub children: Vec<PodNotification>,
    /// Why the API server refused to create one of them, if it did.
    pub refused: Option<String>,
    /// Only of a deleted hook: whether the ApplicationSnapshot that made it has not recorded yet that it is thawed.
    pub is_awaited: bool,
    /// The pods whose PodNotification this process saw claimed, by UID, and when that was; until the status says how the
    /// PreActions went.
    pub begun: BTreeMap<String, Timestamp>,
}

/// Where a hook is to run, and what.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The template that it names, if it names one and there is one.
    pub template: Option<ExecutionHookTemplate>,
    /// The pods that it selects.
    pub pods: Vec<Pod>,
    /// Whether the rights of whoever wrote its actions were checked when they were written.
    pub author_checked: bool,
}

/// What to do, in this order; whether this process still leads is asked again before each.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    AddFinalizer,
    RemoveFinalizer,
    /// Replaces the status of the version that was looked at, or fails.
    WriteStatus(Box<ExecutionHookStatus>),
    /// One of its name that is there already is looked at. Those that follow each other may be made at once.
    CreateChild(Box<PodNotification>),
    /// Likewise.
    TakeBack(TakeBack),
}

/// Asks one PodNotification for its undo; or, before it was claimed, revokes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeBack {
    pub child: String,
    /// A person does not want to wait for the next round: the moment that they said so.
    pub undo_now: Option<String>,
    /// A person gives it up.
    pub abandon: bool,
    /// Who gives it up, if that is known.
    pub abandoned_by: Option<String>,
}

pub type Decision = crate::Decision<Effect>;

/// Looks at one object at one moment.
pub fn decide(observed: &Observed<'_>, now: Timestamp) -> Decision {
    if observed.leadership != Leadership::Leader {
        // What was begun takes itself back, by its executors.
        return Decision::default();
    }
    let status = observed.object.status.clone().unwrap_or_default();
    let mut decision = match is_accepted(observed.object) {
        false => accept::decide(observed, status, now),
        true => progress::decide(observed, status, now),
    };
    for effect in &mut decision.effects {
        if let Effect::WriteStatus(status) = effect {
            let word = succeeded::of_execution_hook(status);
            succeeded::set(&mut status.conditions, word, observed.object.metadata.generation, now);
        }
    }
    decision
}

/// Whether it has been looked at: what it is about is pinned, or it was refused.
pub fn is_accepted(object: &ExecutionHook) -> bool {
    object.status.as_ref().is_some_and(|status| status.start_time.is_some())
}

/// The pods that are pinned, each once.
pub fn pinned_pods(status: &ExecutionHookStatus) -> Vec<Target> {
    let mut pods: Vec<Target> = Vec::new();
    for container in &status.container_execution_hook_statuses {
        let name = container.container_name.clone();
        match pods.iter_mut().find(|pod| pod.pod_uid == container.pod_uid) {
            Some(pod) => pod.containers.push(name),
            None => pods.push(Target {
                pod_name: container.pod_name.clone(),
                pod_uid: container.pod_uid.clone(),
                containers: vec![name],
            }),
        }
    }
    pods
}

fn has_finalizer(object: &ExecutionHook) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == THAW_FINALIZER)
}

fn is_deleted(object: &ExecutionHook) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

fn is_abandoned(object: &ExecutionHook) -> bool {
    object.annotations().get(ABANDON_UNDO).is_some_and(|value| value == "true")
}

/// Whether its finalizer keeps a PostAction from being lost: the hook is accepted, may have frozen something that is not
/// thawed, and no user gave the thaw up.
pub fn needs_finalizer(object: &ExecutionHook) -> bool {
    let Some(status) = object.status.as_ref().filter(|_| is_accepted(object)) else { return false };
    let owes = |hook: &RecordedHook| hook.post_action.is_some() || hook.pre_action.holds();
    let is_over = status.post_action_succeed == Some(true) || saying::is_given_up(status);
    status.recorded.as_ref().is_some_and(owes) && !is_over && !is_abandoned(object)
}

/// Whether its thaw was asked for, and a PostAction is owed.
pub fn is_thawing(object: &ExecutionHook) -> bool {
    (object.spec.thaw_requested || is_deleted(object)) && needs_finalizer(object)
}

/// Whether nothing is to be done about it any more. `children` are those that are known of: the request to make one can
/// arrive when everything is over.
pub fn is_settled(object: &ExecutionHook, mut children: impl Iterator<Item = PodNotification>) -> bool {
    let over = |status: &ExecutionHookStatus| {
        let is_thawed = status.post_action_succeed == Some(true) && !saying::may_freeze_again(status);
        is_thawed || saying::is_given_up(status)
    };
    let closed = is_accepted(object) && object.status.as_ref().is_some_and(over);
    closed && !has_finalizer(object) && children.all(|child| progress::is_closed(Some(&child)))
}

/// The PodNotification that a hook has for a pod, of these; none that somebody else made under its name.
pub fn child_of<'a>(hook: &ExecutionHook, pod: &Target, all: &'a [PodNotification]) -> Option<&'a PodNotification> {
    let recorded = hook.status.as_ref()?.recorded.as_ref()?;
    match child::foreign(hook, recorded, pod, all) {
        Some(_) => None,
        None => child::find(hook, pod, all),
    }
}

/// Whether what the PreAction did in a pod still holds, as far as its PodNotification says; else why not.
pub fn is_held(child: &PodNotification) -> Result<(), String> {
    observed_children::is_held(child)
}

/// Whether what a PodNotification did was taken back after this moment of its executor's clock, or may be by now.
pub fn is_undone_since(child: &PodNotification, since: Timestamp, now: Timestamp) -> bool {
    observed_children::is_undone_since(child, since, now)
}

/// Whether what a PodNotification did was taken back or given up, whenever that was.
pub fn is_undone(child: &PodNotification) -> bool {
    observed_children::is_undone(child)
}

/// Whether the handler of a PodNotification ran, or may have.
pub fn has_run(notification: &PodNotification) -> bool {
    observed_children::has_run(notification)
}

/// Whether the handler of a PodNotification ran, or may have, after this moment of its executor's clock.
pub fn has_run_since(notification: &PodNotification, since: Timestamp) -> bool {
    observed_children::has_run_since(notification, since)
}

/// Whether a PodNotification has the name and the owner of one that this hook makes, and is for a pod that the hook pinned.
/// The owner alone does not tell, because every user who may create a PodNotification can write an owner reference; nor does
/// the name, which can be derived for every pod.
pub fn is_child_of(hook: &ExecutionHook, notification: &PodNotification) -> bool {
    let pins = |pod_uid: &String| hook.status.iter().flat_map(pinned_pods).any(|pod| pod.pod_uid == *pod_uid);
    let named = |pod_uid: &String| notification.metadata.name.as_ref() == Some(&child_name(hook, pod_uid));
    notification.spec.pod_uid.as_ref().is_some_and(|pod_uid| named(pod_uid) && pins(pod_uid))
        && maker::is_made_for(notification, hook.metadata.uid.as_ref())
}

/// Whether its PodNotifications are to be carried out: it is accepted, and nothing has been asked for that takes it back.
pub fn is_freezing(object: &ExecutionHook) -> bool {
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    let freezing = |one: &Condition| one.type_ == condition::FROZEN && one.reason == reason::FREEZING;
    !object.spec.thaw_requested && !is_deleted(object) && conditions.into_iter().any(freezing)
}
