//! Whether a snapshot is application-consistent: only when that is known to be true.
//!
//! Times of different clocks are never compared: whether a hook's time was over is judged by the clock of the process that accepted it, and
//! so only by that process. It counts from the acceptance, which is before any executor's own count began.

use boathook_api::{
    Action, ExecutionHook, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, SnapshotFailure},
    pod_notification::Executor,
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{AtTheCut, Claim, Observed, coverage, failure, hooks, other_notifications, sharing};
use crate::{
    conditions,
    execution_hook::{self, Target},
};

const ANOTHER_BEGAN: &str = "another controller began the freeze: this controller cannot tell whether it had expired";

/// `Ok`: Application, and the pods that only the author vouches for. What was observed was observed after every snapshot
/// had been seen cut.
pub(super) fn verdict(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    at_the_cut: &AtTheCut,
    now: Timestamp,
) -> Result<Vec<String>, SnapshotFailure> {
    if let Some(earlier) = &status.failure {
        return Err(earlier.clone());
    }
    if status.hooks.is_empty() {
        return without_hooks(observed, status, at_the_cut).map(|()| vec![]);
    }
    if let Some(why) = sharing::failure_of(observed, status).or_else(|| hooks::failure_of(observed, status)) {
        return Err(why);
    }
    if at_the_cut.and_more {
        let message = "this namespace has more PodNotifications than the controller checks, and an unchecked undo may \
                       have thawed the frozen pods: delete finished PodNotifications";
        return Err(failure(reason::THAWED_BY_ANOTHER, message));
    }
    for hook in status.hooks.iter().filter_map(|record| observed.hook(&record.name)) {
        in_time(observed, hook, now)?;
        for pod in hook.status.iter().flat_map(execution_hook::pinned_pods) {
            let child =
                still_held(&pod, observed.identity, execution_hook::child_of(hook, &pod, &at_the_cut.notifications))?;
            let own = |one: &PodNotification| observed.own_hooks().any(|hook| execution_hook::is_child_of(hook, one));
            let others = at_the_cut.notifications.iter().filter(|one| !own(one));
            undisturbed(&pod, child, others, |one| other_notifications::is_recorded(observed, status, one), now)?;
        }
        same_containers(hook, at_the_cut)?;
    }
    other_notifications::none_is_gone(observed, status, at_the_cut)?;
    no_new_pod(observed, status, at_the_cut)?;
    coverage::vouched(observed, status, at_the_cut)
}

/// Nothing used the claims, and nothing does; or there was no hook to run.
fn without_hooks(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    at_the_cut: &AtTheCut,
) -> Result<(), SnapshotFailure> {
    let frozen = conditions::find(&status.conditions, condition::FROZEN);
    if frozen.is_none_or(|frozen| frozen.reason != reason::NOT_IN_USE) {
        return Err(failure(reason::NO_HOOKS, "the snapshot had no hook: Boathook did not freeze the application"));
    }
    let is_used = |claim: &&Claim| claim.attached || coverage::users(observed, status, claim).next().is_some();
    match at_the_cut.claims.iter().find(is_used) {
        None => Ok(()),
        Some(claim) => Err(failure(
            reason::NEW_POD,
            format!(
                "claim `{}` was not in use when the snapshot began, but a pod used it at the cut or shortly before",
                claim.name
            ),
        )),
    }
}

fn in_time(observed: &Observed<'_>, hook: &ExecutionHook, now: Timestamp) -> Result<(), SnapshotFailure> {
    let status = hook.status.as_ref();
    let expiration = status.and_then(|status| status.recorded.as_ref()?.expiration_seconds);
    let Some(seconds) = expiration else { return Ok(()) };
    if status.and_then(|status| status.accepted_by.as_deref()) != Some(observed.identity) {
        return Err(failure(reason::CONTROLLER_CHANGED, ANOTHER_BEGAN));
    }
    let accepted = status.and_then(|status| status.start_time.as_ref());
    let over = accepted.is_none_or(|accepted| accepted.0 + SignedDuration::from_secs(seconds.into()) <= now);
    match over {
        false => Ok(()),
        true => Err(failure(
            reason::EXPIRED,
            format!("the controller saw the cut after the expirationSeconds ({seconds} s) of a hook"),
        )),
    }
}

fn still_held<'a>(
    pod: &Target,
    identity: &str,
    child: Option<&'a PodNotification>,
) -> Result<&'a PodNotification, SnapshotFailure> {
    let child = child.ok_or_else(|| {
        failure(reason::HOOK_FAILED, format!("the PodNotification of pod `{}` is gone", pod.pod_name))
    })?;
    execution_hook::is_held(child).map_err(|why| failure(reason::HOOK_FAILED, why))?;
    by_whom(child, identity)?;
    Ok(child)
}

/// Another PodNotification in these containers may have thawed them. One that is recorded on the snapshot was open when the
/// freeze began, or came later, so its state tells: a wall clock that was stepped back dates it before the freeze. Of the
/// rest the times tell: they are of the clock of the executor in this pod, as those of `child` are.
fn undisturbed<'a>(
    pod: &Target,
    child: &PodNotification,
    mut others: impl Iterator<Item = &'a PodNotification>,
    is_recorded: impl Fn(&PodNotification) -> bool,
    now: Timestamp,
) -> Result<(), SnapshotFailure> {
    let claim = child.status.as_ref().and_then(|status| status.claim.as_ref());
    let since = claim.map_or(now, |claim| claim.time.0);
    let has_run = |other: &PodNotification| {
        let ran = execution_hook::has_run_since(other, since) || is_recorded(other) && execution_hook::has_run(other);
        ran && may_thaw(other, child)
    };
    let is_undone = |other: &PodNotification| {
        execution_hook::is_undone_since(other, since, now) || is_recorded(other) && execution_hook::is_undone(other)
    };
    let thaws = |other: &&PodNotification| {
        let Some(status) = &other.status else { return false };
        let here = status.pod_uid.as_deref() == Some(&pod.pod_uid);
        let shares = status.containers.iter().any(|record| pod.containers.contains(&record.name));
        here && shares && (is_undone(other) || has_run(other))
    };
    match others.find(thaws) {
        None => Ok(()),
        Some(other) => {
            let done = if has_run(other) { "ran" } else { "was undone" };
            let message = format!(
                "PodNotification `{}` {done} in pod `{}` while this snapshot held that pod frozen: run them one after \
                 the other",
                other.name_any(),
                pod.pod_name
            );
            Err(failure(reason::THAWED_BY_ANOTHER, message))
        }
    }
}

/// Whether its handler may thaw what `child` froze. An action with an undo freezes, unless it is the action that takes
/// `child` back. What a handler without an undo does is not known, nor what a notifier does: its author declared the
/// command, and a caller who may not write commands chose the undo. Only the notifier that froze `child` is known to freeze.
fn may_thaw(other: &PodNotification, child: &PodNotification) -> bool {
    let unknown_notifier = other.spec.notifier.is_some() && other.spec.notifier != child.spec.notifier;
    other.spec.undo.is_none() || unknown_notifier || runs_undo_of(other, child)
}

/// Whether its handler is the notifier or the action that takes `child` back.
fn runs_undo_of(other: &PodNotification, child: &PodNotification) -> bool {
    let undo = child.spec.undo.as_ref();
    let notifier =
        undo.and_then(|undo| undo.notifier.as_ref()).is_some_and(|own| other.spec.notifier.as_ref() == Some(own));
    let records = child.status.iter().flat_map(|status| &status.containers);
    let armed = records.filter_map(|record| record.undo.as_ref()?.action.as_ref());
    let mut actions = armed.chain(undo.and_then(|undo| undo.action.as_ref()));
    let same = |one: &Action, action: &Action| {
        *one == Action { timeout_seconds: one.timeout_seconds, output: one.output, ..action.clone() }
    };
    notifier || other.spec.action.as_ref().is_some_and(|own| actions.any(|action| same(action, own)))
}

/// The time of what a controller froze ends by that controller's clock, and a session that it holds ends with it. An
/// agent has a clock of its own, and it too began to count after the hook was accepted.
fn by_whom(child: &PodNotification, identity: &str) -> Result<(), SnapshotFailure> {
    let expires = child.spec.undo.as_ref().is_some_and(|undo| undo.after_seconds.is_some());
    let lasts = !expires && !child.spec.holds();
    let status = child.status.as_ref();
    let by_agent = status.is_some_and(|status| status.executor == Some(Executor::Agent));
    let by_this_one = status.and_then(|status| status.claim.as_ref()).is_some_and(|claim| claim.holder == identity);
    match by_agent || by_this_one || lasts {
        true => Ok(()),
        false => Err(failure(reason::CONTROLLER_CHANGED, ANOTHER_BEGAN)),
    }
}

fn same_containers(hook: &ExecutionHook, at_the_cut: &AtTheCut) -> Result<(), SnapshotFailure> {
    let records = hook.status.iter().flat_map(|status| &status.container_execution_hook_statuses);
    for record in records {
        let now = at_the_cut
            .containers
            .iter()
            .find(|(uid, name, _)| *uid == record.pod_uid && *name == record.container_name);
        if record.container_id.is_none() || now.map(|(_, _, id)| id) != record.container_id.as_ref() {
            let message = format!(
                "container `{}` of pod `{}` restarted or disappeared while it was frozen",
                record.container_name, record.pod_name
            );
            return Err(failure(reason::CONTAINER_RESTARTED, message));
        }
    }
    Ok(())
}

fn no_new_pod(
    observed: &Observed<'_>,
    status: &ApplicationSnapshotStatus,
    at_the_cut: &AtTheCut,
) -> Result<(), SnapshotFailure> {
    for record in &status.snapshots {
        let claim = at_the_cut.claims.iter().find(|claim| claim.name == record.persistent_volume_claim_name);
        let claim = claim.ok_or_else(|| {
            failure(reason::CLAIM_NOT_FOUND, format!("claim `{}` is gone", record.persistent_volume_claim_name))
        })?;
        if let Some(new) = coverage::users(observed, status, claim).find(|pod| !record.pod_uids.contains(&pod.uid)) {
            let message = format!("pod `{}` mounted claim `{}` while it was frozen", new.name, claim.name);
            return Err(failure(reason::NEW_POD, message));
        }
    }
    Ok(())
}
