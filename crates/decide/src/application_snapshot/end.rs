//! The way back: hooks are thawed in reverse, then it is said how it went, then what is not needed any more goes.

use boathook_api::{
    ExecutionHook,
    application_snapshot::{ApplicationSnapshotStatus, Consistency, HookRecord, Phase, SnapshotFailure},
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::{Decision, Effect, Observed, SeenSnapshot, has_finalizer, hooks, is_made_by_others, leaving, sharing};
use crate::{
    About, Gravity, Report,
    conditions::{self, Saying},
    moment::moment,
    retries,
};

/// How often a thaw looks at a hook that lost its owner reference, until it is thawed.
const LOOK_AT_ORPHANS: SignedDuration = SignedDuration::from_secs(1);

/// How often a snapshot whose freeze is shared looks whether the others have recorded how the thaw went.
const LOOK_AT_FOLLOWERS: SignedDuration = SignedDuration::from_secs(1);

/// The reasons of a condition Thawed that is not true when everything else is over.
const FAILURES: [&str; 3] = [reason::THAW_FAILED, reason::THAW_UNCONFIRMED, reason::PROCESS_MAY_REMAIN];

/// It did not come about, and nothing was frozen.
pub(super) fn refuse(
    observed: &Observed<'_>,
    mut status: ApplicationSnapshotStatus,
    why: SnapshotFailure,
    now: Timestamp,
) -> Decision {
    status.failure = Some(why);
    let (status, reports) = finished(observed, status, now);
    let mut effects = vec![Effect::WriteStatus(Box::new(status))];
    if has_finalizer(observed.object) {
        effects.push(Effect::RemoveFinalizer);
    }
    Decision { effects, reports, again: None }
}

/// Something went wrong: back.
pub(super) fn begin(
    observed: &Observed<'_>,
    mut status: ApplicationSnapshotStatus,
    why: SnapshotFailure,
    now: Timestamp,
) -> Decision {
    // What went wrong before this did not keep it from being cut.
    status.failure = Some(why);
    go_on(observed, status, now)
}

/// Writes that the thaw begins, then begins it.
pub(super) fn go_on(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    status.phase = Phase::Thawing;
    // A hook may have frozen something: only its thaw says that nothing is.
    let truth = if status.hooks.is_empty() { "False" } else { "Unknown" };
    say_frozen(observed, &mut status, (truth, reason::THAWING), now);
    say_thawing(observed, &mut status, now);
    let mut effects = vec![Effect::WriteStatus(Box::new(status.clone()))];
    effects.extend(next_thaw(observed, &status));
    effects.extend(remove_uncut(observed, &status));
    Decision { effects, ..Decision::default() }
}

pub(super) fn thaw(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    hooks::copy(observed, &mut status);
    let mut decision = Decision::default();
    decision.effects.extend(next_thaw(observed, &status));
    decision.effects.extend(remove_uncut(observed, &status));
    let own = || status.hooks.iter().filter_map(|record| observed.hook(&record.name));
    if !sharing::is_over(observed, &status).unwrap_or_else(|| own().all(|hook| hooks::post(hook).is_some())) {
        decision.again = look_at_orphans(observed, now);
        return decision;
    }
    hooks::mark_unconfirmed(&mut status);
    if let Some(lost) = lost_session(observed, &status).filter(|_| status.consistency == Some(Consistency::Application))
    {
        // Only a session that was released is known to have lasted until then.
        status.consistency = Some(Consistency::Crash);
        status.vouched_pods.clear();
        status.failure = Some(lost);
    }
    decision.effects.extend(mark(observed, &status));
    let (status, reports) = finished(observed, status, now);
    decision.reports.extend(reports);
    decision.effects.push(Effect::WriteStatus(Box::new(status.clone())));
    decision.effects.extend(let_go(observed, &status));
    decision.again = look_at_followers(observed, &status, now);
    decision
}

/// A session that was to be held and had ended before anybody asked: who held it may have said so after the cut.
fn lost_session(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<SnapshotFailure> {
    let lost = |failure: &SnapshotFailure| failure.reason == reason::SESSION_LOST;
    let hooks = status.hooks.iter().filter_map(|record| observed.hook(&record.name));
    let own = hooks.filter_map(|hook| match hooks::freeze(hook) {
        hooks::Freeze::Over(failure) => Some(failure),
        hooks::Freeze::Frozen | hooks::Freeze::UnderWay => None,
    });
    let shared = sharing::first(observed, status).and_then(|first| first.status.as_ref()?.failure.clone());
    own.chain(shared).find(lost)
}

/// It is over. What is left to do needs no status, but for a PostAction that succeeds late.
pub(super) fn tidy(observed: &Observed<'_>, mut status: ApplicationSnapshotStatus, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    decision.effects.extend(next_thaw(observed, &status));
    decision.effects.extend(remove_uncut(observed, &status));
    decision.effects.extend(mark(observed, &status));
    let before = status.clone();
    hooks::copy(observed, &mut status);
    say_thawed(observed, &mut status, now);
    if before.phase == Phase::ThawFailed && owed(&status).is_none() {
        conclude(observed, &mut status, now);
    }
    let last = |status: &ApplicationSnapshotStatus| {
        retries::last_failure(status.hooks.iter().flat_map(|hook| &hook.containers))
    };
    let was = (before.conditions.as_slice(), last(&before));
    let fails_again = owed(&status).is_some() && retries::is_repeated(was, (&status.conditions, last(&status)));
    if fails_again || conditions::differ(&before.conditions, &status.conditions) {
        decision.reports.extend(report_of_thaw(&status));
        decision.effects.push(Effect::WriteStatus(Box::new(status.clone())));
    }
    decision.effects.extend(let_go(observed, &status));
    match leaving::goes_at(observed, &status) {
        Some(ends) if ends <= now => decision.effects.push(Effect::Delete),
        later => {
            let soon = look_at_followers(observed, &status, now).or_else(|| look_at_orphans(observed, now));
            decision.again = soon.into_iter().chain(later).min();
        }
    }
    decision
}

/// The changes of a hook that lost its owner reference do not wake this object.
fn look_at_orphans(observed: &Observed<'_>, now: Timestamp) -> Option<Timestamp> {
    let is_open = |hook: &&ExecutionHook| hooks::is_orphan(observed, hook) && hooks::post(hook) != Some(true);
    observed.own_hooks().find(is_open).map(|_| now + LOOK_AT_ORPHANS)
}

/// The last hook that is not thawed; the one before it follows when it has ended, well or not.
fn next_thaw(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Option<Effect> {
    if status.shares_freeze_of.is_some() {
        return None;
    }
    let hooks = status.hooks.iter().rev().filter_map(|record| observed.hook(&record.name));
    let open = hooks.into_iter().find(|hook| !hook.spec.thaw_requested || hooks::post(hook).is_none())?;
    (!open.spec.thaw_requested).then(|| Effect::ThawHook(open.name_any()))
}

/// Without a cut, what we made goes: the storage would go on trying for ever.
fn remove_uncut(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Vec<Effect> {
    if status.consistency.is_some() || is_made_by_others(observed.object) {
        return vec![];
    }
    let ours = observed.snapshots.iter().filter(|snapshot| snapshot.ours && !snapshot.deleted);
    ours.map(|snapshot| Effect::DeleteSnapshot { name: snapshot.name.clone(), uid: snapshot.uid.clone() }).collect()
}

/// Every VolumeSnapshot says itself how good it is.
fn mark(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Vec<Effect> {
    let consistency = match status.consistency {
        Some(consistency) => consistency,
        // Somebody else's, cut or not: nobody vouches for it.
        None if is_made_by_others(observed.object) => Consistency::Crash,
        None => return vec![],
    };
    // Also one that somebody else wrote something better on.
    let is_said = |one: &SeenSnapshot| one.consistency.as_deref() == Some(consistency.as_str());
    let lacking = observed.snapshots.iter().filter(|one| one.ours && !one.deleted && !is_said(one));
    let mark = |snapshot: &SeenSnapshot| Effect::MarkSnapshot {
        name: snapshot.name.clone(),
        uid: snapshot.uid.clone(),
        hooks: status.execution_hook_names.clone(),
        consistency,
    };
    lacking.map(mark).collect()
}

/// When to look again at followers that have yet to record how the thaw went.
fn look_at_followers(observed: &Observed<'_>, status: &ApplicationSnapshotStatus, now: Timestamp) -> Option<Timestamp> {
    sharing::is_read(observed, status).then(|| now + LOOK_AT_FOLLOWERS)
}

/// Hooks that did all they should go; others stay, for a person to read. Nothing goes while a follower has yet to record how
/// the thaw went: it reads that from this object and its hooks.
fn let_go(observed: &Observed<'_>, status: &ApplicationSnapshotStatus) -> Vec<Effect> {
    if sharing::is_read(observed, status) {
        return vec![];
    }
    let clean = status
        .hooks
        .iter()
        .filter(|record| record.pre_action_succeed == Some(true) && record.post_action_succeed == Some(true));
    let there = clean.filter_map(|record| observed.hook(&record.name));
    let is_ours = status.shares_freeze_of.is_none();
    let there = there.filter(|hook| hooks::once_more(hook).is_none());
    let there = there.filter(|hook| is_ours && hook.metadata.deletion_timestamp.is_none());
    let delete =
        |hook: &ExecutionHook| Effect::DeleteHook { name: hook.name_any(), uid: hook.uid().unwrap_or_default() };
    let mut effects: Vec<_> = there.map(delete).collect();
    effects.extend(leaving::owner(observed, status).map(|owner| Effect::SetOwner(Box::new(owner))));
    if has_finalizer(observed.object) {
        effects.push(Effect::RemoveFinalizer);
    }
    effects
}

fn finished(
    observed: &Observed<'_>,
    mut status: ApplicationSnapshotStatus,
    now: Timestamp,
) -> (ApplicationSnapshotStatus, Vec<Report>) {
    say_thawed(observed, &mut status, now);
    if owed(&status).is_none() {
        let report = conclude(observed, &mut status, now);
        return (status, vec![report]);
    }
    status.phase = Phase::ThawFailed;
    let (gravity, reason, message) = verdict(&status);
    let mut reports = vec![report(gravity, reason, "Cut", &message)];
    reports.extend(report_of_thaw(&status));
    (status, reports)
}

/// It is thawed: the verdict becomes the phase and the condition.
fn conclude(observed: &Observed<'_>, status: &mut ApplicationSnapshotStatus, now: Timestamp) -> Report {
    status.complete_time = Some(moment(now));
    let (gravity, reason, message) = verdict(status);
    let kind = match status.consistency {
        Some(_) => {
            status.phase = Phase::Complete;
            condition::COMPLETE
        }
        None => {
            status.phase = Phase::Failed;
            condition::FAILED
        }
    };
    say(observed, status, (kind, "True", reason, &message), now);
    report(gravity, reason, "Cut", &message)
}

/// What became of the snapshot: for an Event and a condition.
fn verdict(status: &ApplicationSnapshotStatus) -> (Gravity, &'static str, String) {
    let failure = status.failure.as_ref();
    let why = failure.map(|failure| failure.message.as_str()).unwrap_or_default();
    match status.consistency {
        Some(consistency) => {
            let (reason, message) = match consistency {
                Consistency::Application if status.hooks.is_empty() => {
                    (reason::NOT_IN_USE, "application-consistent: no pod used the claims".to_owned())
                }
                Consistency::Application if !status.vouched_pods.is_empty() => {
                    let pods = status.vouched_pods.join("`, `");
                    let message = format!(
                        "application-consistent, if the author of the snapshot is right: no hook covered `{pods}`, and \
                         the spec contains `otherPods: Vouched`"
                    );
                    (reason::CUT, message)
                }
                Consistency::Application => (reason::CUT, "application-consistent".to_owned()),
                Consistency::Crash => (reason::CUT, format!("crash-consistent only: {why}")),
            };
            (Gravity::Normal, reason, message)
        }
        None => {
            let reason = failure.map_or(reason::FAILED, |failure| known(&failure.reason));
            (Gravity::Warning, reason, why.to_owned())
        }
    }
}

fn say_frozen(
    observed: &Observed<'_>,
    status: &mut ApplicationSnapshotStatus,
    (truth, why): (&'static str, &'static str),
    now: Timestamp,
) {
    let said = conditions::find(&status.conditions, condition::FROZEN);
    let unused = said.filter(|frozen| frozen.reason == reason::NOT_IN_USE && status.failure.is_none());
    let failure = status.failure.as_ref().map(|failure| failure.message.clone());
    let (why, message) = match unused {
        // Why a snapshot without hooks is as good as one with them.
        Some(unused) => (reason::NOT_IN_USE, unused.message.clone()),
        None => (why, failure.unwrap_or_default()),
    };
    say(observed, status, (condition::FROZEN, truth, why, &message), now);
}

/// The first hook of which a PostAction failed, or is not known to have run.
fn owed(status: &ApplicationSnapshotStatus) -> Option<&HookRecord> {
    status.hooks.iter().find(|hook| hook.post_action_succeed == Some(false))
}

/// A thaw that failed or is not known to last, or the thaw that came after that.
fn report_of_thaw(status: &ApplicationSnapshotStatus) -> Option<Report> {
    let thawed = conditions::find(&status.conditions, condition::THAWED)?;
    let failed = FAILURES.into_iter().find(|reason| thawed.reason == *reason);
    Some(match failed {
        Some(reason) => report(Gravity::Warning, reason, "Thaw", &thawed.message),
        None => report(Gravity::Normal, reason::THAWED, "Thaw", "every hook has thawed"),
    })
}

/// What is owed stays owed, however long that is: so it is said from the start who can end it.
fn say_thawing(observed: &Observed<'_>, status: &mut ApplicationSnapshotStatus, now: Timestamp) {
    let message = match &status.shares_freeze_of {
        _ if status.hooks.is_empty() => return,
        Some(first) => format!(
            "the snapshot shares the freeze of ApplicationSnapshot `{}`, and waits until that snapshot has thawed",
            first.name
        ),
        None => format!(
            "the snapshot waits for the PostActions of its hooks, and other snapshots of its claims wait for it. If \
             the executor of a PostAction is permanently gone, thaw its pods by hand, then give up the PostAction with \
             `boathook thaw {} --force`",
            observed.object.name_any()
        ),
    };
    say(observed, status, (condition::THAWED, "False", reason::THAWING, &message), now);
}

fn say_thawed(observed: &Observed<'_>, status: &mut ApplicationSnapshotStatus, now: Timestamp) {
    let failure = owed(status).map(|hook| {
        let hooks = observed.hook(&hook.name).and_then(|seen| seen.status.as_ref());
        let hooks = hooks.and_then(|status| conditions::find(&status.conditions, condition::THAWED));
        // A hook that is gone cannot repeat its message.
        let said = conditions::find(&status.conditions, condition::THAWED);
        let said = said.and_then(|said| Some((FAILURES.into_iter().find(|reason| said.reason == *reason)?, said)));
        match (hooks, said) {
            (Some(thawed), _) => (reason::THAW_FAILED, format!("ExecutionHook `{}`: {}", hook.name, thawed.message)),
            (None, Some((reason, said))) => (reason, said.message.clone()),
            (None, None) => (reason::THAW_UNCONFIRMED, unconfirmed_message(&hook.name)),
        }
    });
    let once_more = status.hooks.iter().find_map(|record| {
        let message = hooks::once_more(observed.hook(&record.name)?)?;
        Some((reason::PROCESS_MAY_REMAIN, format!("ExecutionHook `{}`: {message}", record.name)))
    });
    let failure = failure.or(once_more);
    let says_frozen = conditions::find(&status.conditions, condition::FROZEN).is_some();
    if says_frozen && failure.is_none() {
        say_frozen(observed, status, ("False", reason::THAWED), now);
    }
    match (failure, status.hooks.is_empty()) {
        (Some((reason, message)), _) => {
            let truth = if reason == reason::THAW_FAILED { "False" } else { "Unknown" };
            for (kind, truth) in [(condition::FROZEN, "Unknown"), (condition::THAWED, truth)] {
                say(observed, status, (kind, truth, reason, &message), now);
            }
        }
        (None, true) => say(observed, status, (condition::THAWED, "True", reason::NOTHING_TO_UNDO, ""), now),
        (None, false) => {
            // A hook that is gone cannot repeat that a pod was gone before its PostAction ran.
            let own = conditions::find(&status.conditions, condition::THAWED).into_iter();
            let hooks = observed.own_hooks().filter_map(|hook| hook.status.as_ref());
            let mut said = hooks.filter_map(|hook| conditions::find(&hook.conditions, condition::THAWED)).chain(own);
            let gone = said.find(|thawed| thawed.reason == reason::POD_GONE).map(|thawed| thawed.message.clone());
            let why = if gone.is_some() { reason::POD_GONE } else { reason::THAWED };
            say(observed, status, (condition::THAWED, "True", why, &gone.unwrap_or_default()), now)
        }
    }
}

fn unconfirmed_message(hook: &str) -> String {
    format!(
        "ExecutionHook `{hook}` is gone, and its last status does not report that its PostActions ran: check its pods, \
         and thaw them by hand if they are still frozen"
    )
}

fn say(
    observed: &Observed<'_>,
    status: &mut ApplicationSnapshotStatus,
    (kind, truth, reason, message): (&'static str, &'static str, &'static str, &str),
    now: Timestamp,
) {
    let saying = Saying { kind, status: truth, reason, message };
    conditions::set(&mut status.conditions, saying, observed.object.metadata.generation, now);
}

/// Reasons are constants; one that came back from an object is found again among them.
fn known(reason: &str) -> &'static str {
    let all = [
        reason::NO_TARGET,
        reason::CLAIM_NOT_FOUND,
        reason::SNAPSHOT_EXISTS,
        reason::TEMPLATE_NOT_FOUND,
        reason::SNAPSHOT_CLASS_NOT_FOUND,
        reason::INVALID,
        reason::REFUSED,
        reason::HOOK_FAILED,
        // What made a crash of the one whose freeze it shares.
        reason::CONTAINER_RESTARTED,
        reason::NEW_POD,
        reason::POD_NOT_FROZEN,
        reason::CONTROLLER_CHANGED,
        reason::THAWED_BY_ANOTHER,
        reason::EXPIRED,
        reason::SESSION_LOST,
        reason::FREEZE_TIMED_OUT,
        reason::CUT_FAILED,
        reason::CUT_TIMED_OUT,
        reason::DELETED,
    ];
    all.into_iter().find(|known| *known == reason).unwrap_or(reason::FAILED)
}

pub(super) fn report(gravity: Gravity, reason: &'static str, action: &'static str, note: &str) -> Report {
    Report { about: About::Object, gravity, reason: reason.to_owned(), action, note: note.to_owned() }
}
