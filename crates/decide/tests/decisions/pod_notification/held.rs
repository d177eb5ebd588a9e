//! Sessions that are held from the handler to the undo.

use std::collections::BTreeMap;

use boathook_api::{
    outcome::Outcome,
    pod_notification::{ErrorType, Executor, PodNotificationStatus, State},
    words::condition,
};
use boathook_decide::{
    Gravity,
    pod_notification::{Decision, Effect, Me, Observed, Progress, Role, SeenPod, Session, Sessions, decide_gone},
};
use serde_json::{Value, json};

use super::{Look, ME, THAW_ONLY, assert_refused, at, controller, deeds, ended, failed, pod, reason, status, undone};

const SUCCEEDED: [Outcome; 2] = [Outcome::Succeeded, Outcome::Succeeded];
const EXECUTORS: [Executor; 2] = [Executor::Api, Executor::Agent];

fn spec(undo: &Value) -> Value {
    let action = json!({"exec": {"command": ["lock"], "hold": true}});
    json!({"podName": "db", "action": action, "containers": ["back", "front"], "undo": undo})
}

fn sessions(each: &Session) -> Sessions {
    Sessions { of: ["back", "front"].map(|container| (container.to_owned(), each.clone())).into(), closing: false }
}

fn lost() -> Session {
    Session::Lost("`lock` ended with exit code 3".to_owned())
}

/// Claimed by this process in the first second; its handlers have ended like this, with sessions where they succeeded.
fn ended_with(executor: Executor, undo: &Value, ends: [Outcome; 2]) -> Look {
    let mut look = Look::at_new(spec(undo));
    look.role = controller(executor);
    let mut look = look.written();
    if executor == Executor::Agent {
        look.role = Role::Agent;
        look = look.written();
    }
    assert_eq!(look.status().claim.as_ref().map(|claim| claim.holder.as_str()), Some(ME));
    let open = ["back", "front"].into_iter().zip(&ends).filter(|(_, end)| **end == Outcome::Succeeded);
    look.sessions.of = open.map(|(container, _)| (container.to_owned(), Session::Open)).collect();
    (look.now, look.run) = (3, ended([1, 2], ends));
    look
}

/// Held in both containers, and that is written down.
fn held(executor: Executor, undo: &Value) -> Look {
    let mut look = ended_with(executor, undo, SUCCEEDED).written();
    look.run = Progress::Idle;
    assert_eq!(look.decide().effects, []);
    look
}

fn says(status: &PodNotificationStatus) -> (String, String) {
    reason(status, condition::HELD)
}

fn is(truth: &str, why: &str) -> (String, String) {
    (why.to_owned(), truth.to_owned())
}

#[test]
fn handlers_that_are_ready_everywhere_are_held_and_one_write_says_so() {
    for executor in EXECUTORS {
        let decision = ended_with(executor, &json!({"afterSeconds": 30}), SUCCEEDED).decide();
        assert_eq!(deeds(&decision), ["write", "forget run"]);
        let status = status(&decision).unwrap();
        assert_eq!((status.state, says(&status)), (State::Succeeded, is("True", "SessionOpen")));
        assert_eq!(decision.again, Some(at(31)));
    }
}

#[test]
fn what_releases_a_session_is_recorded_before_it_is_begun() {
    let recorded = |undo: &Value| {
        let undo = Look::at_new(spec(undo)).written().status().containers[0].undo.clone().unwrap();
        (undo.release_seconds, undo.action.map(|action| action.timeout_seconds))
    };
    assert_eq!(recorded(&json!({})), (Some(10), None));
    assert_eq!(recorded(&json!({"timeoutSeconds": 3})), (Some(3), None));
    let action = json!({"exec": {"command": ["unlock"]}, "timeoutSeconds": 7});
    assert_eq!(recorded(&json!({"action": action})), (Some(10), Some(7)));
    assert_eq!(recorded(&json!({"action": action, "timeoutSeconds": 3})), (Some(3), Some(3)));
    assert_eq!(recorded(&json!({"notifier": "thaw"})), (Some(10), Some(1)));
}

#[test]
fn a_session_that_nothing_would_release_is_refused_and_so_is_one_of_an_undo() {
    let mut look = Look::at_new(spec(&json!({})));
    look.object.spec.undo = None;
    let message = assert_refused(&look, ErrorType::Unsupported).error.unwrap().message;
    assert!(message.contains("undo: {}"), "{message}");
    let look = Look::at_new(spec(&json!({"action": {"exec": {"command": ["a"], "hold": true}}})));
    assert_refused(&look, ErrorType::Unsupported);
    // Without a session, an undo does something.
    let mut look = Look::at_new(spec(&json!({})));
    look.object.spec.action.as_mut().unwrap().exec.as_mut().unwrap().hold = false;
    assert_refused(&look, ErrorType::Unsupported);
}

#[test]
fn where_one_container_is_not_ready_nothing_counts_as_held_and_the_others_are_released() {
    let look = ended_with(Executor::Api, &json!({}), [failed(ErrorType::HandlerFailed), Outcome::Succeeded]);
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write", "forget run", "undo back front"]);
    let status = status(&decision).unwrap();
    assert_eq!(status.state, State::Failed);
    assert!(status.conditions.iter().all(|one| one.type_ != condition::HELD));
}

#[test]
fn a_session_that_is_lost_is_told_at_once_and_what_is_left_is_undone() {
    for executor in EXECUTORS {
        let mut look = held(executor, &json!({"notifier": "thaw"}));
        look.sessions.of.insert("front".to_owned(), lost());
        let decision = look.decide();
        assert_eq!(deeds(&decision), ["undo back front", "write"]);
        assert_eq!((decision.reports.len(), decision.reports[0].gravity), (1, Gravity::Warning));
        let status = status(&decision).unwrap();
        assert_eq!((status.state, says(&status)), (State::Succeeded, is("False", "SessionLost")));
        let message = &status.conditions.iter().find(|one| one.type_ == condition::HELD).unwrap().message;
        assert_eq!(message, "container `front`: `lock` ended with exit code 3");
        // Once.
        let mut look = look.written();
        look.undo = Progress::Running;
        assert_eq!(look.decide(), Decision::default());
    }
}

#[test]
fn a_session_that_was_lost_before_the_others_were_ready_was_never_held() {
    let mut look = ended_with(Executor::Api, &json!({}), SUCCEEDED);
    look.sessions.of.insert("back".to_owned(), lost());
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write", "forget run", "undo back front"]);
    let status = status(&decision).unwrap();
    assert_eq!((status.state, says(&status)), (State::Succeeded, is("False", "SessionLost")));
}

#[test]
fn the_undo_releases_first_and_is_closed_when_everything_was() {
    for look in [held(Executor::Api, &json!({})).requested(), held(Executor::Agent, &json!({})).deleted()] {
        let Decision { effects, .. } = look.decide();
        let [Effect::StartUndo(work)] = effects.as_slice() else { panic!("{effects:?}") };
        assert!(work.iter().all(|(_, work)| work.release.is_some() && work.action.is_none()), "{work:?}");
        let mut look = look;
        (look.undo, look.sessions) = (ended([4, 5], SUCCEEDED), sessions(&Session::Released));
        assert_eq!(deeds(&look.decide()), ["write", "forget undo"]);
        let status = look.written().status();
        assert_eq!((undone(&status).as_str(), says(&status)), ("UndoSucceeded", is("False", "Released")));
    }
}

#[test]
fn while_sessions_are_released_nothing_is_said_of_them() {
    let mut look = held(Executor::Api, &json!({})).requested();
    look.undo = Progress::Running;
    look.sessions.of.insert("front".to_owned(), Session::Released);
    assert_eq!(look.decide(), Decision::default());
    look.sessions.of.insert("back".to_owned(), Session::NotReleased("exit code 3".to_owned()));
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn a_release_that_fails_is_told_once_and_then_the_session_is_over() {
    let mut look = held(Executor::Api, &json!({})).requested();
    let bad = Session::NotReleased("`lock` ended with exit code 3".to_owned());
    look.sessions = sessions(&Session::Released);
    look.sessions.of.insert("front".to_owned(), bad);
    (look.undo, look.now) = (ended([4, 5], [Outcome::Succeeded, failed(ErrorType::HandlerFailed)]), 5);
    let decision = look.decide();
    assert_eq!((deeds(&decision), decision.again), (vec!["write".to_owned()], Some(at(6))));
    let mut look = look.written();
    assert_eq!((undone(&look.status()).as_str(), says(&look.status())), ("UndoFailed", is("False", "ReleaseFailed")));
    // The next round has nothing to do, and says so.
    look.now = 6;
    assert_eq!(deeds(&look.decide()), ["undo front"]);
    look.undo = nothing_to_do("front");
    let look = look.written();
    assert_eq!((undone(&look.status()).as_str(), says(&look.status())), ("SessionEnded", is("False", "ReleaseFailed")));
}

/// A second round in one container, in which there was nothing to do.
fn nothing_to_do(container: &str) -> Progress {
    let Progress::Ended { mut results, .. } = ended([6, 6], SUCCEEDED) else { unreachable!("it has ended") };
    results.retain(|(name, _)| name == container);
    results.iter_mut().for_each(|(_, ended)| ended.exit_code = None);
    Progress::Ended { results, round: 2 }
}

#[test]
fn an_undo_without_an_action_after_a_lost_session_says_what_that_rests_on() {
    let mut look = held(Executor::Agent, &json!({}));
    look.sessions.of.insert("front".to_owned(), lost());
    let mut look = look.written();
    let Progress::Ended { mut results, round } = ended([4, 5], SUCCEEDED) else { unreachable!("it has ended") };
    results[1].1.exit_code = None;
    look.undo = Progress::Ended { results, round };
    let status = look.written().status();
    assert_eq!(reason(&status, condition::UNDONE), is("True", "SessionEnded"));
    let message = &status.conditions.iter().find(|one| one.type_ == condition::UNDONE).unwrap().message;
    assert!(message.contains("`front`") && message.contains("must end when its input ends"), "{message}");
}

#[test]
fn what_another_process_held_is_lost_and_undone_after_that_is_written() {
    for executor in EXECUTORS {
        let mut look = held(executor, &json!({"notifier": "thaw"})).claimed_by("another");
        look.sessions = Sessions::default();
        let decision = look.decide();
        assert_eq!(deeds(&decision), ["write", "undo back front"], "{executor:?}");
        assert_eq!(says(&status(&decision).unwrap()), is("False", "SessionLost"));
    }
}

#[test]
fn the_leader_says_nothing_of_sessions_that_an_agent_holds() {
    let mut look = held(Executor::Agent, &json!({"afterSeconds": 30}));
    (look.role, look.sessions) = (controller(Executor::Agent), Sessions::default());
    assert_eq!(look.decide(), Decision { again: Some(at(31)), ..Decision::default() });
    // Unless there is nothing left to hold.
    look.pod = SeenPod::Gone { node_ready: true };
    let status = look.written().status();
    assert_eq!((undone(&status).as_str(), says(&status)), ("PodGone", is("False", "SessionLost")));
}

#[test]
fn whoever_has_lost_the_lease_or_stops_releases_what_it_holds() {
    let mut look = held(Executor::Api, &json!({}));
    look.role = THAW_ONLY;
    assert_eq!(deeds(&look.decide()), ["undo back front", "write"]);
    for executor in EXECUTORS {
        let mut look = held(executor, &json!({}));
        look.sessions.closing = true;
        assert_eq!(deeds(&look.decide()), ["undo back front", "write"], "{executor:?}");
        // Nobody had asked for that, so for whoever counts on it the session is lost.
        assert_eq!(says(&look.written().status()), is("False", "SessionLost"));
        let mut look = held(executor, &json!({})).requested();
        look.sessions.closing = true;
        assert_eq!(deeds(&look.decide()), ["undo back front"], "{executor:?}");
    }
    // What has no session goes on.
    let mut look = Look::at_held(Executor::Api);
    (look.role, look.sessions.closing) = (THAW_ONLY, true);
    assert!(look.decide().effects.is_empty());
}

#[test]
fn a_release_when_the_time_is_over_is_no_loss_though_the_lease_is_lost() {
    let mut look = held(Executor::Api, &json!({"afterSeconds": 30}));
    (look.role, look.now) = (THAW_ONLY, 31);
    assert_eq!(deeds(&look.decide()), ["undo back front"]);
}

#[test]
fn what_was_said_to_be_let_go_is_released_and_never_held_again_though_the_lease_is_back() {
    let mut look = held(Executor::Api, &json!({}));
    let leader = std::mem::replace(&mut look.role, THAW_ONLY);
    let mut look = look.written();
    look.role = leader;
    assert_eq!(deeds(&look.decide()), ["undo back front"]);
    (look.undo, look.sessions) = (ended([4, 5], SUCCEEDED), sessions(&Session::Released));
    assert_eq!(says(&look.written().status()), is("False", "SessionLost"));
}

#[test]
fn an_undo_with_an_action_that_has_no_exit_code_is_one_that_succeeded() {
    let mut look = held(Executor::Api, &json!({"notifier": "thaw"})).requested();
    let Progress::Ended { mut results, round } = ended([4, 5], SUCCEEDED) else { unreachable!("it has ended") };
    results.iter_mut().for_each(|(_, ended)| ended.exit_code = None);
    (look.undo, look.sessions) = (Progress::Ended { results, round }, sessions(&Session::Released));
    assert_eq!(undone(&look.written().status()), "UndoSucceeded");
}

#[test]
fn sessions_that_are_still_open_here_when_another_has_closed_the_undo_are_released() {
    let mut look = held(Executor::Api, &json!({})).claimed_by("another");
    let open = std::mem::take(&mut look.sessions);
    let mut look = look.written();
    (look.undo, look.now) = (nothing_everywhere(), 5);
    let mut look = look.written().claimed_by(ME);
    assert_eq!(undone(&look.status()), "SessionEnded");
    (look.role, look.undo, look.sessions) = (THAW_ONLY, Progress::Idle, open);
    assert_eq!(deeds(&look.decide()), ["undo back front"]);
    (look.undo, look.sessions) = (ended([6, 7], SUCCEEDED), sessions(&Session::Released));
    assert_eq!(deeds(&look.decide()), ["forget undo"]);
}

fn nothing_everywhere() -> Progress {
    let Progress::Ended { mut results, round } = ended([5, 5], SUCCEEDED) else { unreachable!("it has ended") };
    results.iter_mut().for_each(|(_, ended)| ended.exit_code = None);
    Progress::Ended { results, round }
}

#[test]
fn sessions_of_an_object_that_is_gone_are_released() {
    let look = held(Executor::Api, &json!({}));
    let gone = |undo: Progress| {
        let observed = Observed {
            object: &look.object,
            me: Me { identity: ME, role: controller(Executor::Api) },
            pod: SeenPod::There(pod()),
            run: Progress::Idle,
            undo,
            sessions: look.sessions.clone(),
            expires: None,
            moved: BTreeMap::new(),
            agent_due_since: None,
            room: true,
            author_checked: true,
            undecided: vec![],
        };
        deeds(&decide_gone(&observed, at(60)))
    };
    assert_eq!(gone(Progress::Idle), ["undo back front"]);
    assert_eq!(gone(ended([60, 61], SUCCEEDED)), ["forget undo"]);
}

#[test]
fn a_held_command_that_is_not_ready_when_it_is_revoked_or_expires_is_cancelled_by_either_executor() {
    for executor in EXECUTORS {
        let mut look = ended_with(executor, &json!({"afterSeconds": 30}), SUCCEEDED);
        (look.run, look.sessions) = (Progress::Running, Sessions::default());
        assert_eq!(look.decide(), Decision { again: Some(at(31)), ..Decision::default() });
        look.now = 31;
        assert_eq!(deeds(&look.decide()), ["cancel"], "{executor:?}");
        look.now = 2;
        assert_eq!(deeds(&look.requested().decide()), ["cancel"], "{executor:?}");
    }
}

#[test]
fn an_undo_that_is_given_up_lets_go_of_its_sessions() {
    let look = held(Executor::Api, &json!({})).abandoned().deleted();
    assert_eq!(deeds(&look.decide()), ["write", "forget undo"]);
    let status = look.written().status();
    assert_eq!((undone(&status).as_str(), says(&status)), ("Abandoned", is("False", "SessionLost")));
}
