//! Hook after hook, until all are frozen; or the first thing that goes wrong.

use boathook_api::{
    ExecutionHook,
    action::DEFAULT_TIMEOUT_SECONDS,
    application_snapshot::{ApplicationSnapshotStatus, OnHookFailure, SnapshotFailure},
    pod_notification::DEFAULT_START_DEADLINE_SECONDS,
    words::reason,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Decision, Effect, Observed, cut, end, failure,
    hooks::{self, Freeze},
    is_deleted, made, other_notifications, sharing,
};

/// For everything that is no action: a change of leader, writes that are tried again, clocks that differ.
const SLACK: SignedDuration = SignedDuration::from_mins(1);

/// What a notifier may take stands with the pods that declare it, and is not known here. Who freezes for longer than this
/// says so by `freezeTimeoutSeconds`.
const NOTIFIER: SignedDuration = SignedDuration::from_mins(10);

pub(super) fn decide(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    let object = observed.object;
    hooks::copy(observed, &mut status);
    if is_deleted(object) {
        let deleted =
            failure(reason::DELETED, "the ApplicationSnapshot was deleted before any VolumeSnapshot was created");
        return end::begin(observed, status, deleted, now);
    }
    let deadline = deadline(observed, &status);
    if deadline.is_some_and(|deadline| deadline <= now) {
        let message = match object.spec.freeze_timeout_seconds {
            Some(_) => "the PreActions took longer than freezeTimeoutSeconds: raise it, or shorten the PreActions",
            None => {
                "no executor reported the result of the PreActions in time: check that the controller and the node \
                 agents run"
            }
        };
        return failed(observed, status, failure(reason::FREEZE_TIMED_OUT, message), now);
    }
    if let Some(message) = &observed.refused {
        return failed(observed, status, failure(reason::HOOK_FAILED, message), now);
    }
    if let Some(why) = sharing::failure_of(observed, &status).or_else(|| hooks::foreign(observed, &status)) {
        return failed(observed, status, why, now);
    }
    let frozen_by_another = sharing::is_frozen(observed, &status);
    if frozen_by_another == Some(false) {
        return Decision { again: deadline, ..Decision::default() };
    }
    let own = if frozen_by_another.is_none() { &status.hooks[..] } else { &[] };
    for (place, record) in own.iter().enumerate() {
        match observed.hook(&record.name).map(hooks::freeze) {
            Some(Freeze::Frozen) => {}
            Some(Freeze::UnderWay) => return Decision { again: deadline, ..Decision::default() },
            Some(Freeze::Over(why)) => return failed(observed, status, why, now),
            // It was there: its record says what it had come to.
            None if record.pre_action_succeed.is_some() => {
                let why = hooks::gone(record);
                return failed(observed, status, why, now);
            }
            None => {
                let hook = made::hook(object, &status, place);
                if let Some(present) = &observed.present {
                    other_notifications::record_present(object, &mut status, present);
                }
                // Not without a write: what was looked at may be an old version, and everything thawed since.
                let effects = vec![Effect::WriteStatus(Box::new(status)), Effect::CreateHook(Box::new(hook))];
                return Decision { effects, again: deadline, ..Decision::default() };
            }
        }
    }
    let mut decision = Decision::default();
    let message = format!("{} hook(s)", status.hooks.len());
    cut::begin(observed, status, ("True", reason::FROZEN, &message), &mut decision, now);
    decision
}

/// When the freeze has taken too long: without a time of its own, longer than the hooks that were made can take.
fn deadline(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<Timestamp> {
    let time = match observed.object.spec.freeze_timeout_seconds {
        Some(seconds) => SignedDuration::from_secs(seconds.into()),
        None => observed.own_hooks().map(longest).fold(SLACK, SignedDuration::saturating_add),
    };
    status.start_time.as_ref()?.0.checked_add(time).ok()
}

/// How long a hook's PreActions can take until they have ended, well or not: they may wait to be begun.
fn longest(hook: &ExecutionHook) -> SignedDuration {
    let action = hook.status.as_ref().and_then(|status| status.recorded.as_ref()).map(|recorded| &recorded.pre_action);
    let own = match action {
        Some(action) if !action.is_inline() => NOTIFIER,
        inline => {
            let seconds = inline.and_then(|action| action.action_timeout_seconds).unwrap_or(DEFAULT_TIMEOUT_SECONDS);
            SignedDuration::from_secs(seconds.into())
        }
    };
    own + SignedDuration::from_secs(DEFAULT_START_DEADLINE_SECONDS.into())
}

fn failed(
    observed: &Observed<'_>,
    mut status: ApplicationSnapshotStatus,
    why: SnapshotFailure,
    now: Timestamp,
) -> Decision {
    match observed.object.spec.on_hook_failure {
        OnHookFailure::Fail => end::begin(observed, status, why, now),
        OnHookFailure::CrashConsistent => {
            let mut decision = Decision::default();
            let message = why.message.clone();
            status.failure = Some(why);
            // Hooks before the one that failed may hold: only their thaw says that nothing is frozen.
            cut::begin(observed, status, ("Unknown", reason::HOOK_FAILED, &message), &mut decision, now);
            decision
        }
    }
}
