//! The undo in rounds: in every container where it is owed, again and again until it has succeeded.

use boathook_api::{
    outcome::{Ended, Outcome, UndoWork},
    pod_notification::{ContainerNotificationStatus, PodNotificationStatus, UndoStatus},
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};

use super::{Decision, Effect, Object, Progress, Role, earliest, errors, held, resolve, undo};
use crate::{
    Gravity,
    conditions::{self, Saying},
    moment::moment,
    retries,
};

/// Between two rounds of an undo that fails: from one second, doubling, up to this.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// Starts the undos that are not known to have succeeded.
pub(super) fn start(object: &Object<'_>, decision: &mut Decision) {
    let work = recorded(&object.status, is_owed);
    if !work.is_empty() {
        decision.effects.push(Effect::StartUndo(work));
    }
}

/// The next round after the handlers have ended: at once, or when it is time.
pub(super) fn follow(
    undo: &Progress,
    run: &[(String, Ended)],
    object: &Object<'_>,
    now: Timestamp,
    decision: &mut Decision,
) {
    match undo {
        Progress::Idle => start(object, decision),
        Progress::Running => {}
        Progress::Ended { results, .. } if is_outrun(results, run) => start(object, decision),
        Progress::Ended { results, round } => {
            try_again(object, failed(object, results), results, *round, now, decision)
        }
    }
}

/// Whether a handler ended after its undo had begun: that undo may have taken nothing back, and does not count.
pub(super) fn is_outrun(undo: &[(String, Ended)], run: &[(String, Ended)]) -> bool {
    let end = run.iter().map(|(_, ended)| ended.completed).max();
    undo.iter().any(|(_, ended)| Some(ended.started) <= end)
}

/// The undos that failed in this round.
pub(super) fn failed(object: &Object<'_>, results: &[(String, Ended)]) -> Vec<(String, UndoWork)> {
    recorded(&object.status, |record| failed_in(results, &record.name))
}

fn failed_in(results: &[(String, Ended)], container: &str) -> bool {
    results.iter().any(|(name, ended)| name == container && ended.outcome != Outcome::Succeeded)
}

/// Starts what is left of a round, or says when.
pub(super) fn try_again(
    object: &Object<'_>,
    work: Vec<(String, UndoWork)>,
    results: &[(String, Ended)],
    round: u32,
    now: Timestamp,
    decision: &mut Decision,
) {
    let ended = results.iter().map(|(_, ended)| ended.completed).max().unwrap_or(now);
    // A person who has mended something does not wait for the next round, nor for one that began before.
    let begun = results.iter().map(|(_, ended)| ended.started).max().unwrap_or(now);
    let asked = object.undo_now().filter(|asked| begun < *asked);
    // Whoever asks with a clock that is ahead is heard when it is that time here: not again and again until then.
    let asked = asked.map(|asked| asked.max(ended));
    let next = earliest(asked, Some(ended + pause(round))).unwrap_or(ended);
    match work.is_empty() {
        true => {}
        // A round cannot end in the future: the wall clock was stepped back, and the pause would last as long as that step.
        false if next <= now || now < ended => decision.effects.push(Effect::StartUndo(work)),
        false => decision.again = earliest(decision.again, Some(next)),
    }
}

fn is_owed(record: &ContainerNotificationStatus) -> bool {
    record.undo.as_ref().is_some_and(|undo| undo.succeeded != Some(true))
}

/// The undos as they were recorded, in the containers that are asked for.
pub(super) fn recorded(
    status: &PodNotificationStatus,
    asked_for: impl Fn(&ContainerNotificationStatus) -> bool,
) -> Vec<(String, UndoWork)> {
    let work = |record: &ContainerNotificationStatus| {
        // What was recorded was valid then; a hand that changed it since makes it nobody's to run.
        let undo = record.undo.as_ref()?;
        let work = resolve::undo_work(undo.action.as_ref(), undo.release_seconds).ok()?;
        Some((record.name.clone(), work))
    };
    status.containers.iter().filter(|record| asked_for(record)).filter_map(work).collect()
}

/// A round has ended while handlers still run: what failed is reported and tried again. What succeeded is not recorded, since
/// a handler that ends later is undone once more.
pub(super) fn ended_beside(
    role: Role,
    object: &Object<'_>,
    results: &[(String, Ended)],
    round: u32,
    now: Timestamp,
    decision: &mut Decision,
) {
    let work = failed(object, results);
    if work.is_empty() {
        return;
    }
    try_again(object, work, results, round, now, decision);
    let failed: Vec<_> = results.iter().filter(|(_, ended)| ended.outcome != Outcome::Succeeded).cloned().collect();
    let mut status = object.status.clone();
    if write_results(role, object, &mut status, &failed, round) {
        report_failure(object, status, |record| failed_in(&failed, &record.name), now, decision);
    }
}

/// A round of the undo has ended.
pub(super) fn ended(
    role: Role,
    object: &Object<'_>,
    results: &[(String, Ended)],
    round: u32,
    now: Timestamp,
) -> Decision {
    let mut status = object.status.clone();
    let news = write_results(role, object, &mut status, results, round);
    let open = |record: &ContainerNotificationStatus| {
        record.undo.is_some() && (is_owed(record) || failed_in(results, &record.name))
    };
    if !status.containers.iter().any(open) {
        let (why, message) = held::word_of_the_end(&status);
        return undo::close(object, status, ("True", why, &message), Gravity::Normal, now);
    }
    let mut decision = Decision::default();
    // Before any write: what needs no API server does not wait for one.
    try_again(object, recorded(&status, open), results, round, now, &mut decision);
    if news {
        report_failure(object, status, open, now, &mut decision);
    }
    decision
}

/// Writes down how the undos ended. Returns whether that is worth a write.
fn write_results(
    role: Role,
    object: &Object<'_>,
    status: &mut PodNotificationStatus,
    results: &[(String, Ended)],
    round: u32,
) -> bool {
    // A process without the lease retries beside the leader: if both repeated their failures, neither would stop.
    let is_outdated = !role.is_thaw_only() && is_outdated(status, results);
    let mut news = false;
    for (container, ended) in results {
        let record = status.containers.iter_mut().find(|record| &record.name == container);
        if let Some(undo) = record.and_then(|record| record.undo.as_mut()) {
            let succeeded = ended.outcome == Outcome::Succeeded;
            // What has succeeded stays so, also if another process tried as well and failed: else the two would
            // contradict each other for ever.
            let is_news = undo.succeeded != Some(succeeded) || was_asked_for(object, undo, ended) || is_outdated;
            if undo.succeeded != Some(true) && is_news {
                write_down(undo, ended);
                // Rounds that were not reported count too.
                undo.attempts = undo.attempts.max(i32::try_from(round).ok());
                news = true;
            }
        }
    }
    news
}

/// Reports the first undo of these that is not done.
fn report_failure(
    object: &Object<'_>,
    mut status: PodNotificationStatus,
    is_open: impl Fn(&ContainerNotificationStatus) -> bool,
    now: Timestamp,
    decision: &mut Decision,
) {
    let Some(record) = status.containers.iter().find(|record| is_open(record)) else { return };
    let error = record.undo.as_ref().and_then(|undo| undo.error.as_ref());
    let why = error.map_or("the undo has not run yet", |error| error.message.as_str());
    let why = format!("container `{}`: {why}", record.name);
    let message =
        format!("{why}; the executor retries the undo until it succeeds. Check the pod, which may still be frozen");
    let saying = Saying { kind: condition::UNDONE, status: "False", reason: reason::UNDO_FAILED, message: &message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision.reports.push(undo::report(Gravity::Warning, reason::UNDO_FAILED, message));
}

/// Whether the status reports a failure of a minute before.
fn is_outdated(status: &PodNotificationStatus, results: &[(String, Ended)]) -> bool {
    let reported = |container: &String| {
        let record = status.containers.iter().find(|record| record.name == *container)?;
        record.undo.as_ref()?.complete_time.as_ref().map(|time| time.0)
    };
    let failed = results.iter().filter(|(_, ended)| ended.outcome != Outcome::Succeeded);
    failed.into_iter().any(|(container, ended)| retries::is_outdated(reported(container), Some(ended.completed)))
}

/// A person asked for this round, and waits to hear how it went, also if that is as before.
fn was_asked_for(object: &Object<'_>, undo: &UndoStatus, ended: &Ended) -> bool {
    let told = undo.start_time.as_ref().map(|time| time.0);
    object.undo_now().is_some_and(|asked| told < Some(asked) && asked <= ended.started)
}

fn pause(round: u32) -> SignedDuration {
    let doubled = SignedDuration::from_secs(1 << round.saturating_sub(1).min(6));
    doubled.min(LONGEST_PAUSE)
}

pub(super) fn write_down(undo: &mut UndoStatus, ended: &Ended) {
    let Ended { outcome, exit_code, output, container_id, attempts, started, completed, process_may_remain: _ } = ended;
    undo.container_id.clone_from(container_id);
    undo.start_time = Some(moment(*started));
    undo.complete_time = Some(moment(*completed));
    undo.attempts = Some(undo.attempts.unwrap_or_default().saturating_add(*attempts));
    undo.exit_code = *exit_code;
    undo.output = Some(output.clone()).filter(|output| !output.is_empty());
    undo.succeeded = Some(matches!(outcome, Outcome::Succeeded));
    undo.error = outcome.failure().map(|failure| errors::of_command(failure, output, *completed));
}
