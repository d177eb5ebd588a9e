//! Hook after hook.

use boathook_api::{
    ExecutionHook,
    application_snapshot::{Consistency, Phase},
    words::condition,
};
use boathook_decide::application_snapshot::{Decision, hook, hook_name, is_freezing};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use super::{Look, deeds, said};
use crate::execution_hook::{ME, at, children};

#[test]
fn what_is_asked_before_a_hook_is_accepted_is_whether_its_snapshot_still_freezes() {
    assert!(!is_freezing(&Look::with(json!({})).object), "nobody has begun it");
    assert!(is_freezing(&Look::at_freezing(json!({})).object));
    assert!(!is_freezing(&Look::at_freezing(json!({})).deleted().object));
    assert!(!is_freezing(&Look::at_cutting(json!({})).object), "everything is frozen");
}

#[test]
fn each_hook_is_frozen_before_the_next_is_made_and_the_cut_follows_the_last() {
    let mut look = Look::at_freezing(json!({}));
    assert!(look.decide().effects.is_empty(), "the first one is not accepted");
    look.play(0);
    assert!(look.decide().effects.is_empty(), "nor frozen");
    look.run(0, &[]);
    assert_eq!(deeds(&look.decide()), ["write Freezing", "freeze fs"]);
    let mut look = look.done();
    assert_eq!(look.status().hooks[0].pre_action_succeed, Some(true));
    assert!(look.decide().effects.is_empty());
    (look.now, look.expiration) = (5, Some(60));
    look.run(1, &[]);
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap"]);
    assert_eq!(look.decide().again, Some(at(65)), "the time of the cut");
    let look = look.done();
    assert_eq!(said(&look.status(), condition::FROZEN), "True Frozen");
    assert_eq!(look.status().cut_time.map(|time| time.0), Some(at(5)));
}

#[test]
fn a_hook_that_was_never_made_is_made_after_a_write_that_fails_if_anything_has_changed() {
    let mut look = Look::at_freezing(json!({}));
    look.hooks.clear();
    assert_eq!(deeds(&look.decide()), ["write Freezing", "freeze app"]);
}

#[test]
fn a_hook_that_fails_fails_the_snapshot_and_everything_is_thawed() {
    let mut look = Look::at_freezing(json!({}));
    look.freeze_last();
    let mut look = look.done();
    look.run(1, &["main"]);
    assert_eq!(deeds(&look.decide()), ["write Thawing", "thaw"]);
    let look = look.done();
    let failure = look.status().failure.expect("it failed");
    assert_eq!(failure.reason, "HookFailed");
    assert_eq!(failure.message, "hook `fs`: pod `db-0`, container `main`: exit code 1");
    assert_eq!(look.status().hooks[1].message.as_deref(), Some("pod `db-0`, container `main`: exit code 1"));
    let look = look.thawed();
    assert_eq!(look.outcome(), (Phase::Failed, None, "HookFailed".to_owned()));
    assert_eq!(said(&look.status(), condition::FAILED), "True HookFailed");
    assert_eq!(said(&look.status(), condition::COMPLETE), "nothing");
    assert!(look.snapshots.is_empty());
}

#[test]
fn the_first_failure_is_enough_though_another_container_goes_on() {
    let mut look = Look::at_freezing(json!({}));
    look.run(0, &["main"]);
    let status = look.hooks[0].status.as_mut().expect("it is accepted");
    status.pre_action_succeed = None;
    assert_eq!(deeds(&look.decide()), ["write Thawing", "thaw"]);
}

#[test]
fn crash_consistent_cuts_all_the_same_and_says_why_it_is_no_better() {
    let mut look = Look::at_freezing(json!({"onHookFailure": "CrashConsistent"}));
    look.run(0, &["main"]);
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap"]);
    let mut look = look.done();
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown HookFailed");
    look.snapshots[0].cut = true;
    let mut look = look.done();
    look.thaw_asked();
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Complete, Some(Consistency::Crash), "HookFailed".to_owned()));
    let window = look.status().freeze_window.expect("one hook ran");
    assert!(window.end_time.is_some(), "the second hook was never made: it is not waited for");
}

#[test]
fn a_hook_that_is_refused_fails_the_snapshot() {
    let mut look = Look::at_freezing(json!({}));
    look.hooks[0].spec.pod_container_names_list = None;
    look.play(0);
    assert_eq!(look.done().outcome(), (Phase::Thawing, None, "HookFailed".to_owned()));
}

#[test]
fn a_hook_that_the_api_server_refuses_to_create_fails_the_snapshot_and_what_is_frozen_is_thawed() {
    let mut look = Look::at_freezing(json!({}));
    look.freeze_last();
    let mut look = look.done();
    look.hooks.pop();
    look.refused = Some("exceeded quota".to_owned());
    assert_eq!(deeds(&look.decide()), ["write Thawing", "thaw"]);
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Thawing, None, "HookFailed".to_owned()));
    assert_eq!(look.status().failure.expect("it failed").message, "exceeded quota");
    // The refusal speaks of the hook, not of the cut that is made all the same.
    let mut look = Look::at_freezing(json!({"onHookFailure": "CrashConsistent"}));
    (look.hooks, look.refused) = (vec![], Some("exceeded quota".to_owned()));
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap"]);
    let mut look = look.done();
    look.snapshots[0].cut = true;
    assert_eq!(look.done().done().outcome(), (Phase::Complete, Some(Consistency::Crash), "HookFailed".to_owned()));
}

#[test]
fn a_hook_that_a_person_deletes_is_not_made_again() {
    let mut look = Look::at_freezing(json!({}));
    look.freeze_last();
    let look = look.done();
    let mut deleted = Look::at_freezing(json!({}));
    (deleted.object, deleted.hooks) = (look.object.clone(), look.hooks.clone());
    deleted.hooks[0].metadata.deletion_timestamp = Some(Time(at(3)));
    let failure = deleted.done().status().failure.expect("it failed").message;
    assert!(failure.ends_with("was deleted, which thawed its pods"), "{failure}");
    let mut gone = look;
    gone.hooks.remove(0);
    assert_eq!(deeds(&gone.decide()), ["write Thawing", "thaw"]);
}

#[test]
fn a_hook_that_expires_while_the_next_one_freezes_ends_it() {
    let mut look = Look::at_freezing(json!({}));
    look.freeze_last();
    let mut look = look.done();
    look.now = 40;
    look.play(0);
    assert_eq!(look.done().outcome(), (Phase::Thawing, None, "Expired".to_owned()));
}

#[test]
fn a_freeze_that_takes_too_long_is_given_up() {
    let mut look = Look::at_freezing(json!({"freezeTimeoutSeconds": 20}));
    assert_eq!(look.decide().again, Some(at(21)));
    look.freeze_last();
    assert_eq!(look.decide().again, Some(at(21)), "also with the second hook");
    look.now = 21;
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Thawing, None, "FreezeTimedOut".to_owned()));
    let mut look = Look::at_freezing(json!({"freezeTimeoutSeconds": 20, "onHookFailure": "CrashConsistent"}));
    look.now = 21;
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap"]);
}

#[test]
fn a_freeze_that_nobody_ever_tells_the_end_of_is_given_up_when_its_actions_have_had_their_time() {
    let mut look = Look::at_freezing(json!({}));
    look.expiration = None;
    // Somebody has claimed it, and is never heard of again.
    look.play(0);
    let name = look.hooks[0].name_any();
    let child = look.notifications.iter_mut().find(|child| child.name_any().starts_with(&name));
    children::claim(child.expect("it is made"), ME, look.now);
    look.play(0);
    // One minute for all, one to begin, ten seconds of its own.
    assert_eq!(look.decide().again, Some(at(1 + 60 + 60 + 10)));
    look.now = 131;
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Thawing, None, "FreezeTimedOut".to_owned()));
    // It stays owed, and a person reads what to do.
    let look = look.done();
    assert_eq!(look.phase(), Phase::Thawing);
    let thawed = look.status().conditions.into_iter().find(|one| one.type_ == "Thawed").expect("it is said");
    assert_eq!((thawed.status.as_str(), thawed.reason.as_str()), ("False", "Thawing"));
    assert!(thawed.message.contains("boathook thaw snap --force"), "{}", thawed.message);
}

#[test]
fn each_hook_has_its_own_time_and_a_notifier_more_than_anybody_freezes_for() {
    let mut look = Look::at_freezing(json!({}));
    look.freeze_last();
    let mut look = look.done();
    look.play(1);
    assert_eq!(look.decide().again, Some(at(1 + 60 + 2 * (60 + 10))));
    let recorded = look.hooks[1].status.as_mut().and_then(|status| status.recorded.as_mut()).expect("it is accepted");
    recorded.pre_action = serde_json::from_value(json!({"notifier": "freeze"})).expect("it is an action");
    assert_eq!(look.decide().again, Some(at(1 + 60 + 60 + 10 + 60 + 600)));
}

#[test]
fn what_is_deleted_while_it_freezes_is_thawed_and_goes() {
    let mut look = Look::at_freezing(json!({}));
    look.play(0);
    let look = look.deleted();
    assert_eq!(deeds(&look.decide()), ["write Thawing", "thaw"]);
    let mut look = look.done();
    assert_eq!(look.decide(), Decision::default());
    // Not claimed yet: revoked.
    look.notifications.clear();
    look.play(0);
    assert_eq!(deeds(&look.decide()), ["write Failed", "let go"]);
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Failed, None, "Deleted".to_owned()));
    assert!(look.object.metadata.finalizers.unwrap_or_default().is_empty());
}

/// The second hook, as somebody makes it who read its name, while the first one freezes; what they make of it.
fn made_ahead(change: impl Fn(&mut ExecutionHook)) -> Look {
    let mut look = Look::at_freezing(json!({}));
    let mut ahead = hook(&look.object, &look.status(), 1);
    change(&mut ahead);
    look.made(ahead);
    look.run(1, &[]);
    look
}

#[test]
fn a_hook_that_somebody_else_made_first_is_not_taken_for_the_snapshots_own() {
    let others: [fn(&mut ExecutionHook); 3] = [
        |hook| hook.metadata.owner_references = None,
        |hook| hook.owner_references_mut()[0].uid = "of-another".to_owned(),
        // Whoever can read the UID can write such a reference.
        |hook| hook.spec.execution_hook_template_name = Some("harmless".to_owned()),
    ];
    for change in others {
        let mut look = made_ahead(change);
        look.run(0, &[]);
        let look = look.done();
        let (phase, failure) = (look.phase(), look.status().failure.expect("it failed"));
        assert_eq!((phase, failure.reason.as_str()), (Phase::Thawing, "HookFailed"));
        let name = hook_name(&look.object, 1);
        assert!(failure.message.contains(&format!("ExecutionHook `{name}`")), "{}", failure.message);
        assert!(failure.message.contains("delete it"), "{}", failure.message);
        let look = look.until(Phase::Failed, Look::thaw_asked);
        assert_eq!(look.outcome(), (Phase::Failed, None, "HookFailed".to_owned()));
    }
    let mut look = made_ahead(|_| {});
    look.run(0, &[]);
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap"], "it runs what was to be run");
}

#[test]
fn a_hook_that_somebody_else_made_is_neither_thawed_nor_deleted() {
    let harmless = Some("harmless".to_owned());
    let mut look = made_ahead(|hook| {
        hook.metadata.owner_references = None;
        hook.spec.execution_hook_template_name = Some("harmless".to_owned());
    });
    look.run(0, &[]);
    let look = look.until(Phase::Failed, Look::thaw_asked).done();
    let theirs = look.hooks.iter().find(|hook| hook.spec.execution_hook_template_name == harmless);
    assert!(!theirs.expect("it is left alone").spec.thaw_requested);
}
