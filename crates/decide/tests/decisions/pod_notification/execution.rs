//! From a claim to the end of the handlers.

use boathook_api::{
    outcome::{Failure, Outcome},
    pod_notification::{ErrorType, Executor, State},
    words::condition,
};
use boathook_decide::pod_notification::{Decision, Progress, SeenPod};

use jiff::SignedDuration;

use super::{Look, THAW_ONLY, assert_refused, at, controller, deeds, ended, failed, reason, status, undone};

const SUCCEEDED: [Outcome; 2] = [Outcome::Succeeded, Outcome::Succeeded];

#[test]
fn handlers_that_succeed_everywhere_make_a_success_and_the_undo_waits() {
    let decision = Look::at_ended(Executor::Api, SUCCEEDED).decide();
    assert_eq!((deeds(&decision).join(", "), decision.again), ("write, forget run".to_owned(), Some(at(31))));
    let status = status(&decision).unwrap();
    assert_eq!((status.state, &status.error), (State::Succeeded, &None));
    assert_eq!(reason(&status, condition::COMPLETE), ("Succeeded".to_owned(), "True".to_owned()));
}

#[test]
fn one_handler_that_fails_makes_a_failure_that_names_it_and_the_undo_runs_everywhere() {
    let ends = [failed(ErrorType::HandlerFailed), Outcome::Succeeded];
    let decision = Look::at_ended(Executor::Api, ends.clone()).decide();
    assert_eq!(deeds(&decision), ["write", "forget run", "undo back front"]);
    let status = status(&decision).unwrap();
    let error = status.error.unwrap();
    assert_eq!((status.state, error.kind), (State::Failed, ErrorType::HandlerFailed));
    assert!(error.message.contains("container `back`"), "{}", error.message);
    // The agent does not wait for the API server.
    let decision = Look::at_ended(Executor::Agent, ends).decide();
    assert_eq!(deeds(&decision), ["undo back front", "write", "forget run"]);
}

#[test]
fn message_and_event_of_a_failure_end_with_its_output() {
    let failed = Outcome::Failed(Failure::new(ErrorType::HandlerFailed, "exit code 1"));
    let decision = Look::at_ended(Executor::Api, [failed, Outcome::Succeeded]).decide();
    let error = status(&decision).unwrap().error.unwrap();
    assert!(error.message.ends_with("exit code 1: said"), "{}", error.message);
    assert!(decision.reports.iter().any(|report| report.note == error.message), "{:?}", decision.reports);
}

#[test]
fn a_stream_that_closed_without_a_status_is_no_success() {
    let unknown = Outcome::Unknown(Failure::new(ErrorType::OutcomeUnknown, "the stream closed"));
    let status = Look::at_ended(Executor::Api, [Outcome::Succeeded, unknown]).written().status();
    assert_eq!(status.error.unwrap().kind, ErrorType::OutcomeUnknown);
    assert_eq!(status.containers[1].succeeded, None);
}

#[test]
fn a_container_of_which_nobody_spoke_is_no_success() {
    let mut look = Look::at_ended(Executor::Api, SUCCEEDED);
    if let Progress::Ended { results, .. } = &mut look.run {
        results.pop();
    }
    assert_eq!(look.written().status().error.unwrap().kind, ErrorType::OutcomeUnknown);
}

#[test]
fn what_another_process_has_claimed_is_unknown_and_its_undo_runs_after_that_is_written() {
    for executor in [Executor::Api, Executor::Agent] {
        let decision = Look::at_claimed(executor).claimed_by("another").decide();
        assert_eq!(deeds(&decision), ["write", "undo back front"], "{executor:?}");
        assert_eq!(status(&decision).unwrap().error.unwrap().kind, ErrorType::OutcomeUnknown);
    }
}

#[test]
fn a_claim_whose_answer_was_lost_is_written_again_before_anything_starts() {
    let mut look = Look::at_claimed(Executor::Api);
    look.now = 5;
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write", "start back front"]);
    assert_eq!(status(&decision).unwrap().claim.unwrap().time.0, at(5));
    // Unless it was revoked meanwhile: then nothing was run, and nothing is owed.
    assert_eq!(undone(&assert_refused(&look.requested(), ErrorType::Revoked)), "NothingToUndo");
}

#[test]
fn a_handler_that_returns_after_the_lease_was_lost_is_undone_before_anything_is_written() {
    let mut look = Look::at_ended(Executor::Api, SUCCEEDED);
    look.role = THAW_ONLY;
    assert_eq!(deeds(&look.decide()), ["undo back front", "write", "forget run"]);
}

#[test]
fn a_running_handler_is_ended_by_the_agent_when_it_is_revoked_or_expires() {
    let mut look = Look::at_claimed(Executor::Agent);
    look.run = Progress::Running;
    assert_eq!(look.decide(), Decision { again: Some(at(31)), ..Decision::default() });
    look.now = 31;
    assert_eq!(deeds(&look.decide()), ["cancel"]);
    look.now = 2;
    assert_eq!(deeds(&look.requested().decide()), ["cancel"]);
}

#[test]
fn through_the_api_server_the_undo_runs_beside_a_handler_at_expiry_and_once_more_after_it() {
    let mut look = Look::at_claimed(Executor::Api);
    (look.run, look.now) = (Progress::Running, 31);
    assert_eq!(deeds(&look.decide()), ["begin no more", "undo back front"]);
    (look.undo, look.run, look.now) = (Progress::Running, ended([1, 32], SUCCEEDED), 33);
    assert_eq!(look.decide(), Decision::default());
    look.undo = ended([31, 33], SUCCEEDED);
    assert_eq!(deeds(&look.decide()), ["undo back front", "write", "forget run"]);
    // Also when the answer to that write was lost.
    assert_eq!(deeds(&look.written().decide()), ["forget run", "undo back front"]);
}

#[test]
fn through_the_api_server_no_further_attempt_begins_after_a_revocation_the_expiry_or_the_loss_of_the_lease() {
    let running = || {
        let mut look = Look::at_claimed(Executor::Api);
        (look.run, look.now) = (Progress::Running, 2);
        look
    };
    assert_eq!(running().decide(), Decision { again: Some(at(31)), ..Decision::default() });
    assert_eq!(deeds(&running().requested().decide()), ["begin no more"]);
    assert_eq!(deeds(&running().deleted().decide()), ["begin no more"]);
    let mut look = running();
    look.role = THAW_ONLY;
    assert_eq!(deeds(&look.decide()), ["begin no more"]);
    let mut look = running();
    (look.undo, look.now) = (Progress::Running, 32);
    assert_eq!(deeds(&look.decide()), ["begin no more"]);
}

#[test]
fn the_word_of_this_process_whose_answer_was_lost_undoes_nothing_before_its_time() {
    for executor in [Executor::Api, Executor::Agent] {
        let decision = Look::at_ended(executor, SUCCEEDED).written().decide();
        assert_eq!((deeds(&decision).join(", "), decision.again), ("forget run".to_owned(), Some(at(31))));
    }
}

#[test]
fn without_the_api_server_the_agent_tries_an_undo_that_failed_again() {
    let mut look = Look::at_ended(Executor::Agent, [failed(ErrorType::HandlerFailed), Outcome::Succeeded]);
    (look.undo, look.now) = (ended([3, 4], [Outcome::Succeeded, failed(ErrorType::HandlerFailed)]), 4);
    assert_eq!(deeds(&look.decide()), ["write", "forget run"]);
    assert_eq!(look.decide().again, Some(at(5)));
    look.now = 5;
    assert_eq!(deeds(&look.decide()), ["undo front", "write", "forget run"]);
}

#[test]
fn an_undo_that_outran_its_handler_does_not_count_for_the_agent_either() {
    let mut look = Look::at_ended(Executor::Agent, SUCCEEDED);
    (look.run, look.undo, look.now) = (ended([33, 34], SUCCEEDED), ended([31, 32], SUCCEEDED), 35);
    assert_eq!(deeds(&look.decide()), ["undo back front", "write", "forget run"]);
}

#[test]
fn an_agent_is_silent_for_two_minutes_before_the_outcome_in_a_pod_that_is_gone_is_unknown() {
    let mut look = Look::at_claimed(Executor::Agent);
    look.role = controller(Executor::Agent);
    // Nobody tells when the pod goes: it is asked for.
    assert_eq!(look.decide(), Decision { again: Some(at(61)), ..Decision::default() });
    look.pod = SeenPod::Gone { node_ready: true };
    assert_eq!(look.decide(), Decision { again: Some(at(121)), ..Decision::default() });
    look.now = 121;
    assert_eq!(deeds(&look.decide()), ["write"]);
    (look.now, look.pod) = (2, SeenPod::Gone { node_ready: false });
    let look = look.written();
    assert_eq!(look.status().error.unwrap().kind, ErrorType::OutcomeUnknown);
    assert_eq!(undone(&look.written().status()), "ThawUnconfirmed");
}

#[test]
fn what_is_revoked_and_given_up_is_let_go_although_its_agent_is_silent() {
    let mut look = Look::at_claimed(Executor::Agent).abandoned();
    look.role = controller(Executor::Agent);
    assert!(look.decide().effects.is_empty());
    let look = look.deleted().written();
    assert_eq!(look.status().error.unwrap().kind, ErrorType::OutcomeUnknown);
    let look = look.written();
    assert_eq!(undone(&look.status()), "Abandoned");
    assert_eq!(deeds(&look.decide()), ["let go"]);
}

#[test]
fn what_this_process_wrote_is_its_own_word_though_objects_carry_times_less_finely_than_clocks() {
    let mut look = Look::at_ended(Executor::Agent, SUCCEEDED);
    if let Progress::Ended { results, .. } = &mut look.run {
        for (_, ended) in results {
            ended.started += SignedDuration::from_nanos(123_456_789);
            ended.completed += SignedDuration::from_nanos(123_456_789);
        }
    }
    let run = look.run.clone();
    let mut look = look.written();
    let text = serde_json::to_string(&look.object).unwrap();
    (look.object, look.run) = (serde_json::from_str(&text).unwrap(), run);
    // It never heard that it had written that: no late return, so nothing is undone before its time.
    assert_eq!(deeds(&look.decide()), ["forget run"]);
}
