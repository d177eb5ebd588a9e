//! What an accepted hook says of itself: container by container, in all, and when that is worth a write.

use boathook_api::{
    PodNotification,
    execution_hook::{ContainerExecutionHookStatus, ExecutionHookStatus, RecordedHook},
    pod_notification::Executor,
    words::{condition, reason},
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{
    Observed, Target,
    observed_children::{self as seen, Post, Pre},
    progress::{Over, Part},
};
use crate::{
    About, Gravity, Report,
    conditions::{self, Saying},
    freeze_window, retries,
};

/// Whether a PreAction may freeze once more, although every PostAction has succeeded.
pub(super) fn may_freeze_again(status: &ExecutionHookStatus) -> bool {
    let thawed = conditions::find(&status.conditions, condition::THAWED);
    thawed.is_some_and(|thawed| thawed.reason == reason::PROCESS_MAY_REMAIN)
}

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
        next.post_action_succeed = post_action_succeed(status, parts).or(next.post_action_succeed);
    }
    let thawed = next.post_action_succeed == Some(true);
    let may_freeze_again = parts.iter().find_map(|(_, child)| seen::once_more((*child)?)).filter(|_| thawed);
    next.freeze_window = freeze_window::of(next.container_execution_hook_statuses.iter(), thawed);
    let generation = observed.object.metadata.generation;
    let mut say = |kind, status, reason, message: &str| {
        conditions::set(&mut next.conditions, Saying { kind, status, reason, message }, generation, now);
    };
    match (over, next.pre_action_succeed) {
        (Some(Over { reason, message }), _) => {
            // Until every PostAction has succeeded for the last time, a container may be frozen.
            let truth = if thawed && may_freeze_again.is_none() { "False" } else { "Unknown" };
            say(condition::FROZEN, truth, reason, message);
        }
        (None, Some(true)) => say(condition::FROZEN, "True", reason::FROZEN, &frozen_message(parts)),
        (None, None | Some(false)) => say(condition::FROZEN, "False", reason::FREEZING, ""),
    }
    let Some(over) = over else { return next };
    if over.reason == reason::EXPIRED {
        say(condition::EXPIRED, "True", reason::EXPIRED, &over.message);
    }
    if let Some(message) = may_freeze_again {
        say(condition::THAWED, "Unknown", reason::PROCESS_MAY_REMAIN, &message);
    } else if !is_given_up(status) {
        let (truth, why, message) = thaw(observed, status, parts, next.post_action_succeed);
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

fn post_action_succeed(status: &ExecutionHookStatus, parts: &[Part<'_>]) -> Option<bool> {
    let post = |(target, child): &Part<'_>| match child {
        Some(child) => seen::post(child),
        None if has_vanished(status, target) => Post::GivenUp,
        None => Post::Done,
    };
    let all: Vec<_> = parts.iter().map(post).collect();
    (!all.contains(&Post::Owed)).then(|| all.iter().all(|post| *post == Post::Done))
}

/// Whether the PodNotification of a pod, which does not exist, had begun its PreAction and is not known to have taken it
/// back. It keeps its finalizer until then, so a person has removed that.
fn has_vanished(status: &ExecutionHookStatus, target: &Target) -> bool {
    let owes = |hook: &RecordedHook| hook.post_action.is_some() || hook.pre_action.holds();
    let begun = |record: &ContainerExecutionHookStatus| {
        record.pre_action_status.as_ref().is_some_and(|pre| pre.action_timestamp.is_some())
    };
    let mut records = status.container_execution_hook_statuses.iter().filter(|one| one.pod_uid == target.pod_uid);
    status.recorded.as_ref().is_some_and(owes) && records.any(|record| begun(record) && !is_taken_back(record))
}

fn is_taken_back(record: &ContainerExecutionHookStatus) -> bool {
    record.post_action_status.as_ref().is_some_and(|post| post.action_succeed == Some(true))
}

fn frozen_message(parts: &[Part<'_>]) -> String {
    let containers: usize = parts.iter().map(|(target, _)| target.containers.len()).sum();
    format!("{containers} container(s) of {} pod(s)", parts.len())
}

fn thaw(
    observed: &Observed<'_>,
    status: &ExecutionHookStatus,
    parts: &[Part<'_>],
    post_action_succeed: Option<bool>,
) -> (&'static str, &'static str, String) {
    let in_state =
        |wanted: Post| parts.iter().filter_map(|(_, child)| *child).find(move |child| seen::post(child) == wanted);
    let vanished = parts.iter().find(|(target, child)| child.is_none() && has_vanished(status, target));
    match post_action_succeed {
        None => (
            "False",
            reason::THAWING,
            parts.iter().find_map(|(_, child)| thawing_message((*child)?)).unwrap_or_default(),
        ),
        Some(true) => match parts.iter().filter_map(|(_, child)| *child).find(|child| seen::is_pod_gone(child)) {
            Some(child) => ("True", reason::POD_GONE, pod_gone_message(&child.spec.pod_name)),
            None => ("True", reason::THAWED, String::new()),
        },
        Some(false) => match (in_state(Post::Failed), in_state(Post::GivenUp)) {
            (None, Some(child)) if seen::is_abandoned(child) => {
                ("False", reason::ABANDONED, seen::undone_message(child))
            }
            (None, Some(child)) => ("Unknown", reason::THAW_UNCONFIRMED, seen::undone_message(child)),
            (None, None) if vanished.is_some() => {
                let pod = vanished.map(|(target, _)| target.pod_name.as_str()).unwrap_or_default();
                ("Unknown", reason::THAW_UNCONFIRMED, vanished_message(pod))
            }
            (failed, _) => {
                let what = failed.map(seen::undone_message).unwrap_or_default();
                let name = observed.object.name_any();
                let message = format!(
                    "{what}. When that is fixed, `boathook thaw {name}` retries at once; `--force` gives up the thaw"
                );
                ("False", reason::THAW_FAILED, message)
            }
        },
    }
}

/// Which agent is to run a PostAction: when that agent is dead, this says where to look.
fn thawing_message(child: &PodNotification) -> Option<String> {
    let status = child.status.as_ref()?;
    let is_agents = status.executor == Some(Executor::Agent) && seen::post(child) == Post::Owed;
    let node = status.node_name.as_ref().filter(|_| is_agents)?;
    Some(format!("the agent of node `{node}` runs the PostAction in pod `{}`", child.spec.pod_name))
}

fn pod_gone_message(pod: &str) -> String {
    format!(
        "pod `{pod}` is gone, so its PostAction did not run. If the freeze outlives the pod, for example on a volume, \
         thaw it by hand"
    )
}

fn vanished_message(pod: &str) -> String {
    format!(
        "the PodNotification of pod `{pod}` is gone, and no status reports that its PostAction ran: check the pod, and \
         thaw it by hand if it is still frozen"
    )
}

/// Whether a PodNotification that is about to go says for the last time that its pod is thawed.
pub(super) fn is_last_word(before: &ExecutionHookStatus, after: &ExecutionHookStatus, parts: &[Part<'_>]) -> bool {
    let goes = |child: &&PodNotification| child.metadata.deletion_timestamp.is_some();
    let going = parts.iter().filter(|(_, child)| child.as_ref().is_some_and(goes));
    let taken_back = |status: &ExecutionHookStatus, target: &Target| {
        let mut records = status.container_execution_hook_statuses.iter().filter(|one| one.pod_uid == target.pod_uid);
        records.all(is_taken_back)
    };
    going.into_iter().any(|(target, _)| taken_back(after, target) && !taken_back(before, target))
}

/// Whether something changed that is worth a write: what else changed comes with it.
pub(super) fn is_news(before: &ExecutionHookStatus, after: &ExecutionHookStatus) -> bool {
    before.pre_action_succeed != after.pre_action_succeed
        || before.post_action_succeed != after.post_action_succeed
        || conditions::differ(&before.conditions, &after.conditions)
        || fails_again(before, after)
        || may_freeze_again(after) && thawed_message(before) != thawed_message(after)
}

fn thawed_message(status: &ExecutionHookStatus) -> Option<&str> {
    conditions::find(&status.conditions, condition::THAWED).map(|thawed| thawed.message.as_str())
}

/// Whether a PostAction has failed again since the status reported it, so long ago that it reports it again.
fn fails_again(before: &ExecutionHookStatus, after: &ExecutionHookStatus) -> bool {
    let last = |status: &ExecutionHookStatus| retries::last_failure(status.container_execution_hook_statuses.iter());
    let thawed = conditions::find(&after.conditions, condition::THAWED);
    let (before, after) = ((before.conditions.as_slice(), last(before)), (after.conditions.as_slice(), last(after)));
    thawed.is_some_and(|thawed| thawed.reason == reason::THAW_FAILED) && retries::is_repeated(before, after)
}

pub(super) fn reports(before: &ExecutionHookStatus, after: &ExecutionHookStatus) -> Vec<Report> {
    let again = conditions::find(&after.conditions, condition::THAWED).filter(|_| fails_again(before, after));
    let changed: Vec<_> = conditions::changed(&before.conditions, &after.conditions).collect();
    let again = again.filter(|again| !changed.contains(again));
    let told = changed.iter().copied().chain(again).filter_map(|condition| {
        let window = after.freeze_window.as_ref().and_then(|window| window.duration.as_deref());
        let is_reason_known = || {
            conditions::find(&before.conditions, &condition.type_).is_some_and(|said| said.reason == condition.reason)
        };
        let (gravity, action, note) = match (condition.type_.as_str(), condition.reason.as_str()) {
            // Only its status follows the thaw.
            (condition::FROZEN, _) if is_reason_known() => return None,
            (condition::FROZEN, reason::FROZEN) => (Gravity::Normal, "Freeze", condition.message.clone()),
            (condition::FROZEN, reason::PRE_ACTION_FAILED | reason::SESSION_LOST | reason::EXPIRED) => {
                (Gravity::Warning, "Freeze", condition.message.clone())
            }
            (condition::THAWED, reason::THAWED) => {
                let note = window.map(|window| format!("thawed after {window}"));
                (Gravity::Normal, "Thaw", note.unwrap_or_else(|| "no pod is frozen".to_owned()))
            }
            (
                condition::THAWED,
                reason::THAW_FAILED
                | reason::ABANDONED
                | reason::THAW_UNCONFIRMED
                | reason::POD_GONE
                | reason::PROCESS_MAY_REMAIN,
            ) => (Gravity::Warning, "Thaw", condition.message.clone()),
            _ => return None,
        };
        Some(Report { about: About::Object, gravity, reason: condition.reason.clone(), action, note })
    });
    told.collect()
}
