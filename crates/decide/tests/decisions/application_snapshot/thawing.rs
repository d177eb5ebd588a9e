//! The way back.

use boathook_api::{
    application_snapshot::{Consistency, Phase},
    words::condition,
};
use boathook_decide::{
    Gravity,
    application_snapshot::{Decision, Effect},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use super::{Look, at, deeds, said};
use crate::execution_hook::children;

/// The place of the hook that is asked to thaw.
fn asked(look: &Look) -> Option<usize> {
    look.decide().effects.iter().find_map(|effect| match effect {
        Effect::ThawHook(name) => look.hooks.iter().position(|hook| hook.name_any() == *name),
        _ => None,
    })
}

#[test]
fn hooks_are_thawed_in_reverse_and_each_is_waited_for() {
    let look = Look::at_cut(json!({}));
    assert_eq!(asked(&look), Some(1));
    let mut look = look.done();
    assert_eq!(look.decide(), Decision::default());
    look.thaw_asked();
    assert_eq!(asked(&look), Some(0));
    let mut look = look.done();
    assert_eq!(look.decide(), Decision::default());
    look.thaw_asked();
    let ends = ["mark snap Application", "write Complete", "delete hook", "delete hook", "let go"];
    assert_eq!(deeds(&look.decide()), ends);
}

#[test]
fn snapshot_says_that_a_pod_was_gone_before_its_post_action() {
    let mut look = Look::at_thawing(json!({}));
    look.thaw_asked();
    let mut look = look.done();
    look.thaw_asked();
    for hook in &mut look.hooks {
        let conditions = hook.status.iter_mut().flat_map(|status| &mut status.conditions);
        for thawed in conditions.filter(|one| one.type_ == condition::THAWED) {
            (thawed.reason, thawed.message) = ("PodGone".to_owned(), "pod `db-0` is gone".to_owned());
        }
    }
    let look = look.done();
    assert_eq!(said(&look.status(), condition::THAWED), "True PodGone");
}

#[test]
fn snapshot_whose_hook_may_freeze_again_is_not_thawed_for_certain() {
    let say = |look: &mut Look, said: [&str; 3]| {
        for hook in &mut look.hooks {
            let conditions = hook.status.iter_mut().flat_map(|status| &mut status.conditions);
            for thawed in conditions.filter(|one| one.type_ == condition::THAWED) {
                let [status, reason, message] = said.map(str::to_owned);
                (thawed.status, thawed.reason, thawed.message) = (status, reason, message);
            }
        }
    };
    let mut look = Look::at_thawing(json!({}));
    look.thaw_asked();
    let mut look = look.done();
    look.thaw_asked();
    say(&mut look, ["Unknown", "ProcessMayRemain", "it runs once more"]);
    let mut look = look.done();
    assert_eq!(look.phase(), Phase::Complete);
    assert_eq!(said(&look.status(), condition::THAWED), "Unknown ProcessMayRemain");
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown ProcessMayRemain");
    assert_eq!(said(&look.status(), condition::SUCCEEDED), "Unknown ProcessMayRemain");
    assert_eq!(look.hooks.len(), 2, "they stay until it is certain");
    say(&mut look, ["True", "Thawed", ""]);
    assert_eq!(look.decide().reports[0].note, "every hook has thawed");
    let look = look.done();
    assert_eq!(said(&look.status(), condition::THAWED), "True Thawed");
    assert_eq!(said(&look.status(), condition::FROZEN), "False Thawed");
    assert_eq!(said(&look.status(), condition::SUCCEEDED), "True Cut");
}

/// `kubectl delete --cascade=orphan` removes the owner references.
#[test]
fn orphaned_hook_is_thawed() {
    let mut look = Look::at_thawing(json!({}));
    for hook in &mut look.hooks {
        hook.metadata.owner_references = None;
    }
    assert_eq!(look.decide().again, Some(at(look.now + 1)), "its changes do not wake the snapshot");
    look.thaw_asked();
    assert_eq!(asked(&look), Some(0));
    let mut look = look.done();
    assert_eq!(look.outcome().0, Phase::Thawing, "the outer hook is frozen");
    look.thaw_asked();
    let mut look = look.done();
    assert_eq!(said(&look.status(), condition::THAWED), "True Thawed");
    // Another user's, of the same name.
    look = Look::at_cut(json!({})).done();
    for hook in &mut look.hooks {
        hook.metadata.owner_references = None;
        hook.metadata.uid = Some(format!("another-{}", hook.name_any()));
    }
    assert_eq!(asked(&look), None);
}

/// Before the snapshot saw a status of the hook.
#[test]
fn hook_orphaned_while_it_freezes_is_thawed() {
    let mut look = Look::at_freezing(json!({}));
    look.hooks[0].metadata.owner_references = None;
    assert_eq!(deeds(&look.decide()), ["write Thawing"]);
    let mut look = look.done();
    assert_eq!(asked(&look), Some(0));
    assert_eq!(look.decide().again, Some(at(look.now + 1)), "it is not thawed yet");
    // Another user's, of the same name, does something else.
    look.hooks[0].spec.execution_hook_template_name = Some("another".to_owned());
    assert_eq!(asked(&look), None);
}

#[test]
fn a_post_action_that_fails_does_not_keep_the_next_hook_frozen() {
    let mut look = Look::at_thawing(json!({}));
    look.thaw_hooks(false);
    assert_eq!(look.hooks[1].status.as_ref().and_then(|status| status.post_action_succeed), Some(false));
    assert_eq!(asked(&look), Some(0));
    let mut look = look.done();
    // The outer one only.
    let inner = look.hooks.pop().expect("there are two");
    look.thaw_asked();
    look.hooks.push(inner);
    let mut look = look.done();
    assert_eq!(look.outcome(), (Phase::ThawFailed, Some(Consistency::Application), String::new()));
    assert_eq!(said(&look.status(), condition::THAWED), "False ThawFailed");
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown ThawFailed");
    assert!(!look.status().conditions.iter().any(|said| said.type_ == condition::COMPLETE), "it is not complete");
    assert_eq!(look.status().complete_time, None);
    assert_eq!(look.hooks.len(), 1, "the one that failed stays for a person to read");
    assert!(look.status().freeze_window.is_some_and(|window| window.duration.is_none()), "something is frozen still");
    assert_eq!(look.decide(), Decision::default());
    // It succeeds later.
    look.thaw_asked();
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write Complete", "delete hook"]);
    assert_eq!(decision.reports[0].reason, "Thawed");
    let look = look.done();
    assert_eq!(said(&look.status(), condition::THAWED), "True Thawed");
    assert_eq!(said(&look.status(), condition::FROZEN), "False Thawed");
    assert_eq!(said(&look.status(), condition::COMPLETE), "True Cut");
    assert!(look.status().freeze_window.is_some_and(|window| window.duration.is_some()));
    assert_eq!(look.outcome(), (Phase::Complete, Some(Consistency::Application), String::new()));
}

#[test]
fn failed_thaw_is_reported_once_a_minute() {
    let mut look = Look::at_thawing(json!({})).until(Phase::ThawFailed, |look| look.thaw_hooks(false));
    let first = look.now;
    let note = |look: &Look| look.decide().reports.into_iter().map(|report| (report.reason, report.note)).next();
    for later in [10, 59] {
        look.now = first + later;
        look.thaw_hooks(false);
        assert_eq!(look.decide(), Decision::default(), "{later} s later");
    }
    look.now = first + 60;
    look.thaw_hooks(false);
    assert_eq!(deeds(&look.decide()), ["write ThawFailed"]);
    let (reason, note) = note(&look).expect("it is reported");
    assert!(reason == "ThawFailed" && note.contains("pod `db-0`: it sticks"), "{note}");
    let look = look.done();
    assert_eq!(look.decide(), Decision::default(), "and once");
}

#[test]
fn the_record_stays_when_the_hooks_are_gone() {
    let look = Look::at_end(json!({}));
    assert!(look.hooks.is_empty());
    let status = look.status();
    for hook in &status.hooks {
        assert_eq!((hook.pre_action_succeed, hook.post_action_succeed), (Some(true), Some(true)));
        assert!(hook.containers[0].pre_action_status.is_some() && hook.containers[0].post_action_status.is_some());
    }
    let window = status.freeze_window.as_ref().expect("it is over");
    assert!(window.end_time.is_some() && window.duration.is_some());
    assert_eq!(said(&status, condition::FROZEN), "False Thawed");
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn a_hook_whose_pre_action_failed_stays_for_a_person_to_read() {
    let mut look = Look::at_freezing(json!({}));
    look.freeze_last();
    let mut look = look.done();
    look.run(1, &["main"]);
    for _ in 0..4 {
        look = look.done();
        look.thaw_asked();
    }
    assert_eq!(look.phase(), Phase::Failed);
    let names: Vec<_> = look.hooks.iter().filter_map(|hook| hook.spec.execution_hook_template_name.clone()).collect();
    assert_eq!(names, ["fs"]);
    assert_eq!(look.decide(), Decision::default());
}

/// A user who may abandon its undo removed its finalizer.
#[test]
fn vanished_hook_is_not_known_to_be_thawed() {
    let mut look = Look::at_thawing(json!({}));
    look.hooks.clear();
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["mark snap Application", "write ThawFailed", "let go"], "it is not waited for");
    let report = decision.reports.last().expect("it is reported");
    assert_eq!((report.gravity, report.reason.as_str()), (Gravity::Warning, "ThawUnconfirmed"));
    assert!(report.note.contains("is gone") && report.note.contains("thaw them by hand"), "{}", report.note);
    let look = look.done();
    assert_eq!(said(&look.status(), condition::THAWED), "Unknown ThawUnconfirmed");
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown ThawUnconfirmed");
    assert_eq!(said(&look.status(), condition::SUCCEEDED), "False ThawUnconfirmed");
    assert_eq!(said(&look.status(), condition::COMPLETE), "nothing");
    assert_eq!(look.decide(), Decision::default());
}

/// One whose last status says so may go.
#[test]
fn thawed_hook_goes_when_its_snapshot_has_recorded_that() {
    let mut look = Look::at_thawing(json!({}));
    for hook in &mut look.hooks {
        hook.metadata.deletion_timestamp = Some(Time(at(look.now)));
    }
    look.thaw_asked();
    let held = |look: &Look| look.hooks.iter().filter(|hook| !hook.finalizers().is_empty()).count();
    assert_eq!(held(&look), 2, "the snapshot reads the last status of both");
    let mut look = look.thawed();
    assert_eq!(said(&look.status(), condition::THAWED), "True Thawed");
    for place in 0..look.hooks.len() {
        look.play(place);
    }
    assert_eq!(held(&look), 0);
}

#[test]
fn a_hook_that_comes_when_everything_is_over_is_thawed() {
    let late = Look::at_freezing(json!({})).hooks.remove(0);
    let mut look = Look::at_freezing(json!({})).deleted();
    look.hooks.clear();
    let mut look = look.done().done();
    assert_eq!(look.phase(), Phase::Failed);
    look.hooks.push(late);
    assert_eq!(deeds(&look.decide()), ["thaw"]);
    let mut look = look.done();
    look.thaw_asked();
    assert_eq!(look.outcome(), (Phase::Failed, None, "Deleted".to_owned()));
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn a_mark_that_was_lost_or_is_wrong_is_written_again() {
    let mut look = Look::at_end(json!({}));
    for wrong in [None, Some("Crash".to_owned())] {
        look.snapshots[0].consistency = wrong;
        assert_eq!(deeds(&look.decide()), ["mark snap Application"]);
        let [Effect::MarkSnapshot { uid, .. }] = &look.decide().effects[..] else { panic!("it is marked") };
        assert_eq!(uid, "snap-uid", "and no other one of its name");
    }
    look.snapshots[0].deleted = true;
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn what_is_deleted_while_it_thaws_or_afterwards_keeps_its_snapshots_and_goes() {
    let look = Look::at_thawing(json!({})).deleted().thawed();
    assert_eq!(look.snapshots[0].consistency.as_deref(), Some("Application"));
    assert!(look.object.finalizers().is_empty());
    let mut look = Look::at_end(json!({})).deleted();
    look.object.finalizers_mut().push("boathook.dev/thaw".to_owned());
    assert_eq!(deeds(&look.decide()), ["let go"]);
    assert_eq!(look.snapshots.len(), 1);
}

#[test]
fn what_is_deleted_when_the_cut_was_seen_is_complete() {
    let look = Look::at_cut(json!({})).deleted();
    assert_eq!(look.done().outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
}

#[test]
fn a_session_that_was_lost_before_the_cut_and_reported_after_it_makes_it_a_crash() {
    let mut look = Look::at_thawing(json!({}));
    assert_eq!(look.status().consistency, Some(Consistency::Application));
    children::lose_session(&mut look.notifications[1]);
    // The one hook, then the other.
    for _ in 0..2 {
        look.thaw_asked();
        look = look.done();
    }
    assert_eq!(look.outcome(), (Phase::Complete, Some(Consistency::Crash), "SessionLost".to_owned()));
}
