//! Deleted, asked to thaw, expired: everything is taken back, and said how that went.

use boathook_api::words::{ABANDON_UNDO, ABANDONED_BY, UNDO_NOW, condition};
use boathook_decide::{
    Gravity,
    execution_hook::{Decision, Effect, is_settled, is_thawing},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use super::{Look, at, deeds, message, said, written};

#[test]
fn a_thaw_is_asked_for_by_the_field_or_by_deletion_and_once() {
    for look in [Look::at_frozen().requested(), Look::at_frozen().deleted()] {
        assert_eq!(deeds(&look.decide()), ["thaw", "thaw", "write"]);
        let look = look.done();
        assert_eq!(said(&look.status(), condition::FROZEN), "Unknown ThawRequested");
        assert_eq!(said(&look.status(), condition::THAWED), "False Thawing");
        assert_eq!(look.status().post_action_succeed, None);
        assert_eq!(look.decide(), Decision::default());
    }
}

#[test]
fn hook_is_thawing_from_the_request_to_the_last_post_action() {
    assert!(!is_thawing(&Look::at_frozen().object));
    assert!(is_thawing(&Look::at_frozen().requested().object) && is_thawing(&Look::at_frozen().deleted().object));
    let mut look = Look::at_thawing();
    assert!(is_thawing(&look.object));
    look.undo(0, [10, 11], true);
    look.undo(1, [10, 12], true);
    look.now = 12;
    assert!(!is_thawing(&look.done().object));
}

#[test]
fn a_thaw_while_it_freezes_takes_back_what_runs_and_makes_nothing_more() {
    let mut look = Look::at_freezing().requested();
    look.claim(0, 2);
    look.children.remove(1);
    assert_eq!(deeds(&look.decide()), ["thaw", "write"]);
    let mut look = look.done();
    assert_eq!(look.decide(), Decision::default());
    look.succeed(0, [2, 4]);
    look.undo(0, [4, 5], true);
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    let status = written(&look.decide());
    assert_eq!((status.pre_action_succeed, status.post_action_succeed), (Some(false), Some(true)));
}

#[test]
fn what_was_revoked_before_it_was_claimed_says_why_and_needs_no_post_action() {
    let mut look = Look::at_freezing().requested().done();
    look.refuse(0, 3);
    look.refuse(1, 3);
    let status = written(&look.decide());
    assert_eq!((status.pre_action_succeed, status.post_action_succeed), (Some(false), Some(true)));
    let record = &status.container_execution_hook_statuses[0];
    let pre = record.pre_action_status.clone().expect("it has ended");
    assert_eq!((pre.action_timestamp, pre.action_succeed), (None, Some(false)));
    assert_eq!(pre.error.map(|error| error.message), Some("the undo was requested before the handler ran".to_owned()));
    assert_eq!((record.post_action_status.clone(), status.freeze_window), (None, None));
}

#[test]
fn when_every_post_action_has_succeeded_it_is_thawed_and_nothing_holds_it() {
    let mut look = Look::at_thawing();
    look.undo(0, [10, 11], true);
    assert_eq!(look.decide(), Decision::default());
    look.undo(1, [10, 12], true);
    look.now = 12;
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write", "let go"]);
    assert_eq!(decision.reports[0].note, "thawed after 10.000s");
    let status = written(&decision);
    assert_eq!((said(&status, condition::THAWED), status.post_action_succeed), ("True Thawed".to_owned(), Some(true)));
    let window = status.freeze_window.expect("it is over");
    assert_eq!((window.start_time.unwrap().0, window.end_time.unwrap().0), (at(2), at(12)));
    let post = status.container_execution_hook_statuses[0].post_action_status.clone().expect("it ran");
    assert_eq!((post.action_succeed, post.attempts, post.error), (Some(true), Some(1), None));
    assert_eq!((post.action_timestamp.unwrap().0, post.complete_timestamp.unwrap().0), (at(10), at(11)));
    let look = look.done();
    assert_eq!(look.decide(), Decision::default());
    assert!(is_settled(&look.object, look.children.into_iter()));
}

#[test]
fn a_deleted_hook_that_is_thawed_goes_without_another_write() {
    let mut look = Look::at_frozen().deleted().done();
    look.undo(0, [10, 11], true);
    look.undo(1, [10, 11], true);
    assert_eq!(deeds(&look.decide()), ["let go"]);
    assert_eq!(look.decide().reports[0].reason, "Thawed");
}

#[test]
fn deleted_hook_stays_until_its_snapshot_has_recorded_the_thaw() {
    let mut look = Look::at_frozen().deleted().done();
    look.undo(0, [10, 11], true);
    look.undo(1, [10, 11], true);
    look.is_awaited = true;
    let decision = look.decide();
    assert_eq!((deeds(&decision), decision.again), (vec!["write".to_owned()], Some(at(look.now + 1))));
    let mut look = look.done();
    let decision = look.decide();
    assert_eq!((deeds(&decision), decision.again), (vec![], Some(at(look.now + 1))), "and it is written once");
    look.is_awaited = false;
    assert_eq!(deeds(&look.decide()), ["let go"]);
}

/// Through the API server a PreAction that hangs cannot be ended.
#[test]
fn hook_that_may_freeze_again_is_not_thawed_for_certain() {
    let mut look = Look::at_freezing();
    look.succeed(1, [2, 4]);
    look.fail(0, [2, 5]);
    let records = &mut look.children[0].status.as_mut().expect("it has ended").containers;
    records[0].process_may_remain = Some(true);
    look.now = 5;
    let mut look = look.done();
    look.undo(0, [5, 6], true);
    look.undo(1, [5, 6], true);
    look.now = 6;
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write", "let go"]);
    assert_eq!(
        (decision.reports[0].gravity, decision.reports[0].reason.as_str()),
        (Gravity::Warning, "ProcessMayRemain")
    );
    let mut look = look.done();
    assert_eq!(look.status().post_action_succeed, Some(true));
    assert_eq!(said(&look.status(), condition::THAWED), "Unknown ProcessMayRemain");
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown PreActionFailed");
    let due = at(2 + 30).strftime("%FT%TZ").to_string();
    assert!(message(&look.status(), condition::THAWED).contains(&format!("runs once more at {due}")));
    assert!(!is_settled(&look.object, look.children.clone().into_iter()));
    assert_eq!(look.decide(), Decision::default());
    let undone = look.children[0].status.iter_mut().flat_map(|status| &mut status.conditions);
    for undone in undone.filter(|one| one.type_ == condition::UNDONE) {
        undone.message = "the undo ran once more, because the handler may have continued, and failed: why".to_owned();
    }
    assert_eq!(deeds(&look.decide()), ["write"]);
    let mut look = look.done();
    assert!(message(&look.status(), condition::THAWED).contains("and failed: why. Boathook retries it"));
    assert_eq!(look.decide(), Decision::default());
    look.undo(0, [32, 33], true);
    look.now = 33;
    assert_eq!(deeds(&look.decide()), ["write"]);
    let look = look.done();
    assert_eq!(said(&look.status(), condition::THAWED), "True Thawed");
    assert_eq!(said(&look.status(), condition::FROZEN), "False PreActionFailed");
    assert!(is_settled(&look.object, look.children.into_iter()));
}

#[test]
fn a_post_action_that_fails_is_said_once_and_may_still_succeed() {
    let mut look = Look::at_thawing();
    look.undo(0, [10, 11], false);
    assert_eq!(look.decide(), Decision::default(), "the other one is still under way");
    look.undo(1, [10, 12], true);
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write"]);
    assert_eq!((decision.reports[0].gravity, decision.reports[0].reason.as_str()), (Gravity::Warning, "ThawFailed"));
    let mut look = look.done();
    assert_eq!(look.status().post_action_succeed, Some(false));
    assert_eq!(said(&look.status(), condition::THAWED), "False ThawFailed");
    let text =
        "pod `db-0`: it sticks. When that is fixed, `boathook thaw hook` retries at once; `--force` gives up the thaw";
    assert_eq!(message(&look.status(), condition::THAWED), text);
    assert_eq!(look.status().freeze_window.and_then(|window| window.end_time), None);
    look.undo(0, [20, 21], false);
    assert_eq!(look.decide(), Decision::default(), "that it failed again is no news");
    look.undo(0, [70, 71], false);
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write"], "but after a minute it is");
    let reports: Vec<_> = decision.reports.iter().map(|report| (report.gravity, report.reason.as_str())).collect();
    assert_eq!(reports, [(Gravity::Warning, "ThawFailed")]);
    let mut look = look.done();
    let post = look.status().container_execution_hook_statuses[0].post_action_status.clone().expect("it ran");
    assert_eq!(post.complete_timestamp.map(|time| time.0), Some(at(71)));
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown ThawRequested", "it is still frozen");
    assert_eq!(look.decide(), Decision::default());
    look.undo(0, [80, 81], true);
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    let mut look = look.done();
    assert_eq!(look.status().post_action_succeed, Some(true));
    assert_eq!(said(&look.status(), condition::FROZEN), "False ThawRequested");
    look.undo(0, [90, 91], false);
    assert_eq!(look.decide(), Decision::default(), "and it never turns back");
}

#[test]
fn without_a_post_action_there_is_nothing_to_wait_for() {
    let mut look = Look::with(json!({"postAction": null})).done();
    look.succeed(0, [2, 3]);
    look.succeed(1, [2, 3]);
    let look = look.done();
    assert_eq!(look.status().post_action_succeed, None);
    let look = look.requested();
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    assert_eq!(written(&look.decide()).post_action_succeed, Some(true));
    assert_eq!(look.decide().reports[0].note, "no pod is frozen");
}

#[test]
fn when_the_time_since_the_first_pre_action_is_over_everything_is_taken_back() {
    let mut look = Look::at_frozen();
    assert_eq!(look.decide().again, Some(at(32)));
    look.now = 32;
    assert_eq!(deeds(&look.decide()), ["thaw", "thaw", "write"]);
    let look = look.done();
    assert_eq!(said(&look.status(), condition::EXPIRED), "True Expired");
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown Expired");
    // Also if the first one has not even finished.
    let mut look = Look::at_freezing();
    look.claim(0, 2);
    look.now = 32;
    assert_eq!(said(&written(&look.decide()), condition::FROZEN), "Unknown Expired");
}

#[test]
fn an_undo_that_began_by_itself_means_that_the_time_was_over() {
    let mut look = Look::at_frozen();
    look.undo(1, [30, 31], true);
    assert_eq!(deeds(&look.decide()), ["thaw", "write"]);
    assert_eq!(said(&written(&look.decide()), condition::EXPIRED), "True Expired");
}

#[test]
fn the_first_reason_stays() {
    let mut look = Look::at_frozen();
    look.now = 40;
    let look = look.done().requested().deleted();
    assert_eq!(look.decide(), Decision::default());
    let mut look = Look::at_thawing();
    look.now = 60;
    assert_eq!(said(&look.done().status(), condition::EXPIRED), "nothing");
}

#[test]
fn a_person_may_ask_not_to_wait_for_the_next_round_again_and_again() {
    let mut look = Look::at_thawing();
    look.undo(0, [10, 11], false);
    look.undo(1, [10, 12], true);
    let look = look.done().annotated(UNDO_NOW, "2026-01-01T00:00:00Z");
    let Effect::TakeBack(asked) = look.decide().effects.remove(0) else { panic!("nothing is asked") };
    assert_eq!((asked.child, asked.undo_now.as_deref()), (look.children[0].name_any(), Some("2026-01-01T00:00:00Z")));
    assert_eq!(deeds(&look.decide()), ["thaw now"]);
    let mut look = look;
    look.children[0].annotations_mut().insert(UNDO_NOW.to_owned(), "2026-01-01T00:00:00Z".to_owned());
    assert_eq!(look.decide(), Decision::default());
    let look = look.annotated(UNDO_NOW, "2026-01-01T00:01:00Z");
    assert_eq!(deeds(&look.decide()), ["thaw now"]);
}

#[test]
fn what_a_person_gives_up_is_closed_and_never_called_thawed() {
    let mut look = Look::at_thawing();
    look.undo(0, [10, 11], false);
    look.undo(1, [10, 12], true);
    let mut look = look.done().annotated(ABANDON_UNDO, "true");
    look.children[0].annotations_mut().insert(ABANDON_UNDO.to_owned(), "false".to_owned());
    look.object.annotations_mut().insert(ABANDONED_BY.to_owned(), "jane".to_owned());
    assert_eq!(deeds(&look.decide()), ["give up"]);
    let asked = look.decide().effects.remove(0);
    assert!(matches!(asked, Effect::TakeBack(asked) if asked.abandoned_by.as_deref() == Some("jane")));
    look.children[0].annotations_mut().insert(ABANDON_UNDO.to_owned(), "true".to_owned());
    assert_eq!(look.decide(), Decision::default());
    look.close(0, "False", "Abandoned");
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    assert_eq!(look.decide().reports[0].gravity, Gravity::Warning);
    let mut look = look.done();
    assert_eq!(
        (said(&look.status(), condition::THAWED), look.status().post_action_succeed),
        ("False Abandoned".to_owned(), Some(false))
    );
    // The children that said so are gone.
    look.children.clear();
    assert_eq!(look.decide(), Decision::default());
    assert!(is_settled(&look.object, look.children.into_iter()));
}

#[test]
fn a_thaw_that_nobody_can_confirm_is_said_loudly_also_when_the_object_goes() {
    let mut look = Look::at_frozen().deleted().done();
    look.undo(1, [10, 12], true);
    look.close(0, "Unknown", "ThawUnconfirmed");
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    assert_eq!(
        (look.decide().reports[0].gravity, look.decide().reports[0].reason.as_str()),
        (Gravity::Warning, "ThawUnconfirmed")
    );
    let status = written(&look.decide());
    assert_eq!(
        (said(&status, condition::THAWED), status.post_action_succeed),
        ("Unknown ThawUnconfirmed".to_owned(), Some(false))
    );
}

#[test]
fn a_thaw_that_nobody_could_confirm_is_not_called_one_when_the_child_is_gone() {
    let mut look = Look::at_thawing();
    look.undo(1, [10, 12], true);
    look.close(0, "Unknown", "ThawUnconfirmed");
    let mut look = look.done();
    look.children.clear();
    assert_eq!(look.decide(), Decision::default());
    assert!(is_settled(&look.object, look.children.into_iter()));
}

/// `kubectl delete --cascade=orphan` removes the owner references, before or after the thaw was asked for.
#[test]
fn orphaned_notification_is_taken_back() {
    for mut look in [Look::at_frozen(), Look::at_frozen().deleted(), Look::at_frozen().deleted().done()] {
        let is_asked = look.children[0].spec.undo_requested;
        for child in &mut look.children {
            child.metadata.owner_references = None;
        }
        let decision = look.decide();
        assert_eq!(deeds(&decision).iter().filter(|deed| *deed == "thaw").count(), if is_asked { 0 } else { 2 });
        assert_eq!(decision.again, Some(at(look.now + 1)), "its changes do not wake the hook");
        let mut look = look.done();
        look.undo(0, [10, 11], true);
        assert_eq!(look.decide().again, Some(at(look.now + 1)));
        look.undo(1, [10, 12], true);
        let decision = look.decide();
        let reports: Vec<_> = decision.reports.iter().map(|report| report.reason.as_str()).collect();
        assert_eq!((reports, decision.again), (vec!["Thawed"], None));
        assert!(deeds(&decision).contains(&"let go".to_owned()));
    }
}

#[test]
fn notification_of_another_action_is_not_taken_back() {
    let mut look = Look::at_frozen().deleted();
    look.children[0].metadata.owner_references = None;
    look.children[0].spec.notifier = Some("another".to_owned());
    assert_eq!(deeds(&look.decide()), ["thaw", "write"]);
}

/// No status has recorded that its PreAction began: the other pod is not frozen yet.
#[test]
fn notification_that_vanished_while_others_freeze_leaves_the_thaw_unconfirmed() {
    for (is_begun, is_deleted) in [(true, true), (true, false), (false, true)] {
        let mut look = Look::at_freezing();
        look.claim(1, 2);
        look.children.remove(0);
        if is_begun {
            look.begun = [("uid-0".to_owned(), at(2)), ("uid-1".to_owned(), at(2))].into();
        }
        let look = if is_deleted { look.deleted() } else { look };
        assert_eq!(deeds(&look.decide()), ["thaw", "write"], "and it is not made again");
        let mut look = look.done();
        // By the status from here on.
        look.begun.clear();
        look.succeed(0, [2, 5]);
        look.undo(0, [5, 6], true);
        let reported = look.decide().reports;
        let reported = reported.iter().map(|report| report.reason.as_str()).next();
        assert_eq!(reported, Some(if is_begun { "ThawUnconfirmed" } else { "Thawed" }));
    }
}

#[test]
fn vanished_notification_leaves_the_thaw_unconfirmed() {
    for mut look in [Look::at_frozen(), Look::at_frozen().deleted(), Look::at_thawing()] {
        // Its finalizer was removed by hand: nothing says that its undo ran.
        look.children.remove(0);
        let mut look = look.done();
        assert_eq!(look.status().post_action_succeed, None, "the other one is still under way");
        look.undo(0, [10, 12], true);
        let decision = look.decide();
        assert_eq!(deeds(&decision), ["write", "let go"]);
        let report = &decision.reports[0];
        assert_eq!((report.gravity, report.reason.as_str()), (Gravity::Warning, "ThawUnconfirmed"));
        let status = written(&decision);
        assert_eq!(said(&status, condition::THAWED), "Unknown ThawUnconfirmed");
        assert_eq!((status.post_action_succeed, status.freeze_window.unwrap().end_time), (Some(false), None));
        let message = message(&written(&decision), condition::THAWED);
        assert!(message.starts_with("the PodNotification of pod `db-0` is gone"), "{message}");
        let look = look.done();
        assert_eq!(look.decide(), Decision::default());
        assert!(is_settled(&look.object, look.children.into_iter()));
    }
}

#[test]
fn vanished_notification_with_a_failed_undo_is_unconfirmed() {
    let mut look = Look::at_thawing();
    look.undo(0, [10, 11], false);
    look.undo(1, [10, 12], true);
    let mut look = look.done();
    look.children.remove(0);
    assert_eq!(said(&written(&look.decide()), condition::THAWED), "Unknown ThawUnconfirmed");
}

#[test]
fn undo_of_a_deleted_notification_is_recorded_at_once() {
    let mut look = Look::at_frozen();
    look.children[0].metadata.deletion_timestamp = Some(Time(at(5)));
    let mut look = look.done();
    look.undo(0, [5, 6], true);
    assert_eq!(deeds(&look.decide()), ["write"], "it goes before the other one is undone");
    let mut look = look.done();
    assert_eq!(look.decide(), Decision::default());
    look.children.remove(0);
    look.undo(0, [5, 7], true);
    assert_eq!(said(&written(&look.decide()), condition::THAWED), "True Thawed");
}

#[test]
fn vanished_notification_without_undo_owes_nothing() {
    let mut look = Look::with(json!({"postAction": null})).done();
    look.succeed(0, [2, 3]);
    look.succeed(1, [2, 3]);
    let mut look = look.done();
    look.children.remove(0);
    assert_eq!(said(&written(&look.decide()), condition::THAWED), "True Thawed");
}

#[test]
fn a_pod_that_is_gone_needs_no_thaw() {
    let mut look = Look::at_thawing();
    look.undo(1, [10, 12], true);
    look.close(0, "True", "PodGone");
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    let status = written(&look.decide());
    assert_eq!(status.post_action_succeed, Some(true));
    assert_eq!(said(&status, condition::THAWED), "True PodGone");
    assert_eq!(said(&status, condition::SUCCEEDED), "False PodGone");
    assert!(message(&status, condition::THAWED).contains("its PostAction did not run"));
    let reports = look.decide().reports;
    assert_eq!((reports.len(), reports[0].gravity), (1, Gravity::Warning));
    // Somebody has to let it go.
    let finalizers = look.object.metadata.finalizers.clone();
    let mut look = look.done();
    assert!(is_settled(&look.object, look.children.clone().into_iter()));
    look.object.metadata.finalizers = finalizers;
    assert!(!is_settled(&look.object, look.children.clone().into_iter()));
}

#[test]
fn a_child_that_comes_when_everything_is_over_is_taken_back() {
    let mut look = Look::at_freezing().requested();
    // The request to create it is still on its way.
    let late = look.children.remove(1);
    look.succeed(0, [2, 4]);
    let mut look = look.done();
    look.undo(0, [10, 11], true);
    let mut look = look.done();
    assert_eq!(look.status().post_action_succeed, Some(true));
    look.children.push(late);
    assert!(!is_settled(&look.object, look.children.clone().into_iter()));
    assert_eq!(deeds(&look.decide()), ["thaw"]);
    let mut look = look.done();
    look.refuse(1, 13);
    assert!(is_settled(&look.object, look.children.clone().into_iter()));
    assert_eq!(look.decide(), Decision::default());
}
