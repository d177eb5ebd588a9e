//! The cut: every VolumeSnapshot is made at once, and all are waited for; not until they are ready to use, but until the
//! storage says that they were taken.

use boathook_api::{
    application_snapshot::{
        ApplicationSnapshotStatus, Consistency, OnHookFailure, Phase, SnapshotFailure, SnapshotRecord,
    },
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};

use super::{Decision, Effect, Observed, end, failure, hooks, is_deleted, is_made_by_others, made, sharing, verdict};
use crate::{
    conditions::{self, Saying},
    moment::moment,
};

/// Writes that it begins, then begins. `frozen` is what is said of the freeze.
pub(super) fn begin(
    observed: &Observed<'_>,
    mut status: ApplicationSnapshotStatus,
    (truth, why, message): (&'static str, &'static str, &str),
    decision: &mut Decision,
    now: Timestamp,
) {
    let object = observed.object;
    status.phase = Phase::Cutting;
    status.cut_time = Some(moment(now));
    let saying = Saying { kind: condition::FROZEN, status: truth, reason: why, message };
    conditions::set(&mut status.conditions, saying, object.metadata.generation, now);
    decision.again = deadline(observed, &status);
    let snapshots: Vec<_> = missing(observed, &status).map(|record| made::snapshot(object, record)).collect();
    if truth == "True" {
        decision.reports.push(end::report(crate::Gravity::Normal, why, "Freeze", message));
    }
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision.effects.extend(snapshots.into_iter().map(|snapshot| Effect::CreateSnapshot(Box::new(snapshot))));
}

pub(super) fn decide(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    let object = observed.object;
    hooks::copy(observed, &mut status);
    let cut = |record: &SnapshotRecord| {
        observed.snapshot(&record.volume_snapshot_name).is_some_and(|snapshot| snapshot.ours && snapshot.cut)
    };
    if status.consistency.is_some() {
        return wait_for_followers(observed, status, now);
    }
    let all_cut = status.snapshots.iter().all(cut);
    if let (true, Some(at_the_cut)) = (all_cut, &observed.at_the_cut) {
        let verdict = verdict::verdict(observed, &status, at_the_cut, now);
        return seen(observed, status, verdict, now);
    }
    if is_deleted(object) {
        let deleted =
            failure(reason::DELETED, "the ApplicationSnapshot was deleted before the storage reported the cut");
        return end::begin(observed, status, deleted, now);
    }
    if let Some(why) = cut_failure(observed, &mut status, now) {
        return end::begin(observed, status, why, now);
    }
    let mut decision = Decision { again: deadline(observed, &status), ..Decision::default() };
    let missing: Vec<_> = missing(observed, &status).map(|record| made::snapshot(object, record)).collect();
    // Things go on all the same, but this is not forgotten.
    let news = object.status.as_ref().is_some_and(|earlier| {
        let seen = |status: &ApplicationSnapshotStatus| -> Vec<bool> {
            status.snapshots.iter().map(|record| record.seen_time.is_some()).collect()
        };
        earlier.failure != status.failure || seen(earlier) != seen(&status)
    });
    // And nothing is made without a write: what was looked at may be an old version.
    if news || !missing.is_empty() {
        decision.effects.push(Effect::WriteStatus(Box::new(status)));
    }
    decision.effects.extend(missing.into_iter().map(|snapshot| Effect::CreateSnapshot(Box::new(snapshot))));
    decision
}

/// What ends the cut before it was seen.
fn cut_failure(
    observed: &Observed<'_>,
    status: &mut ApplicationSnapshotStatus,
    now: Timestamp,
) -> Option<SnapshotFailure> {
    if let Some(message) = &observed.refused {
        return Some(failure(reason::CUT_FAILED, message));
    }
    for record in &mut status.snapshots {
        let Some(snapshot) = observed.snapshot(&record.volume_snapshot_name) else {
            if record.seen_time.is_some() {
                return Some(deleted(&record.volume_snapshot_name, None));
            }
            continue;
        };
        if !snapshot.ours {
            let message = format!(
                "another VolumeSnapshot `{}` exists, which this ApplicationSnapshot did not create: delete it, and \
                 create the ApplicationSnapshot again",
                snapshot.name
            );
            return Some(failure(reason::SNAPSHOT_EXISTS, message));
        }
        if let Some(error) = snapshot.error.as_ref().filter(|_| !snapshot.cut) {
            record.error = Some(error.clone());
            return Some(failure(reason::CUT_FAILED, format!("VolumeSnapshot `{}`: {error}", snapshot.name)));
        }
        if snapshot.deleted && !snapshot.cut {
            return Some(deleted(&snapshot.name, snapshot.last_error.as_deref()));
        }
        if is_made_by_others(observed.object) && record.seen_time.is_none() {
            record.seen_time = Some(moment(now));
        }
    }
    let hooks = sharing::failure_of(observed, status).or_else(|| hooks::failure_of(observed, status));
    if let Some(why) = hooks.filter(|_| status.failure.is_none()) {
        match observed.object.spec.on_hook_failure {
            OnHookFailure::Fail => return Some(why),
            OnHookFailure::CrashConsistent => {
                // Only the thaw of every hook says that nothing is frozen.
                let saying = Saying {
                    kind: condition::FROZEN,
                    status: "Unknown",
                    reason: reason::HOOK_FAILED,
                    message: &why.message,
                };
                conditions::set(&mut status.conditions, saying, observed.object.metadata.generation, now);
                status.failure = Some(why);
            }
        }
    }
    if deadline(observed, status).is_some_and(|deadline| deadline <= now) {
        let mut message = format!(
            "the storage did not report the cut within {} s (cutTimeoutSeconds)",
            observed.object.spec.cut_timeout_seconds
        );
        for record in &mut status.snapshots {
            let snapshot = observed.snapshot(&record.volume_snapshot_name).filter(|snapshot| !snapshot.cut);
            if let Some(error) = snapshot.and_then(|snapshot| snapshot.last_error.as_ref()) {
                message.push_str(&format!("; VolumeSnapshot `{}` reports: {error}", record.volume_snapshot_name));
                record.error = Some(error.clone());
            }
        }
        return Some(failure(reason::CUT_TIMED_OUT, message));
    }
    None
}

fn deleted(snapshot: &str, last_error: Option<&str>) -> SnapshotFailure {
    let said = last_error.map(|error| format!("; its last error: {error}")).unwrap_or_default();
    failure(reason::CUT_FAILED, format!("VolumeSnapshot `{snapshot}` was deleted before the storage cut it{said}"))
}

/// Everything has been cut: how good it is, is said now and never again.
fn seen(
    observed: &Observed<'_>,
    mut status: ApplicationSnapshotStatus,
    verdict: Result<Vec<String>, SnapshotFailure>,
    now: Timestamp,
) -> Decision {
    for record in &mut status.snapshots {
        record.cut_seen_time = Some(moment(now));
    }
    (status.consistency, status.vouched_pods, status.failure) = match verdict {
        Ok(vouched) => (Some(Consistency::Application), vouched, None),
        Err(why) => (Some(Consistency::Crash), vec![], Some(why)),
    };
    let mut decision = wait_for_followers(observed, status.clone(), now);
    if decision.effects.is_empty() {
        decision.effects.push(Effect::WriteStatus(Box::new(status)));
    }
    decision
}

/// Everything stays frozen for those that share the freeze, but no longer than a cut may take; then it is thawed.
fn wait_for_followers(observed: &Observed<'_>, status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    let deadline = deadline(observed, &status);
    let in_time = deadline.is_some_and(|deadline| now < deadline) && !is_deleted(observed.object);
    let is_frozen = hooks::failure_of(observed, &status).is_none();
    match in_time && is_frozen && sharing::is_waited_for(observed, &status) {
        true => Decision { again: deadline, ..Decision::default() },
        false => end::go_on(observed, status, now),
    }
}

fn deadline(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<Timestamp> {
    let seconds = observed.object.spec.cut_timeout_seconds;
    Some(status.cut_time.as_ref()?.0 + SignedDuration::from_secs(seconds.into()))
}

/// The VolumeSnapshots that are for us to make.
fn missing<'a>(
    observed: &Observed<'_>,
    status: &'a ApplicationSnapshotStatus,
) -> impl Iterator<Item = &'a SnapshotRecord> {
    let missing = |record: &&SnapshotRecord| {
        !is_made_by_others(observed.object) && observed.snapshot(&record.volume_snapshot_name).is_none()
    };
    status.snapshots.iter().filter(missing).collect::<Vec<_>>().into_iter()
}
