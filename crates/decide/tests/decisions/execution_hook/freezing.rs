//! From the first child to all frozen, or the first that is not.

use boathook_api::{PodNotification, words::condition};
use boathook_decide::{
    Gravity,
    execution_hook::{Decision, is_freezing, is_held},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use super::{
    Look, at,
    children::{claim, end},
    deeds, message, said, written,
};

#[test]
fn nothing_is_written_until_all_have_finished() {
    let mut look = Look::at_freezing();
    assert_eq!(look.decide(), Decision::default());
    look.claim(0, 2);
    assert_eq!(look.decide(), Decision { again: Some(at(32)), ..Decision::default() });
    look.succeed(0, [2, 3]);
    look.claim(1, 3);
    assert_eq!(look.decide(), Decision { again: Some(at(32)), ..Decision::default() });
    look.succeed(1, [3, 5]);
    look.now = 5;
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write"]);
    assert_eq!((decision.reports.len(), decision.reports[0].reason.as_str()), (1, "Frozen"));
    let status = written(&decision);
    assert_eq!((status.pre_action_succeed, status.post_action_succeed), (Some(true), None));
    assert_eq!(said(&status, condition::FROZEN), "True Frozen");
    assert_eq!(message(&status, condition::FROZEN), "2 container(s) of 2 pod(s)");
    let window = status.freeze_window.expect("it has begun");
    assert_eq!((window.start_time.map(|time| time.0), window.end_time, window.duration), (Some(at(2)), None, None));
}

#[test]
fn each_container_says_how_it_went() {
    let list = json!([{"podName": "db-0", "containerNames": ["main", "side"]}]);
    let mut look = Look::with(json!({"podContainerNamesList": list})).done();
    claim(&mut look.children[0], "me", 2);
    end(&mut look.children[0], 3, &["side"]);
    let status = written(&look.decide());
    let [main, side] = &status.container_execution_hook_statuses[..] else { panic!("there are two") };
    assert_eq!(main.container_id.as_deref(), Some("containerd://main"));
    let (main, side) = (main.pre_action_status.clone().unwrap(), side.pre_action_status.clone().unwrap());
    assert_eq!((main.action_succeed, main.attempts, main.error), (Some(true), Some(1), None));
    assert_eq!((side.action_succeed, side.attempts), (Some(false), Some(1)));
    assert_eq!(side.error.map(|error| (error.time.0, error.message)), Some((at(3), "exit code 1".to_owned())));
    assert_eq!((main.action_timestamp.unwrap().0, main.complete_timestamp.unwrap().0), (at(2), at(3)));
}

#[test]
fn the_first_failure_takes_everything_back_and_pre_action_succeed_waits_for_the_others() {
    let mut look = Look::at_freezing();
    look.fail(0, [2, 3]);
    look.claim(1, 2);
    look.now = 3;
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["thaw", "thaw", "write"]);
    assert_eq!(
        (decision.reports[0].gravity, decision.reports[0].reason.as_str()),
        (Gravity::Warning, "PreActionFailed")
    );
    let mut look = look.done();
    let status = look.status();
    assert_eq!(said(&status, condition::FROZEN), "Unknown PreActionFailed");
    assert_eq!(message(&status, condition::FROZEN), "pod `db-0`, container `main`: exit code 1");
    assert_eq!(said(&status, condition::THAWED), "False Thawing");
    assert_eq!((status.pre_action_succeed, status.post_action_succeed), (None, None));
    // The other one succeeds: too late.
    look.succeed(1, [2, 5]);
    assert_eq!(deeds(&look.decide()), ["write"]);
    let mut look = look.done();
    assert_eq!(look.status().pre_action_succeed, Some(false));
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown PreActionFailed");
    look.undo(0, [5, 6], true);
    assert_eq!(look.decide(), Decision::default());
    look.undo(1, [5, 7], true);
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    let look = look.done();
    assert_eq!(said(&look.status(), condition::THAWED), "True Thawed");
    assert_eq!((look.status().pre_action_succeed, look.status().post_action_succeed), (Some(false), Some(true)));
    assert_eq!(look.decide(), Decision::default(), "the object stays for a person to read");
}

#[test]
fn a_child_that_is_missing_is_made_but_not_from_what_may_be_an_old_version() {
    let mut look = Look::at_freezing();
    look.children.remove(0);
    // The write changes nothing, and fails if anything has changed.
    assert_eq!(deeds(&look.decide()), ["write", "freeze db-0"]);
    assert_eq!(written(&look.decide()), look.status());
}

#[test]
fn a_child_that_the_api_server_refuses_to_create_takes_everything_back() {
    let mut look = Look::at_freezing();
    look.succeed(0, [2, 3]);
    look.children.pop();
    look.refused = Some("exceeded quota".to_owned());
    look.now = 4;
    assert_eq!(deeds(&look.decide()), ["thaw", "write"]);
    let status = written(&look.decide());
    assert_eq!(said(&status, condition::FROZEN), "Unknown PreActionFailed");
    assert_eq!(
        (message(&status, condition::FROZEN).as_str(), status.pre_action_succeed),
        ("exceeded quota", Some(false))
    );
    let mut look = look.done();
    look.refused = None;
    look.undo(0, [4, 5], true);
    assert_eq!(deeds(&look.decide()), ["write", "let go"], "and the other one is not made any more");
}

#[test]
fn a_child_that_a_person_deletes_takes_everything_back() {
    let mut look = Look::at_frozen();
    look.children[0].metadata.deletion_timestamp = Some(Time(at(6)));
    look.now = 6;
    assert_eq!(deeds(&look.decide()), ["thaw", "thaw", "write"]);
    let text = "the PodNotification of pod `db-0` was deleted, or its undo was requested";
    assert_eq!(message(&written(&look.decide()), condition::FROZEN), text);
    assert_eq!(said(&written(&look.decide()), condition::FROZEN), "Unknown ThawRequested");
    // It is gone already.
    look.children.remove(0);
    assert_eq!(deeds(&look.decide()), ["thaw", "write"]);
    assert_eq!(message(&written(&look.decide()), condition::FROZEN), text);
    // It is not made again, and it is not waited for.
    let mut look = look.done();
    look.undo(0, [7, 8], true);
    let look = look.done();
    assert_eq!(look.status().pre_action_succeed, Some(true));
    // Nothing says that it was undone.
    assert_eq!(said(&look.status(), condition::THAWED), "Unknown ThawUnconfirmed");
    assert!(look.object.metadata.finalizers.unwrap_or_default().is_empty());
}

#[test]
fn a_child_whose_undo_a_person_asks_for_takes_everything_back() {
    let mut look = Look::at_frozen();
    look.children[1].spec.undo_requested = true;
    assert_eq!(deeds(&look.decide()), ["thaw", "write"]);
    assert_eq!(said(&written(&look.decide()), condition::FROZEN), "Unknown ThawRequested");
}

#[test]
fn a_lost_session_takes_everything_back() {
    let mut look = Look::at_frozen();
    assert_eq!(is_held(&look.children[1]), Ok(()));
    look.lose_session(1);
    assert_eq!(deeds(&look.decide()), ["thaw", "thaw", "write"]);
    let status = written(&look.decide());
    assert_eq!(said(&status, condition::FROZEN), "Unknown SessionLost");
    assert_eq!(message(&status, condition::FROZEN), "pod `db-1`: the session ended");
    assert_eq!(is_held(&look.children[1]), Err("pod `db-1`: the session ended".to_owned()));
}

#[test]
fn a_session_that_is_open_is_frozen_and_one_that_was_released_was_not_lost() {
    let mut look = Look::at_frozen();
    look.say_held(1, "True", "SessionOpen");
    assert_eq!(look.decide().effects, []);
    assert_eq!(is_held(&look.children[1]), Ok(()));
    let mut look = look.requested().done();
    look.say_held(1, "False", "Released");
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn what_went_wrong_is_said_in_so_many_words_that_many_containers_fit_into_one_object() {
    let mut look = Look::at_freezing();
    look.fail(0, [2, 3]);
    let status = look.children[0].status.as_mut().expect("it has failed");
    status.containers[0].error.as_mut().expect("it says why").message = "é".repeat(5_000);
    let said = written(&look.decide()).container_execution_hook_statuses.remove(0).pre_action_status;
    assert_eq!(said.and_then(|said| said.error).map(|error| error.message), Some("é".repeat(1_024)));
}

#[test]
fn what_is_asked_before_anything_runs_is_whether_it_still_freezes() {
    assert!(!is_freezing(&Look::with(json!({})).object), "nobody has accepted it");
    assert!(is_freezing(&Look::at_freezing().object));
    assert!(!is_freezing(&Look::at_freezing().requested().object));
    assert!(!is_freezing(&Look::at_freezing().deleted().object));
    assert!(!is_freezing(&Look::at_frozen().object), "everything has run");
}

#[test]
fn a_session_that_is_said_to_be_lost_after_the_thaw_was_asked_for_was_lost_all_the_same() {
    let mut look = Look::at_frozen();
    look.object.spec.thaw_requested = true;
    let mut look = look.done();
    look.lose_session(1);
    assert_eq!(said(&written(&look.decide()), condition::FROZEN), "Unknown SessionLost");
}

#[test]
fn what_is_held_is_what_succeeded_and_was_not_taken_back() {
    let look = Look::at_frozen();
    let mut freezing = Look::at_freezing();
    freezing.claim(0, 2);
    assert_eq!(is_held(&freezing.children[0]), Err("pod `db-0` is not frozen".to_owned()));
    let thawed = Err("the thaw of pod `db-0` has begun or ended".to_owned());
    let with = |change: &dyn Fn(&mut Look)| {
        let mut look = Look { children: look.children.clone(), ..Look::at_frozen() };
        change(&mut look);
        is_held(&look.children[0])
    };
    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(with(&|look| look.children[0].spec.undo_requested = true), thawed);
    assert_eq!(with(&|look| look.children[0].metadata.deletion_timestamp = Some(Time(at(5)))), thawed);
    assert_eq!(with(&|look| look.undo(0, [5, 6], true)), thawed);
    assert_eq!(with(&|look| look.undo(0, [5, 6], false)), thawed);
    assert_eq!(with(&|look| look.close(0, "Unknown", "ThawUnconfirmed")), thawed);
    assert_eq!(with(&|look| look.close(0, "True", "PodGone")), thawed);
}

#[test]
fn a_pod_notification_that_somebody_else_made_first_fails_the_hook() {
    let others: [fn(&mut PodNotification); 4] = [
        |child| child.metadata.owner_references = None,
        |child| child.owner_references_mut()[0].uid = "of-another".to_owned(),
        // Whoever can read the UID can write such a reference.
        |child| (child.spec.action, child.spec.notifier) = (None, Some("harmless".to_owned())),
        |child| child.spec.pod_uid = None,
    ];
    for change in others {
        let mut look = Look::at_freezing();
        let name = look.children[1].name_any();
        change(&mut look.children[1]);
        look.succeed(0, [2, 3]);
        look.succeed(1, [2, 3]);
        let decision = look.decide();
        let status = written(&decision);
        assert_eq!(said(&status, condition::FROZEN), "Unknown PreActionFailed");
        assert_eq!(status.pre_action_succeed, Some(false));
        let message = message(&status, condition::FROZEN);
        assert!(message.contains(&format!("PodNotification `{name}`")) && message.contains("delete it"), "{message}");
        assert!(deeds(&decision).contains(&"thaw".to_owned()), "what was frozen is taken back");
        let mut look = look.done();
        assert_eq!(look.children.len(), 2, "nothing more is made");
        look.undo(0, [4, 4], true);
        look.undo(1, [4, 4], true);
        assert_eq!(look.done().status().post_action_succeed, Some(true));
    }
}
