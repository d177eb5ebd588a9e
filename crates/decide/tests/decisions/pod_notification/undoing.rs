//! After the handlers: the undo, and the end.

use std::collections::BTreeMap;

use boathook_api::{
    outcome::{Failure, Outcome},
    pod_notification::{ErrorType, Executor, State},
    words::{ABANDONED_BY, UNDO_NOW, condition},
};
use boathook_decide::{
    Gravity, Leadership,
    execution_hook::is_undone_since,
    pod_notification::{
        Decision, Me, Observed, Pod, Progress, Role, SeenPod, Sessions, decide_gone, last_round, last_round_failure,
        may_start, needs_pod, undo_due_at,
    },
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::{Look, ME, THAW_ONLY, at, controller, deeds, ended, failed, pod, reason, status, undone};

pub(super) const SUCCEEDED: [Outcome; 2] = [Outcome::Succeeded, Outcome::Succeeded];

fn back_only() -> [Outcome; 2] {
    [Outcome::Succeeded, failed(ErrorType::HandlerFailed)]
}

#[test]
fn an_undo_waits_until_it_is_asked_for_or_the_object_is_deleted_or_its_time_has_come() {
    for executor in [Executor::Api, Executor::Agent] {
        let mut look = Look::at_held(executor);
        assert_eq!(look.decide(), Decision { again: Some(at(31)), ..Decision::default() });
        look.now = 31;
        assert_eq!(deeds(&look.decide()), ["undo back front"]);
        assert_eq!(deeds(&Look::at_held(executor).requested().decide()), ["undo back front"]);
        assert_eq!(deeds(&Look::at_held(executor).deleted().decide()), ["undo back front"]);
    }
}

fn ending() -> SeenPod {
    SeenPod::There(Pod { ending: true, ..pod() })
}

#[test]
fn an_ending_pod_is_undone_at_once() {
    for executor in [Executor::Api, Executor::Agent] {
        let running = Look { run: Progress::Running, ..Look::at_claimed(executor) };
        for mut look in [Look::at_held(executor), running] {
            (look.role, look.pod) = (controller(executor), ending());
            let me = Me { identity: ME, role: look.role };
            assert!(needs_pod(&look.object, me, &look.run, &look.undo));
            let decision = look.decide();
            assert_eq!((deeds(&decision), decision.reports.len()), (vec!["ask for undo".to_owned()], 1));
            let look = look.requested();
            assert!(!deeds(&look.decide()).contains(&"ask for undo".to_owned()), "it is asked for once");
        }
        let mut look = Look::at_held(executor).requested();
        look.pod = ending();
        assert_eq!(deeds(&look.decide()), ["undo back front"]);
    }
}

#[test]
fn undo_in_an_ending_pod_does_not_wait_for_handlers() {
    for executor in [Executor::Api, Executor::Agent] {
        let mut look = Look { run: Progress::Running, ..Look::at_claimed(executor) }.requested();
        let me = Me { identity: ME, role: look.role };
        if executor == Executor::Agent {
            assert_eq!(deeds(&look.decide()), ["cancel"], "it ends the handlers, and the undo follows");
            continue;
        }
        assert_eq!(deeds(&look.decide()), ["begin no more"]);
        assert!(needs_pod(&look.object, me, &look.run, &look.undo), "the pod may be told to end later");
        look.pod = ending();
        assert_eq!(deeds(&look.decide()), ["begin no more", "undo back front"]);
        look.undo = Progress::Running;
        assert_eq!(deeds(&look.decide()), ["begin no more"], "once");
    }
}

#[test]
fn undo_that_fails_beside_a_handler_is_reported_and_tried_again() {
    let mut look = Look { run: Progress::Running, ..Look::at_claimed(Executor::Api) }.requested();
    (look.pod, look.now) = (ending(), 6);
    look.undo = ended([4, 5], back_only());
    let decision = look.decide();
    assert_eq!(
        (deeds(&decision), decision.reports.len()),
        (vec!["begin no more".into(), "undo front".into(), "write".into()], 1)
    );
    let status = status(&decision).expect("a status is written");
    assert_eq!((undone(&status), status.state), ("UndoFailed".to_owned(), State::New));
    let succeeded = |name: &str| {
        let record = status.containers.iter().find(|record| record.name == name);
        record.and_then(|record| record.undo.as_ref()).expect("it is armed").succeeded
    };
    assert_eq!(succeeded("front"), Some(false));
    assert_eq!(succeeded("back"), None, "a handler that ends later is undone once more");
    let mut look = look.written();
    assert_eq!(deeds(&look.decide()), ["begin no more", "undo front"], "the failure is reported once");
    look.undo = ended([6, 7], SUCCEEDED);
    assert_eq!(deeds(&look.decide()), ["begin no more"]);
}

/// The handlers that ended in these containers had found none to start in.
fn without_instance(look: &mut Look, containers: &[&str]) {
    let Progress::Ended { results, .. } = &mut look.run else { panic!("it has not ended") };
    let absent = results.iter_mut().filter(|(container, _)| containers.contains(&container.as_str()));
    absent.for_each(|(_, ended)| ended.container_id = None);
}

#[test]
fn handler_that_never_started_owes_no_undo() {
    for executor in [Executor::Api, Executor::Agent] {
        let absent = || failed(ErrorType::ContainerNotRunning);
        // The last attempt may also have ended before it found the container.
        for last in [
            ErrorType::PodNotFound,
            ErrorType::HandlerTimeout,
            ErrorType::HandlerFailed,
            ErrorType::Forbidden,
            ErrorType::Revoked,
        ] {
            let mut look = Look::at_ended(executor, [absent(), failed(last)]);
            assert!(deeds(&look.decide()).contains(&"undo back front".to_owned()), "they may have started");
            without_instance(&mut look, &["back", "front"]);
            let decision = look.decide();
            assert!(!deeds(&decision).iter().any(|deed| deed.starts_with("undo")), "{:?}", deeds(&decision));
            let status = status(&decision).expect("a status is written");
            assert_eq!((undone(&status).as_str(), status.state), ("NothingToUndo", State::Failed), "{last:?}");
        }

        let mut look = Look::at_ended(executor, [absent(), failed(ErrorType::HandlerFailed)]);
        without_instance(&mut look, &["back"]);
        assert!(deeds(&look.decide()).contains(&"undo front".to_owned()), "one of them had started");
    }
}

#[test]
fn an_ending_pod_that_is_undone_is_left_alone() {
    let mut look = Look::at_held(Executor::Api).deleted();
    look.undo = ended([4, 5], SUCCEEDED);
    let mut look = look.written();
    look.object.metadata.deletion_timestamp = None;
    (look.undo, look.pod) = (Progress::Idle, ending());
    assert_eq!(deeds(&look.decide()), ["let go"]);
    look.role = THAW_ONLY;
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn what_was_undone_everywhere_is_closed_and_then_the_leader_lets_the_object_go() {
    let mut look = Look::at_held(Executor::Api).deleted();
    look.undo = ended([4, 5], SUCCEEDED);
    assert_eq!(deeds(&look.decide()), ["write", "forget undo"]);
    let mut look = look.written();
    assert_eq!(undone(&look.status()), "UndoSucceeded");
    look.undo = Progress::Idle;
    assert_eq!(deeds(&look.decide()), ["let go"]);
    for role in [THAW_ONLY, Role::Agent] {
        look.role = role;
        assert_eq!(look.decide(), Decision::default());
    }
}

#[test]
fn undo_is_due_at_its_expiry_or_at_once() {
    assert_eq!(undo_due_at(&Look::at_accepted(Executor::Agent).object), None, "no handler has run");
    let held = Look::at_held(Executor::Agent);
    assert_eq!(undo_due_at(&held.object), Some(at(31)));
    // Not the time of the claim: after a step of the wall clock that may be in the future.
    let at_once = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(undo_due_at(&Look::at_held(Executor::Agent).requested().object), at_once);
    assert_eq!(undo_due_at(&Look::at_held(Executor::Agent).deleted().object), at_once);
    assert_eq!(undo_due_at(&Look::at_ended(Executor::Agent, back_only()).written().object), at_once);
    let mut undone = Look::at_held(Executor::Api).requested();
    undone.undo = ended([4, 5], SUCCEEDED);
    assert_eq!(undo_due_at(&undone.written().object), None);
}

/// Its handlers ended like this, as far as anybody knows, and were undone at once.
fn outlived(executor: Executor) -> Look {
    let mut look = Look::at_ended(executor, [failed(ErrorType::HandlerTimeout), Outcome::Succeeded]);
    if let Progress::Ended { results, .. } = &mut look.run {
        results[0].1.process_may_remain = true;
    }
    let mut look = look.written();
    (look.run, look.undo, look.now) = (Progress::Idle, ended([4, 5], SUCCEEDED), 5);
    let mut look = look.written();
    assert_eq!(undone(&look.status()), "UndoSucceeded");
    (look.undo, look.role) = (Progress::Idle, controller(executor));
    look
}

#[test]
fn what_may_have_outlived_its_undo_is_undone_once_more_when_its_time_is_over() {
    let mut look = outlived(Executor::Api);
    assert!(!is_undone_since(&look.object, at(6), at(30)) && is_undone_since(&look.object, at(6), at(31)));
    assert_eq!(
        look.decide(),
        Decision { again: Some(at(31)), ..Decision::default() },
        "and holds its object until then"
    );
    assert_eq!(outlived(Executor::Api).deleted().decide().again, Some(at(10)), "its pod may go meanwhile");
    look.now = 31;
    assert_eq!(deeds(&look.decide()), ["undo back"]);
    look.undo = Progress::Running;
    assert_eq!(look.decide(), Decision::default());
    look.undo = ended([31, 32], [failed(ErrorType::HandlerFailed), Outcome::Succeeded]);
    look.now = 32;
    let decision = look.decide();
    let wanted = (vec!["write".to_owned()], Some(at(33)), 1);
    assert_eq!((deeds(&decision), decision.again, decision.reports.len()), wanted);
    let mut look = look.written();
    assert_eq!(undone(&look.status()), "UndoSucceeded", "what was undone is not undone");
    assert_eq!(last_round_failure(&look.object), decision.reports.first().map(|report| report.note.as_str()));
    let decision = look.decide();
    assert_eq!((deeds(&decision), decision.reports.len()), (vec![], 0), "it is said once");
    look.undo = ended([31, 32], SUCCEEDED);
    assert_eq!(deeds(&look.decide()), ["write", "forget undo"]);
    let mut look = look.written();
    assert_eq!(undone(&look.status()), "UndoSucceeded");
    look.undo = Progress::Idle;
    assert_eq!(deeds(&look.decide()), ["let go"]);
}

#[test]
fn what_was_undone_once_more_is_kept_for_those_who_ask_what_was_taken_back() {
    let mut look = outlived(Executor::Api).deleted();
    (look.undo, look.now) = (ended([31, 32], SUCCEEDED), 32);
    let mut look = look.written();
    look.undo = Progress::Idle;
    assert_eq!(look.decide(), Decision { again: Some(at(37)), ..Decision::default() });
    look.now = 632;
    assert_eq!(deeds(&look.decide()), ["let go"]);
    (look.now, look.pod) = (37, SeenPod::Gone { node_ready: true });
    assert_eq!(deeds(&look.decide()), ["let go"]);
}

#[test]
fn what_has_outlived_its_expiry_too_is_undone_once_more_soon_after_its_end() {
    let mut look = outlived(Executor::Api);
    look.object.spec.undo.as_mut().expect("it has one").after_seconds = Some(1);
    assert_eq!(look.decide().again, Some(at(33)));
}

#[test]
fn what_an_agent_could_not_end_it_undoes_once_more_itself_while_the_leader_holds_the_object() {
    let mut leaders = outlived(Executor::Agent);
    assert_eq!(leaders.decide(), Decision { again: Some(at(31)), ..Decision::default() });
    leaders.now = 31;
    assert_eq!(leaders.decide(), Decision { again: Some(at(91)), ..Decision::default() }, "it is the agent's");
    assert_eq!(leaders.deleted().decide(), Decision { again: Some(at(36)), ..Decision::default() });

    let mut agents = outlived(Executor::Agent);
    (agents.role, agents.pod) = (Role::Agent, SeenPod::Unknown);
    assert_eq!(agents.decide(), Decision { again: Some(at(31)), ..Decision::default() });
    agents.now = 31;
    assert_eq!(deeds(&agents.decide()), ["undo back"]);
    (agents.undo, agents.now) = (ended([31, 32], SUCCEEDED), 32);
    assert_eq!(deeds(&agents.decide()), ["write", "forget undo"]);
    let mut look = agents.written();
    assert_eq!(last_round(&look.object), None);
    look.undo = Progress::Idle;
    assert_eq!(look.decide(), Decision::default());
    (look.role, look.pod) = (controller(Executor::Agent), SeenPod::There(pod()));
    assert_eq!(deeds(&look.decide()), ["let go"]);
}

#[test]
fn an_agent_hears_from_the_leader_that_its_pod_has_ended_and_gives_the_last_round_up() {
    let mut look = outlived(Executor::Agent);
    (look.pod, look.now) = (SeenPod::There(Pod { over: true, ..pod() }), 40);
    assert_eq!(deeds(&look.decide()), ["write"]);
    let mut look = look.written();
    assert_eq!(last_round(&look.object), None);
    assert_eq!(deeds(&look.decide()), ["let go"]);
    (look.role, look.pod) = (Role::Agent, SeenPod::Unknown);
    look.undo = ended([31, 32], [failed(ErrorType::ContainerNotRunning), Outcome::Succeeded]);
    assert_eq!(deeds(&look.decide()), ["forget undo"]);
}

#[test]
fn an_agent_gives_the_last_round_up_when_there_is_no_pod() {
    let mut look = outlived(Executor::Agent);
    (look.role, look.pod, look.now) = (Role::Agent, SeenPod::Unknown, 32);
    look.undo = ended([31, 32], [failed(ErrorType::HandlerFailed), Outcome::Succeeded]);
    assert_eq!(look.decide().again, Some(at(33)));
    look.undo = ended([31, 32], [failed(ErrorType::PodNotFound), Outcome::Succeeded]);
    assert_eq!(deeds(&look.decide()), ["write", "forget undo"]);
    assert_eq!(last_round(&look.written().object), None);
}

#[test]
fn nothing_is_undone_once_more_that_is_gone_or_given_up() {
    assert_eq!(deeds(&outlived(Executor::Agent).abandoned().decide()), ["let go"]);
    assert_eq!(deeds(&outlived(Executor::Api).abandoned().decide()), ["let go"]);
    for pod in [SeenPod::Gone { node_ready: true }, SeenPod::There(Pod { over: true, ..pod() })] {
        let mut look = outlived(Executor::Api);
        look.pod = pod;
        assert_eq!(deeds(&look.decide()), ["write"], "the hook reads there that it is over");
        let look = look.written();
        assert_eq!(last_round(&look.object), None);
        assert_eq!(deeds(&look.decide()), ["let go"]);
    }
    let mut look = outlived(Executor::Api);
    look.pod = SeenPod::Gone { node_ready: false };
    assert_eq!(deeds(&look.decide()), ["let go"]);
    assert_eq!(look.decide().again, Some(at(look.now + 60)), "until the node is Ready it may still run there");
}

#[test]
fn what_nobody_knows_the_end_of_may_have_outlived_its_undo() {
    for executor in [Executor::Api, Executor::Agent] {
        let mut look = Look::at_claimed(executor).claimed_by("another").written();
        look.undo = ended([4, 5], SUCCEEDED);
        let mut look = look.written();
        look.undo = Progress::Idle;
        assert_eq!(look.decide(), Decision { again: Some(at(31)), ..Decision::default() });
        look.now = 31;
        assert_eq!(deeds(&look.decide()), ["undo back front"]);
    }
}

#[test]
fn without_an_expiry_it_is_undone_once_more_half_a_minute_after_the_handlers_end() {
    let mut look = outlived(Executor::Api);
    look.object.spec.undo.as_mut().expect("it has one").after_seconds = None;
    assert_eq!(look.decide().again, Some(at(33)));
}

/// Its handlers' end was recorded by a clock that was stepped back by an hour since.
#[test]
fn last_round_follows_no_step_of_the_wall_clock() {
    const HOUR: i64 = 3600;
    for executor in [Executor::Api, Executor::Agent] {
        let mut look = Look::at_claimed(executor).claimed_by("another");
        look.now = HOUR;
        let mut look = look.written();
        (look.now, look.undo) = (4, ended([2, 3], SUCCEEDED));
        let mut look = look.written().deleted();
        look.undo = Progress::Idle;
        assert!(is_undone_since(&look.object, at(10), at(20)), "its executor may count by a clock of its own");
        look.moved = [(HOUR, 2)].into();
        look.now = 31;
        assert_eq!(look.decide(), Decision { again: Some(at(32)), ..Decision::default() });
        look.now = 32;
        assert_eq!(deeds(&look.decide()), ["undo back front"]);
        // It began before another step.
        look.undo = ended([HOUR + 32, HOUR + 33], SUCCEEDED);
        assert_eq!(deeds(&look.decide()), ["undo back front"]);
        (look.undo, look.now) = (ended([32, 33], SUCCEEDED), 33);
        assert_eq!(deeds(&look.decide()), ["write", "forget undo"]);
        let mut look = look.written();
        assert_eq!(last_round(&look.object), None, "it is not owed again");

        (look.undo, look.role) = (Progress::Idle, controller(executor));
        look.moved.insert(HOUR + 30, 33);
        look.now = 632;
        assert_eq!(deeds(&look.decide()), [""; 0], "it is kept for snapshots that ask");
        look.now = 633;
        assert_eq!(deeds(&look.decide()), ["let go"]);
    }
}

#[test]
fn deadlines_after_a_claim_follow_no_step_of_the_wall_clock() {
    const HOUR: i64 = 3600;
    let mut look = Look::at_held(Executor::Api);
    look.moved = [(1, 1 - HOUR)].into();
    assert_eq!(deeds(&look.decide()), ["undo back front"]);
    look.moved.clear();
    look.undo = ended([4, HOUR], SUCCEEDED);
    look.object.spec.ttl_seconds_after_finished = Some(60);
    let mut look = look.written();
    (look.undo, look.moved, look.now) = (Progress::Idle, [(HOUR, 5)].into(), 64);
    assert_eq!(look.decide().again, Some(at(65)));
    look.now = 65;
    assert_eq!(deeds(&look.decide()), ["let go", "delete"]);
}

#[test]
fn an_undo_that_fails_is_told_once_and_tried_again_with_longer_and_longer_pauses() {
    let mut look = Look::at_held(Executor::Agent).requested();
    look.now = 10;
    for (number, pause) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (40, 60)] {
        look.undo = ended([9, 10], back_only());
        if let Progress::Ended { round, .. } = &mut look.undo {
            *round = number;
        }
        let decision = look.decide();
        assert_eq!(decision.again, Some(at(10 + pause)), "round {number}");
        assert_eq!(deeds(&decision).len(), usize::from(number == 1), "round {number}");
        if let Some(status) = status(&decision) {
            assert_eq!(undone(&status), "UndoFailed");
            look.object.status = Some(status);
        }
    }
    look.now = 70;
    assert_eq!(deeds(&look.decide()), ["undo front"]);
}

#[test]
fn failing_undo_is_reported_once_a_minute() {
    let mut look = Look::at_held(Executor::Agent).requested();
    look.undo = ended([9, 10], back_only());
    let mut look = look.written();
    for (number, end, message, reports) in [
        (2, 11, "no such file", 0),
        (6, 69, "no such file", 0),
        (7, 70, "disk full", 1),
        (8, 129, "busy", 0),
        (9, 130, "busy", 1),
    ] {
        let outcome = Outcome::Failed(Failure::new(ErrorType::HandlerFailed, message));
        look.undo = ended([end - 1, end], [Outcome::Succeeded, outcome]);
        let Progress::Ended { results, round } = &mut look.undo else { unreachable!() };
        results.remove(0);
        *round = number;
        look.now = end;
        let decision = look.decide();
        assert_eq!((deeds(&decision).len(), decision.reports.len()), (reports, reports), "round {number}");
        if reports > 0 {
            assert!(decision.reports[0].note.contains(message), "{:?}", decision.reports);
            look = look.written();
            let front = look.status().containers.into_iter().find(|record| record.name == "front");
            let undo = front.and_then(|record| record.undo).expect("it is owed");
            assert_eq!(undo.attempts, Some(number.cast_signed()));
            assert!(undo.error.is_some_and(|error| error.message.contains(message)));
            assert_eq!(look.decide().reports, [], "a round is reported once");
        }
    }
    // Its clock was stepped back by an hour.
    (look.undo, look.now) = (ended([-3_471, -3_470], back_only()), -3_470);
    assert_eq!(look.decide().reports.len(), 1);
    look.role = THAW_ONLY;
    look.object.status.as_mut().expect("it has one").executor = Some(Executor::Api);
    assert_eq!(look.decide().reports, [], "the leader reports");
}

#[test]
fn clock_that_is_stepped_back_does_not_prolong_the_pause() {
    let mut look = Look::at_held(Executor::Agent).requested();
    (look.undo, look.now) = (ended([9, 10], back_only()), 10);
    let mut look = look.written();
    assert_eq!(look.decide().again, Some(at(11)));
    look.now = -900;
    assert_eq!(deeds(&look.decide()), ["undo front"]);
}

#[test]
fn who_asks_again_does_not_wait_for_the_next_round_nor_count_one_that_had_begun() {
    for (asked, again) in [(8, Some(at(11))), (9, Some(at(11))), (10, None)] {
        let mut look = Look::at_held(Executor::Agent).requested();
        look.object.annotations_mut().insert(UNDO_NOW.to_owned(), at(asked).to_string());
        (look.undo, look.now) = (ended([9, 10], back_only()), 10);
        assert_eq!(look.decide().again, again, "asked at {asked}");
    }
}

#[test]
fn who_asks_with_a_clock_that_is_ahead_is_heard_at_that_time_and_rounds_keep_their_pauses_until_then() {
    for (asked, number, again) in [(11, 7, 11), (65, 7, 65), (1_000, 7, 70), (1_000, 1, 11)] {
        let mut look = Look::at_held(Executor::Agent).requested();
        look.object.annotations_mut().insert(UNDO_NOW.to_owned(), at(asked).to_string());
        (look.undo, look.now) = (ended([9, 10], back_only()), 10);
        if let Progress::Ended { round, .. } = &mut look.undo {
            *round = number;
        }
        assert_eq!(look.decide().again, Some(at(again)), "asked at {asked}, round {number}");
    }
}

#[test]
fn a_try_that_a_person_asked_for_is_written_down_though_it_failed_as_before() {
    let mut look = Look::at_held(Executor::Agent).requested();
    (look.undo, look.now) = (ended([9, 10], back_only()), 10);
    let mut look = look.written();
    look.object.annotations_mut().insert(UNDO_NOW.to_owned(), at(20).to_string());
    (look.undo, look.now) = (ended([18, 19], back_only()), 19);
    assert_eq!(deeds(&look.decide()), Vec::<String>::new(), "it ended before anybody asked");
    look.now = 20;
    assert_eq!(deeds(&look.decide()), ["undo front"], "it does not wait for its next round");
    (look.undo, look.now) = (ended([20, 22], back_only()), 22);
    let mut look = look.written();
    let front = look.status().containers.into_iter().find(|record| record.name == "front");
    let undo = front.and_then(|record| record.undo).expect("it is owed");
    assert_eq!((undo.attempts, undo.complete_time.map(|time| time.0)), (Some(2), Some(at(22))));
    assert_eq!(deeds(&look.decide()), Vec::<String>::new(), "and is told once");
    (look.undo, look.now) = (ended([23, 24], back_only()), 24);
    assert_eq!(deeds(&look.decide()), Vec::<String>::new(), "nobody asked for the next one");
}

#[test]
fn the_next_round_does_not_wait_for_the_write_that_tells_of_the_last_one() {
    let mut look = Look::at_held(Executor::Agent).requested();
    (look.undo, look.now) = (ended([9, 10], back_only()), 11);
    assert_eq!(deeds(&look.decide()), ["undo front", "write"]);
}

#[test]
fn what_was_undone_stays_so_though_another_process_failed_at_it_and_that_one_tries_again() {
    let mut look = Look::at_held(Executor::Api).requested();
    (look.undo, look.now) = (ended([4, 5], back_only()), 5);
    let mut look = look.written();
    look.undo = ended([4, 5], [failed(ErrorType::HandlerFailed), Outcome::Succeeded]);
    let look = look.written();
    assert!(look.status().containers.iter().all(|one| one.undo.as_ref().unwrap().succeeded == Some(true)));
    assert_eq!(look.decide(), Decision { again: Some(at(6)), ..Decision::default() });
}

#[test]
fn a_pod_that_is_gone_or_over_needs_no_undo() {
    for pod in [SeenPod::Gone { node_ready: true }, SeenPod::There(Pod { over: true, ..pod() })] {
        for executor in [Executor::Api, Executor::Agent] {
            let mut look = Look::at_held(executor);
            (look.role, look.pod) = (controller(executor), pod.clone());
            assert_eq!(reason(&look.written().status(), condition::UNDONE), ("PodGone".to_owned(), "True".to_owned()));
        }
    }
}

#[test]
fn a_pod_that_is_gone_from_a_node_that_is_not_ready_is_said_loudly() {
    let mut look = Look::at_held(Executor::Api);
    look.pod = SeenPod::Gone { node_ready: false };
    assert_eq!(look.decide().reports[0].gravity, Gravity::Warning);
    let status = look.written().status();
    assert_eq!(reason(&status, condition::UNDONE), ("ThawUnconfirmed".to_owned(), "Unknown".to_owned()));
}

#[test]
fn an_undo_that_is_given_up_is_closed_and_nothing_holds_the_object() {
    let look = Look::at_held(Executor::Api).abandoned().deleted().written();
    assert_eq!(undone(&look.status()), "Abandoned");
    assert_eq!(deeds(&look.decide()), ["let go"]);
}

#[test]
fn abandoned_undo_names_the_user() {
    let mut look = Look::at_held(Executor::Api).abandoned();
    look.object.annotations_mut().insert(ABANDONED_BY.to_owned(), "jane".to_owned());
    assert!(look.decide().reports[0].note.contains("`jane`"), "{:?}", look.decide().reports);
    let conditions = look.written().status().conditions;
    let undone = conditions.iter().find(|one| one.type_ == condition::UNDONE).unwrap();
    assert!(undone.message.contains("`jane`"), "{}", undone.message);
}

#[test]
fn the_gate_does_not_stop_an_undo() {
    let mut look = Look::at_held(Executor::Api).requested();
    look.role = Role::Controller { leadership: Leadership::Leader, executor: Executor::Api, enabled: false };
    assert_eq!(deeds(&look.decide()), ["undo back front"]);
}

#[test]
fn whoever_has_lost_the_lease_undoes_what_is_its_own_and_nothing_else() {
    let mut look = Look::at_held(Executor::Api).requested();
    look.role = THAW_ONLY;
    assert_eq!(deeds(&look.decide()), ["undo back front"]);
    assert_eq!(look.claimed_by("another").decide(), Decision::default());
}

#[test]
fn a_handler_that_returns_after_another_said_how_it_ended_is_undone_by_its_own_process() {
    let mut look = Look::at_claimed(Executor::Api).claimed_by("another").written();
    look.undo = ended([4, 5], SUCCEEDED);
    let mut look = look.written().claimed_by(ME);
    assert_eq!(undone(&look.status()), "UndoSucceeded");
    // The one that had claimed it comes back.
    (look.role, look.undo, look.run) = (THAW_ONLY, Progress::Running, ended([1, 9], SUCCEEDED));
    assert_eq!(look.decide(), Decision::default());
    look.undo = ended([8, 10], SUCCEEDED);
    assert_eq!(deeds(&look.decide()), ["forget run", "undo back front"]);
    // Until that has succeeded.
    (look.run, look.undo, look.now) = (Progress::Idle, ended([10, 11], back_only()), 12);
    assert_eq!(deeds(&look.decide()), ["undo front"]);
    look.undo = ended([12, 13], SUCCEEDED);
    assert_eq!(deeds(&look.decide()), ["forget undo"]);
}

#[test]
fn nothing_starts_any_more_when_its_undo_is_due() {
    let look = Look::at_claimed(Executor::Api);
    assert!(may_start(&look.object, at(30)));
    assert!(!may_start(&look.object, at(31)));
}

#[test]
fn whoever_reads_that_it_succeeded_reads_as_well_that_it_is_being_undone() {
    let look = Look::at_ended(Executor::Api, SUCCEEDED).requested();
    assert_eq!(deeds(&look.decide()), ["undo back front", "write", "forget run"]);
    let records = look.written().status().containers;
    assert!(records.iter().all(|record| record.undo.as_ref().is_some_and(|undo| undo.start_time.is_some())));
}

#[test]
fn an_undo_that_began_in_the_moment_of_the_handlers_end_is_followed_by_another() {
    let mut look = Look::at_ended(Executor::Api, SUCCEEDED).requested();
    look.undo = ended([2, 3], SUCCEEDED);
    assert_eq!(deeds(&look.decide()), ["undo back front", "write", "forget run"]);
}

#[test]
fn a_handler_that_returns_after_its_object_is_gone_is_undone() {
    let look = Look::at_ended(Executor::Api, SUCCEEDED);
    let gone = |run: Progress, undo: Progress, pod: SeenPod| {
        let me = Me { identity: ME, role: THAW_ONLY };
        let observed = Observed {
            object: &look.object,
            me,
            pod,
            run,
            undo,
            sessions: Sessions::default(),
            expires: None,
            moved: BTreeMap::new(),
            agent_due_since: None,
            room: true,
            author_checked: true,
            undecided: vec![],
        };
        deeds(&decide_gone(&observed, at(60)))
    };
    let there = || SeenPod::There(pod());
    assert_eq!(gone(look.run.clone(), Progress::Idle, there()), ["forget run", "undo back front"]);
    assert_eq!(gone(Progress::Idle, ended([3, 4], back_only()), there()), ["undo front"]);
    let no_pod = SeenPod::Gone { node_ready: true };
    assert_eq!(gone(Progress::Idle, ended([3, 4], back_only()), no_pod), ["forget undo"]);
    assert_eq!(gone(Progress::Idle, ended([3, 4], SUCCEEDED), there()), ["forget undo"]);
}

#[test]
fn a_handler_that_still_runs_when_another_said_that_it_ended_is_ended_as_far_as_it_can_be() {
    let mut look = Look::at_held(Executor::Agent);
    look.run = Progress::Running;
    assert_eq!(deeds(&look.decide()), ["cancel"]);
    let mut look = Look::at_held(Executor::Api);
    (look.run, look.role) = (Progress::Running, THAW_ONLY);
    assert_eq!(deeds(&look.decide()), ["begin no more"]);
}

#[test]
fn the_leader_asks_for_the_pod_of_an_undo_that_an_agent_owes() {
    let mut look = Look::at_held(Executor::Agent);
    look.role = controller(Executor::Agent);
    assert_eq!(look.decide(), Decision { again: Some(at(31)), ..Decision::default() });
    look.now = 31;
    assert_eq!(look.decide(), Decision { again: Some(at(91)), ..Decision::default() });
}

#[test]
fn an_object_goes_when_its_time_is_over_and_nothing_is_owed() {
    let mut look = Look::at_held(Executor::Api);
    look.object.spec.ttl_seconds_after_finished = Some(10);
    look.now = 14;
    assert_eq!(look.decide(), Decision { again: Some(at(31)), ..Decision::default() });
    look.undo = ended([14, 15], SUCCEEDED);
    let mut look = look.written();
    (look.undo, look.now) = (Progress::Idle, 16);
    assert_eq!(deeds(&look.decide()), ["let go"]);
    assert_eq!(look.decide().again, Some(at(25)));
    look.now = 25;
    assert_eq!(deeds(&look.decide()), ["let go", "delete"]);
}

#[test]
fn the_pod_is_looked_at_only_where_that_decides_something() {
    let me = Me { identity: ME, role: controller(Executor::Api) };
    let needs = |look: &Look| needs_pod(&look.object, me, &look.run, &look.undo);
    assert!(needs(&Look::at_freeze()));
    assert!(!needs(&Look::at_ended(Executor::Api, SUCCEEDED)));
    let mut look = Look::at_held(Executor::Api);
    look.now = 31;
    assert!(needs(&look));
    look.undo = ended([31, 32], SUCCEEDED);
    let mut look = look.written();
    assert!(needs(&look));
    look.undo = Progress::Idle;
    assert!(!needs(&look));
}
