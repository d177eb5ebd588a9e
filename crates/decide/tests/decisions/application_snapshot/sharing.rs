//! Snapshots of one claim at once share one freeze.

use boathook_api::{
    ApplicationSnapshot,
    application_snapshot::{Consistency, Phase, SnapshotFailure, SnapshotReference},
};
use boathook_decide::application_snapshot::Decision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{Look, at, claim, deeds, said, user};

/// The first one, at its freeze.
fn first() -> Look {
    let mut look = Look::with(json!({}));
    (look.object.metadata.name, look.object.metadata.uid) = (Some("first".to_owned()), Some("first-uid".to_owned()));
    // So that the freeze ends only where that is what is asked.
    look.expiration = None;
    look.done()
}

/// The first one, frozen.
fn first_frozen() -> Look {
    first().until(Phase::Cutting, Look::freeze_last)
}

/// What went wrong, though it goes on.
fn failure() -> SnapshotFailure {
    SnapshotFailure { reason: "SessionLost".to_owned(), message: "the session ended".to_owned() }
}

/// A new one of the same claim.
fn second(first: &Look, fields: Value) -> Look {
    let mut look = Look::with(fields);
    look.before = Some("first".to_owned());
    look.sees(first);
    look
}

/// Both, frozen, and their cuts asked for.
fn both(fields: Value) -> (Look, Look) {
    let mut first = first_frozen();
    let mut second = second(&first, fields).done();
    first.object = second.others[0].clone();
    second = second.done();
    assert_eq!(second.phase(), Phase::Cutting);
    first.others = vec![second.object.clone()];
    (first, second)
}

impl Look {
    /// Looks at the first one, and at its hooks.
    fn sees(&mut self, first: &Look) {
        self.others = vec![first.object.clone()];
        (self.hooks, self.notifications) = (first.hooks.clone(), first.notifications.clone());
    }

    fn is_cut(&mut self) {
        self.snapshots.iter_mut().for_each(|snapshot| snapshot.cut = true);
    }
}

#[test]
fn whoever_comes_while_the_first_one_freezes_or_cuts_follows_it() {
    for first in [first(), first_frozen()] {
        let mut look = second(&first, json!({}));
        // Not frozen: it came later.
        look.claims[0].pods.push(user(1));
        assert_eq!(deeds(&look.decide()), ["hold", "follow first", "write Freezing"]);
        let look = look.done();
        let reference = SnapshotReference { name: "first".to_owned(), uid: "first-uid".to_owned() };
        assert_eq!(look.status().shares_freeze_of, Some(reference));
        assert_eq!(look.status().execution_hook_names, first.status().execution_hook_names);
        assert_eq!(look.status().snapshots[0].pod_uids, ["uid-0"]);
        let followers = look.others[0].status.clone().unwrap_or_default().followers;
        assert_eq!(followers, [SnapshotReference { name: "snap".to_owned(), uid: "snap-uid".to_owned() }]);
    }
}

#[test]
fn nobody_follows_one_that_does_something_else_or_is_on_its_way_back() {
    let hooks = json!({"executionHookInfos": [{"executionHookTemplateName": "app"}]});
    assert_eq!(deeds(&second(&first(), hooks).decide()), ["write Pending"]);
    let mut other_claims = second(&first(), json!({"source": {"selector": {}}}));
    other_claims.claims.push(claim("log"));
    assert_eq!(deeds(&other_claims.decide()), ["write Pending"]);
    assert_eq!(deeds(&second(&first(), json!({"otherPods": "Vouched"})).decide()), ["write Pending"]);
    let without_hooks = json!({"executionHookInfos": []});
    assert_eq!(deeds(&second(&Look::at_cutting(without_hooks.clone()), without_hooks).decide()), ["write Pending"]);

    let mut judged = first_frozen();
    judged.object.status.as_mut().expect("it is frozen").consistency = Some(Consistency::Application);
    let mut thawing = first_frozen();
    thawing.is_cut();
    let mut failing = first_frozen();
    failing.object.status.as_mut().expect("it is frozen").failure = Some(failure());
    let (_, follower) = both(json!({}));
    for first in [first_frozen().deleted(), judged, thawing.done(), failing, follower] {
        assert_eq!(deeds(&second(&first, json!({})).decide()), ["write Pending"]);
    }
}

#[test]
fn one_that_is_written_down_already_goes_on_though_the_first_ones_cut_was_seen() {
    let look = second(&first_frozen(), json!({}));
    let mut first = look.done().others.remove(0);
    first.status.as_mut().expect("it is frozen").consistency = Some(Consistency::Application);
    let mut look = second(&first_frozen(), json!({}));
    look.others = vec![first];
    assert_eq!(deeds(&look.decide()), ["hold", "write Freezing"]);
}

#[test]
fn one_that_could_not_be_made_follows_nobody() {
    let mut look = second(&first(), json!({}));
    look.snapshots = vec![super::snapshot("snap")];
    look.snapshots[0].ours = false;
    assert_eq!(look.done().outcome(), (Phase::Failed, None, "SnapshotExists".to_owned()));
}

#[test]
fn it_freezes_nothing_itself_and_is_cut_when_the_first_one_is_frozen() {
    let first = first();
    let look = second(&first, json!({})).done();
    assert!(look.decide().effects.is_empty());
    let mut look = look;
    look.sees(&first_frozen());
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap"]);
}

#[test]
fn a_freeze_that_takes_too_long_for_it_is_not_waited_for() {
    let mut look = second(&first(), json!({"freezeTimeoutSeconds": 5})).done();
    look.now = 10;
    assert_eq!(deeds(&look.decide()), ["write Thawing"]);
    assert_eq!(look.done().outcome(), (Phase::Thawing, None, "FreezeTimedOut".to_owned()));
}

#[test]
fn the_first_one_says_what_it_is_and_thaws_when_its_followers_are_cut() {
    let (mut first, mut second) = both(json!({}));
    first.is_cut();
    assert_eq!(deeds(&first.decide()), ["write Cutting"]);
    let mut first = first.done();
    assert_eq!(first.status().consistency, Some(Consistency::Application));
    assert_eq!(deeds(&first.decide()), [""; 0]);
    assert!(first.decide().again.is_some(), "it does not wait for ever");

    second.sees(&first);
    second.is_cut();
    assert_eq!(deeds(&second.decide()), ["write Thawing"], "the hooks are not its own");
    let second = second.done();
    assert_eq!(second.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    first.others = vec![second.object.clone()];
    assert_eq!(deeds(&first.decide()), ["write Thawing", "thaw"]);
}

#[test]
fn the_first_one_waits_for_nobody_who_cannot_be_called_consistent_any_more() {
    let gone: fn(&mut Look) = |first| first.others.clear();
    let another: fn(&mut Look) = |first| first.others[0].metadata.uid = Some("another".to_owned());
    let deleted: fn(&mut Look) = |first| {
        let other = &mut first.others[0].metadata;
        other.deletion_timestamp.clone_from(&other.creation_timestamp);
    };
    let failed: fn(&mut Look) = |first| first.others[0].status.as_mut().expect("it follows").phase = Phase::Thawing;
    let late: fn(&mut Look) = |first| first.now = 90;
    let itself: fn(&mut Look) = |first| {
        let own = &mut first.object.metadata;
        own.deletion_timestamp.clone_from(&own.creation_timestamp);
    };
    let restarted: fn(&mut Look) = |first| first.containers.clear();
    let failing: fn(&mut Look) = |first| first.others[0].status.as_mut().expect("it follows").failure = Some(failure());
    for change in [gone, another, deleted, failed, late, itself, restarted, failing] {
        let (mut first, _) = both(json!({}));
        first.is_cut();
        change(&mut first);
        assert_eq!(deeds(&first.decide()), ["write Thawing", "thaw"]);
    }
}

#[test]
fn the_first_one_waits_for_nobody_when_something_is_not_frozen_any_more() {
    let (mut first, _) = both(json!({}));
    first.is_cut();
    let mut first = first.done();
    assert_eq!(deeds(&first.decide()), [""; 0]);
    first.hooks[1].metadata.deletion_timestamp.clone_from(&first.object.metadata.creation_timestamp);
    assert_eq!(deeds(&first.decide()), ["write Thawing", "thaw"]);
}

#[test]
fn a_session_of_the_first_one_that_was_lost_before_the_cut_makes_a_crash_of_its_followers_too() {
    let (first, mut second) = both(json!({}));
    second.is_cut();
    let mut second = second.done();
    assert_eq!(second.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    second.sees(&first);
    let theirs = second.others[0].status.as_mut().expect("it is over");
    (theirs.phase, theirs.failure) = (Phase::Complete, Some(failure()));
    theirs.hooks.iter_mut().for_each(|hook| hook.post_action_succeed = Some(true));
    second.hooks.clear();
    assert_eq!(second.done().outcome(), (Phase::Complete, Some(Consistency::Crash), "SessionLost".to_owned()));
}

#[test]
fn a_cut_that_is_seen_after_the_thaw_began_is_never_called_consistent() {
    let (mut first, mut second) = both(json!({}));
    first.is_cut();
    first.others.clear();
    let mut thawing = first.done();
    assert_eq!(thawing.phase(), Phase::Thawing);
    // Even if nothing of that shows in the hooks yet.
    thawing.hooks.clone_from(&second.hooks);
    second.sees(&thawing);
    second.is_cut();
    assert_eq!(second.done().outcome(), (Phase::Thawing, Some(Consistency::Crash), "HookFailed".to_owned()));
}

#[test]
fn when_the_first_one_fails_or_goes_so_do_its_followers_or_they_go_on_without_it() {
    let fails: fn(&mut Look) = |first| first.object.status.as_mut().expect("it is frozen").phase = Phase::Thawing;
    let goes: fn(&mut Look) = |first| first.object.metadata.uid = Some("another".to_owned());
    for end in [fails, goes] {
        let (mut first, mut second) = both(json!({}));
        end(&mut first);
        second.sees(&first);
        assert_eq!(deeds(&second.decide()), ["write Thawing", "delete snap"]);
        assert_eq!(second.done().outcome(), (Phase::Thawing, None, "HookFailed".to_owned()));

        let (mut first, mut second) = both(json!({"onHookFailure": "CrashConsistent"}));
        end(&mut first);
        second.sees(&first);
        assert_eq!(deeds(&second.decide()), ["write Cutting"]);
        let mut second = second.done();
        second.is_cut();
        assert_eq!(second.done().outcome(), (Phase::Thawing, Some(Consistency::Crash), "HookFailed".to_owned()));
    }
}

#[test]
fn why_the_first_one_failed_is_said_of_its_followers() {
    let mut first = first();
    let mut look = second(&first, json!({})).done();
    first.run(0, &["main"]);
    let first = first.done();
    assert_eq!(first.outcome(), (Phase::Thawing, None, "HookFailed".to_owned()));
    look.sees(&first);
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Thawing, None, "HookFailed".to_owned()));
    let said = look.status().failure.expect("it failed").message;
    assert!(said.contains("`first`") && said.contains("hook `app`"), "{said}");
}

#[test]
fn what_made_a_crash_of_the_first_one_is_why_its_followers_fail() {
    for reason in ["ContainerRestarted", "NewPod", "ControllerChanged", "ThawedByAnother", "ClaimNotFound"] {
        let (mut first, mut second) = both(json!({}));
        let theirs = first.object.status.as_mut().expect("it is frozen");
        (theirs.phase, theirs.consistency) = (Phase::Complete, Some(Consistency::Crash));
        theirs.hooks.iter_mut().for_each(|hook| hook.post_action_succeed = Some(true));
        theirs.failure = Some(SnapshotFailure { reason: reason.to_owned(), message: "so it was".to_owned() });
        second.sees(&first);
        second.hooks.clear();
        let second = second.done().done();
        assert_eq!(said(&second.status(), "Failed"), format!("True {reason}"));
    }
}

#[test]
fn it_is_over_when_the_first_one_is_and_leaves_the_hooks_alone() {
    let (mut first, mut second) = both(json!({}));
    first.is_cut();
    second.is_cut();
    let mut second = second.done();
    first.others = vec![second.object.clone()];
    let mut thawed = vec![];
    let first = first.done().until(Phase::Complete, |first| {
        second.sees(first);
        assert_eq!(deeds(&second.decide()), [""; 0]);
        first.thaw_asked();
        thawed.clone_from(&first.hooks);
    });
    second.sees(&first);
    // The hooks are there still, or gone: they are not its own.
    for hooks in [thawed, vec![]] {
        second.hooks = hooks;
        assert_eq!(deeds(&second.decide()), ["mark snap Application", "write Complete", "let go"]);
    }
    let mut second = second.done();
    assert_eq!(second.status().hooks, first.status().hooks);
    assert!(second.status().freeze_window.is_some_and(|window| window.duration.is_some()));
    second.others.clear();
    assert_eq!(second.decide(), Decision::default());
    let names = |object: &ApplicationSnapshot| object.finalizers().to_vec();
    assert!(names(&second.object).is_empty());
}

#[test]
fn first_one_and_its_hooks_stay_until_followers_have_recorded_the_thaw() {
    let (mut first, second) = both(json!({}));
    first.object.metadata.deletion_timestamp = Some(Time(at(first.now)));
    let mut first = first.done();
    assert_eq!(first.phase(), Phase::Thawing);
    first.thaw_asked();
    let mut first = first.done();
    first.thaw_asked();
    assert_eq!(deeds(&first.decide()), ["write Failed"]);
    let mut first = first.done();
    assert_eq!(first.decide().again, Some(at(first.now + 1)));
    assert!(!deeds(&first.decide()).contains(&"let go".to_owned()));
    let mut over = second.object;
    over.status.as_mut().expect("it is frozen").phase = Phase::Failed;
    first.others = vec![over];
    assert_eq!(deeds(&first.decide()), ["delete hook", "delete hook", "let go"]);
}
