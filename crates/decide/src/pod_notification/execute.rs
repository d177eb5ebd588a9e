//! From a claim to the end of the handlers.

use boathook_api::{
    outcome::{Ended, Outcome},
    pod_notification::{ContainerNotificationStatus, ErrorType, Executor, PodNotificationStatus, State},
    words::{condition, reason},
};
use jiff::Timestamp;

use super::{
    Decision, Due, Effect, Object, Observed, PATIENCE, Progress, Role, SILENCE, SOON, SeenPod, accept, earliest,
    ending, errors, refuse, rounds, undo,
};
use crate::{
    About, Gravity, Leadership, Report,
    conditions::{self, Saying},
    moment::moment,
};

/// It is claimed, and not yet complete.
pub(super) fn claimed(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let mine = object.is_mine(observed.me);
    match (observed.me.role, object.status.executor) {
        (Role::Agent, Some(Executor::Agent)) => {}
        (Role::Agent, Some(Executor::Api) | None) => return Decision::default(),
        (Role::Controller { leadership, .. }, Some(Executor::Agent)) => {
            return silent_agent(observed, object, leadership, now);
        }
        (Role::Controller { leadership: Leadership::Leader, .. }, Some(Executor::Api) | None) => {}
        (Role::Controller { leadership: Leadership::ThawOnly, .. }, Some(Executor::Api) | None) if mine => {}
        (Role::Controller { leadership: Leadership::ThawOnly, .. }, Some(Executor::Api) | None) => {
            return Decision::default();
        }
    }
    if !mine {
        return unknown(observed, object, "the executor is gone, and the handler may have run", now);
    }
    match &observed.run {
        Progress::Idle => never_started(observed, object, now),
        Progress::Running => running(observed, object, now),
        Progress::Ended { results, .. } => complete(observed, object, results, now),
    }
}

/// The claim is this process' own, but it never learnt that it had been written: nothing was started.
fn never_started(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    if let Role::Controller { leadership: Leadership::ThawOnly, .. } = observed.me.role {
        return Decision::default();
    }
    match &observed.pod {
        SeenPod::Unknown => Decision { again: Some(now + SOON), ..Decision::default() },
        SeenPod::Gone { .. } | SeenPod::There(_) => accept::claim_again(observed, object, now),
    }
}

fn running(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> Decision {
    let expires = object.expires(observed);
    let expired = expires.is_some_and(|expires| expires <= now);
    let mut decision = Decision { again: expires.filter(|_| !expired), ..Decision::default() };
    if !(expired || object.is_revoked() || observed.me.role.is_thaw_only()) {
        return decision;
    }
    let end = end(observed, object);
    // At expiry, and when the pod is ending, the undo runs beside a handler that cannot be ended, and once more after it.
    // Otherwise it follows the handler's own end, which its timeout bounds.
    let urgent = expired || ending::is_ending(&observed.pod);
    let beside = end == Effect::BeginNoMore && urgent && observed.undo == Progress::Idle;
    let cannot_end = end == Effect::BeginNoMore;
    decision.effects.push(end);
    if beside {
        rounds::start(object, &mut decision);
    }
    if let Progress::Ended { results, round } = &observed.undo
        && cannot_end
    {
        rounds::ended_beside(observed.me.role, object, results, *round, now, &mut decision);
    }
    decision
}

/// As far as handlers that run can be ended: nothing of them may begin any more.
pub(super) fn end(observed: &Observed<'_>, object: &Object<'_>) -> Effect {
    match observed.me.role {
        // It ends whatever the handler started, so the undo can follow at once.
        Role::Agent => Effect::Cancel,
        // Its input is closed, upon which a held command ends.
        Role::Controller { .. } if object.object.spec.holds() => Effect::Cancel,
        // Through the API server nothing can be ended.
        Role::Controller { .. } => Effect::BeginNoMore,
    }
}

/// The handlers have ended in every container.
fn complete(observed: &Observed<'_>, object: &Object<'_>, results: &[(String, Ended)], now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    if observed.undo == Progress::Running {
        // It may have begun before the handlers' end; if so, another follows it.
        return decision;
    }
    let mut status = with_results(&object.status, results);
    for record in status.containers.iter_mut().filter(|record| record.succeeded.is_none() && record.error.is_none()) {
        let message = "the executor does not know how the handler ended";
        record.error = Some(errors::error(ErrorType::OutcomeUnknown, message, now));
    }
    let failed = status.containers.iter().find_map(|record| Some((record.name.clone(), record.error.clone()?)));
    status.complete_time = Some(moment(now));
    status.state = if failed.is_some() { State::Failed } else { State::Succeeded };
    let report = match failed {
        None => report(Gravity::Normal, reason::SUCCEEDED.to_owned(), ran(&status)),
        Some((container, mut error)) => {
            error.message = format!("container `{container}`: {}", error.message);
            let report = report(Gravity::Warning, errors::name(error.kind), error.message.clone());
            status.error = Some(error);
            report
        }
    };
    say_complete(object, &mut status, &report.note, now);
    if object.owes_undo() && status.containers.iter().all(|record| found_no_container_in(results, &record.name)) {
        refuse::say_nothing_to_undo(object, &mut status, now);
        decision.effects.extend([Effect::WriteStatus(Box::new(status)), Effect::ForgetRun, Effect::ForgetUndo]);
        decision.reports.push(report);
        return decision;
    }
    let after = Object { object: object.object, status: status.clone() };
    let due = undo::is_due(observed, &after, now) || observed.me.role.is_thaw_only();
    let undo_now = due && object.owes_undo();
    // Where the undo needs no API server it does not wait for one; nor where the next leader may have written; nor
    // where it is expected already.
    let expired = object.expires(observed).is_some_and(|expires| expires <= now);
    let first = observed.me.role == Role::Agent || observed.me.role.is_thaw_only() || expired || object.is_revoked();
    if undo_now && first {
        // Whoever reads that it succeeded is to read as well that it does not hold any more.
        for undo in status.containers.iter_mut().filter_map(|record| record.undo.as_mut()) {
            undo.start_time.get_or_insert(moment(now));
        }
        rounds::follow(&observed.undo, results, &after, now, &mut decision);
    }
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision.effects.push(Effect::ForgetRun);
    if undo_now && !first {
        rounds::follow(&observed.undo, results, &after, now, &mut decision);
    }
    decision.reports.push(report);
    decision.again = earliest(decision.again, object.expires(observed).filter(|expires| *expires > now));
    decision
}

/// Whether this is how these handlers ended, in this process' own words.
pub(super) fn is_written(status: &PodNotificationStatus, results: &[(String, Ended)]) -> bool {
    with_results(status, results).containers == status.containers
}

fn with_results(status: &PodNotificationStatus, results: &[(String, Ended)]) -> PodNotificationStatus {
    let mut status = status.clone();
    for (container, ended) in results {
        if let Some(record) = status.containers.iter_mut().find(|record| &record.name == container) {
            write_down(record, ended);
        }
    }
    status
}

/// An agent claimed it, and only it knows; but when the pod is gone and the agent stays silent, nobody will ever tell.
fn silent_agent(observed: &Observed<'_>, object: &Object<'_>, leadership: Leadership, now: Timestamp) -> Decision {
    if leadership == Leadership::ThawOnly {
        return Decision::default();
    }
    let claimed = object.status.claim.as_ref().map_or(now, |claim| claim.time.0);
    let silent_since = Due { from: claimed, after: SILENCE }.here(&observed.moved);
    match observed.pod {
        SeenPod::Gone { node_ready: true } if now < silent_since => {
            Decision { again: Some(silent_since), ..Decision::default() }
        }
        SeenPod::Gone { .. } => unknown(
            observed,
            object,
            "the pod is gone, and the agent of its node does not report whether the handler ran",
            now,
        ),
        // Its executor may be gone for good, and a person takes the rest upon them.
        SeenPod::Unknown | SeenPod::There(_) if object.is_abandoned() && object.is_revoked() => {
            unknown(observed, object, "the object was given up by annotation, and the handler may have run", now)
        }
        // Nobody else tells when the pod goes.
        SeenPod::Unknown | SeenPod::There(_) => Decision { again: Some(now + PATIENCE), ..Decision::default() },
    }
}

/// It may have run: it is never run again, and its undo runs.
fn unknown(observed: &Observed<'_>, object: &Object<'_>, message: &str, now: Timestamp) -> Decision {
    let mut status = object.status.clone();
    let error = errors::error(ErrorType::OutcomeUnknown, message, now);
    for record in status.containers.iter_mut().filter(|record| record.complete_time.is_none()) {
        record.error = Some(error.clone());
        // An agent ends the commands that an earlier one noted, and that may be not all that it began.
        record.process_may_remain = Some(true);
    }
    status.state = State::Failed;
    status.complete_time = Some(moment(now));
    status.error = Some(error);
    say_complete(object, &mut status, message, now);
    let mut decision = Decision::default();
    let here = match observed.me.role {
        Role::Agent => true,
        Role::Controller { .. } => object.status.executor != Some(Executor::Agent),
    };
    // Never before the write: the object may be one of a moment ago, and have succeeded since.
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    if here && object.owes_undo() && observed.undo == Progress::Idle {
        rounds::start(object, &mut decision);
    }
    decision.reports.push(report(Gravity::Warning, errors::name(ErrorType::OutcomeUnknown), message.to_owned()));
    decision
}

fn say_complete(object: &Object<'_>, status: &mut PodNotificationStatus, message: &str, now: Timestamp) {
    let why = if status.state == State::Succeeded { reason::SUCCEEDED } else { reason::FAILED };
    let saying = Saying { kind: condition::COMPLETE, status: "True", reason: why, message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
}

fn write_down(record: &mut ContainerNotificationStatus, ended: &Ended) {
    let Ended { outcome, exit_code, output, container_id, attempts, started, completed, process_may_remain } = ended;
    if found_no_container(ended) {
        record.undo = None;
    }
    record.process_may_remain = process_may_remain.then_some(true);
    record.container_id.clone_from(container_id);
    record.start_time = Some(moment(*started));
    record.complete_time = Some(moment(*completed));
    record.attempts = Some(*attempts);
    record.exit_code = *exit_code;
    record.output = Some(output.clone()).filter(|output| !output.is_empty());
    record.succeeded = match outcome {
        Outcome::Succeeded => Some(true),
        Outcome::Failed(_) => Some(false),
        Outcome::Unknown(_) => None,
    };
    let error = outcome.failure().map(|failure| errors::of_command(failure, output, *completed));
    record.error = error;
}

/// Whether the handler provably never started: no attempt found a running container to start it in, whatever kept the last
/// one from it. Then it owes no undo.
fn found_no_container(ended: &Ended) -> bool {
    matches!(ended.outcome, Outcome::Failed(_)) && ended.container_id.is_none() && !ended.process_may_remain
}

fn found_no_container_in(results: &[(String, Ended)], container: &str) -> bool {
    results.iter().any(|(name, ended)| name == container && found_no_container(ended))
}

fn ran(status: &PodNotificationStatus) -> String {
    let names: Vec<_> = status.containers.iter().map(|record| record.name.as_str()).collect();
    format!("ran in `{}`", names.join("`, `"))
}

fn report(gravity: Gravity, reason: String, note: String) -> Report {
    let about = match gravity {
        // One more write for each that went well would be one too many.
        Gravity::Normal => About::Object,
        Gravity::Warning => About::ObjectAndSubject,
    };
    Report { about, gravity, reason, action: "Run", note }
}
