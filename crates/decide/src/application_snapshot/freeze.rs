//! Hook after hook, until all are frozen; or the first thing that goes wrong.

use boathook_api::{
    application_snapshot::{ApplicationSnapshotStatus, OnHookFailure, Trouble},
    words::reason,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Decision, Effect, Observed, cut, end,
    hooks::{self, Freeze},
    is_deleted, made, sharing, trouble,
};

pub(super) fn decide(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    let object = observed.object;
    hooks::copy(observed, &mut status);
    if is_deleted(object) {
        let deleted = trouble(reason::DELETED, "it was deleted before anything was cut");
        return end::begin(observed, status, deleted, now);
    }
    let deadline = deadline(observed, &status);
    if deadline.is_some_and(|deadline| deadline <= now) {
        let message = "the PreActions took longer than there was time";
        return failed(observed, status, trouble(reason::FREEZE_TIMED_OUT, message), now);
    }
    if let Some(why) = sharing::trouble_of(observed, &status) {
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

fn deadline(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<Timestamp> {
    let seconds = observed.object.spec.freeze_timeout_seconds?;
    Some(status.start_time.as_ref()?.0 + SignedDuration::from_secs(seconds.into()))
}

fn failed(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, why: Trouble, now: Timestamp) -> Decision {
    match observed.object.spec.on_hook_failure {
        OnHookFailure::Fail => end::begin(observed, status, why, now),
        OnHookFailure::CrashConsistent => {
            let mut decision = Decision::default();
            let message = why.message.clone();
            status.trouble = Some(why);
            cut::begin(observed, status, ("False", reason::HOOK_FAILED, &message), &mut decision, now);
            decision
        }
    }
}
