//! PodNotifications of others are recorded before they run, so that the verdict misses those that are gone.

use std::collections::BTreeMap;

use boathook_api::{
    ApplicationSnapshot, PodNotification,
    application_snapshot::{Consistency, OtherNotification, Phase, SnapshotReference},
};
use boathook_decide::application_snapshot::{Present, is_undecided, may_freeze, with_other};
use boathook_decide::execution_hook::child_name;
use serde_json::json;

use super::{Look, deeds};
use crate::execution_hook::{ME, children};

const MOST: usize = 200;

/// One that freezes `main` in `db-0` for another hook, held since second 0.
fn other(name: &str) -> PodNotification {
    let mut other = Look::at_cut(json!({})).notifications[0].clone();
    (other.metadata.name, other.metadata.uid) = (Some(name.to_owned()), Some(format!("{name}-uid")));
    other.metadata.owner_references = None;
    children::claim(&mut other, ME, 0);
    children::end(&mut other, 0, &[]);
    other.status.as_mut().expect("it is claimed").pod_uid = Some("uid-0".to_owned());
    other
}

/// Accepted while these PodNotifications were there, and its first hook made.
fn beginning_with(notifications: Vec<PodNotification>) -> Look {
    let mut look = Look::with(json!({}));
    look.present = Present { notifications, and_more: false };
    let look = look.done_once();
    assert_eq!(deeds(&look.decide()), ["write Freezing", "freeze app"]);
    look.done_once()
}

fn recorded(look: &Look) -> Vec<String> {
    look.status().other_notifications.into_iter().map(|other| other.name).collect()
}

/// The cut is seen at second 8, with these PodNotifications in the pod.
fn cut(look: Look, beside: Vec<PodNotification>) -> Look {
    let mut look = look.until(Phase::Cutting, Look::freeze_last);
    (look.now, look.beside) = (8, beside);
    look.snapshots[0].cut = true;
    look.done()
}

#[test]
fn notification_deleted_between_freeze_and_cut_makes_a_crash() {
    let look = beginning_with(vec![other("beside")]);
    assert_eq!(recorded(&look), ["beside"]);
    let look = cut(look, vec![]);
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), "ThawedByAnother".to_owned()));
    let message = look.status().failure.expect("it is a crash").message;
    assert!(message.contains("`beside` in pod `db-0` was deleted"), "{message}");
    // One that is still there says itself what it did.
    let look = cut(beginning_with(vec![other("beside")]), vec![other("beside")]);
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
}

/// An hour before the freeze, by a clock that was stepped back.
const STEPPED_BACK: i64 = -3600;

#[test]
fn undo_dated_before_the_freeze_makes_a_crash() {
    for well in [true, false] {
        let mut undone = other("beside");
        children::undo(&mut undone, [STEPPED_BACK, STEPPED_BACK + 1], well);
        let look = cut(beginning_with(vec![other("beside")]), vec![undone]);
        assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), "ThawedByAnother".to_owned()));
    }
    let mut revoked = other("beside");
    children::revoke(&mut revoked, 7);
    // Undone before the freeze began.
    let mut done = other("done");
    children::undo(&mut done, [0, 0], true);
    let mut waiting = other("beside");
    waiting.status = None;
    for (present, at_the_cut) in [(waiting, revoked), (done.clone(), done)] {
        let look = cut(beginning_with(vec![present]), vec![at_the_cut]);
        assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    }
}

#[test]
fn handler_dated_before_the_freeze_makes_a_crash() {
    let mut handler = other("beside");
    handler.spec.undo = None;
    children::claim(&mut handler, ME, STEPPED_BACK);
    children::end(&mut handler, STEPPED_BACK + 1, &[]);
    for (is_recorded, outcome) in [(true, Consistency::Crash), (false, Consistency::Application)] {
        let mut look = beginning_with(vec![]);
        if is_recorded {
            // When it was accepted, after the freeze began.
            look.object = with_other(&look.object, &handler, vec!["main".to_owned()]).expect("it is recorded");
        }
        assert_eq!(cut(look, vec![handler.clone()]).status().consistency, Some(outcome));
    }
}

#[test]
fn only_what_may_still_thaw_is_recorded() {
    let mut done = other("done");
    children::undo(&mut done, [0, 1], true);
    let mut plain = other("plain");
    plain.spec.undo = None;
    let mut waiting = other("waiting");
    (waiting.spec.undo, waiting.status) = (None, None);
    let mut elsewhere = other("elsewhere");
    elsewhere.spec.pod_name = "web-0".to_owned();
    let all = vec![done, plain, waiting, elsewhere, other("held")];
    assert_eq!(recorded(&beginning_with(all)), ["waiting", "held"]);
}

#[test]
fn deleted_notification_counts_only_in_shared_containers() {
    for (containers, outcome) in
        [(&["main", "side"][..], Consistency::Crash), (&[], Consistency::Crash), (&["side"], Consistency::Application)]
    {
        let mut look = beginning_with(vec![]);
        let containers = containers.iter().map(|name| (*name).to_owned()).collect();
        let (name, uid, pod_name) = ("one".to_owned(), "one-uid".to_owned(), "db-0".to_owned());
        let gone = OtherNotification { name, uid, pod_name, containers };
        look.object.status.as_mut().expect("it is accepted").other_notifications.push(gone);
        assert_eq!(cut(look, vec![]).status().consistency, Some(outcome));
    }
}

#[test]
fn more_notifications_than_are_recorded_make_a_crash() {
    let all = |number: usize| (0..number).map(|number| other(&number.to_string())).collect::<Vec<_>>();
    let look = cut(beginning_with(all(MOST)), all(MOST));
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    let look = beginning_with(all(MOST + 1));
    assert_eq!(look.status().other_notifications.len(), MOST);
    let look = cut(look, all(MOST));
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), "ThawedByAnother".to_owned()));
    // Or more than it has looked at.
    let mut look = Look::with(json!({}));
    look.present.and_more = true;
    let look = cut(look.done(), vec![]);
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), "ThawedByAnother".to_owned()));
}

/// A snapshot that freezes; what is accepted now is recorded on it.
fn freezing() -> ApplicationSnapshot {
    Look::at_freezing(json!({})).object
}

#[test]
fn verdict_stays_as_it_is_with_more_than_are_recorded() {
    let mut look = beginning_with((0..MOST).map(|number| other(&number.to_string())).collect());
    let one_more = |look: &Look| with_other(&look.object, &other("more"), vec![]).and_then(|next| next.status);
    let undecided = one_more(&look).expect("it is recorded");
    assert_eq!((undecided.other_notifications.len(), undecided.failure.is_some()), (MOST, true));
    look.object.status.as_mut().expect("it is accepted").consistency = Some(Consistency::Application);
    let decided = one_more(&look).expect("it is recorded");
    assert_eq!((decided.other_notifications.len(), decided.failure), (MOST + 1, None));
}

#[test]
fn notification_is_recorded_once_and_not_its_own() {
    let recorded = |snapshot: &ApplicationSnapshot, other: &PodNotification| {
        with_other(snapshot, other, vec!["main".to_owned()]).inspect(|next| {
            let status = next.status.clone().expect("it freezes");
            let last = status.other_notifications.last().expect("it is recorded").clone();
            assert_eq!((last.pod_name.as_str(), &last.containers[..]), ("db-0", &["main".to_owned()][..]));
        })
    };
    let first = recorded(&freezing(), &other("beside")).expect("it is recorded");
    assert!(recorded(&first, &other("beside")).is_none());
    assert!(recorded(&first, &other("another")).is_some());
    let look = Look::at_cut(json!({}));
    let own = &look.notifications[0];
    assert!(recorded(&look.object, own).is_none());
    // An owner reference alone is not enough: every user can write it.
    let mut forged = other("forged");
    forged.metadata.owner_references.clone_from(&own.metadata.owner_references);
    assert!(recorded(&look.object, &forged).is_some());
    // Nor is the name that the hook would give it, for a pod that the hook does not run in: each hook has pods of its own.
    let mut forged = own.clone();
    forged.spec.pod_uid = Some("uid-1".to_owned());
    forged.metadata.name = Some(child_name(&look.hooks[0], "uid-1"));
    assert!(recorded(&look.object, &forged).is_some());
    // Before the pods of the hook are recorded.
    let mut early = look.object.clone();
    early.status.as_mut().expect("it is frozen").hooks[0].containers.clear();
    assert!(recorded(&early, own).is_none());
    forged.spec.pod_name = "db-1".to_owned();
    let early = with_other(&early, &forged, vec![]);
    assert!(early.is_some());
}

#[test]
fn snapshot_is_undecided_from_freezing_to_verdict() {
    let undecided = |look: &Look| is_undecided(&look.object);
    assert!(!undecided(&Look::with(json!({}))));
    assert!(undecided(&Look::with(json!({})).done_once()));
    assert!(undecided(&Look::at_cut(json!({}))));
    let mut judged = Look::at_cut(json!({}));
    judged.object.status.as_mut().expect("it is frozen").consistency = Some(Consistency::Application);
    assert!(!undecided(&judged));
    // Another one that shares its freeze, and may not have begun, relies on it.
    judged.object.status.as_mut().expect("it is frozen").followers.push(SnapshotReference::default());
    assert!(undecided(&judged));
    assert!(!undecided(&Look::at_thawing(json!({}))));
}

#[test]
fn snapshot_may_freeze_the_pods_that_it_names_or_selects() {
    let labels = |app: &str| BTreeMap::from([("app".to_owned(), app.to_owned())]);
    // The pods that mount the claim.
    assert!(may_freeze(&freezing(), "db-0", Some(&labels("web"))));
    assert!(!may_freeze(&freezing(), "db-1", Some(&labels("db"))));
    let info = json!({"executionHookTemplateName": "app", "podSelector": {"matchLabels": {"app": "db"}},
        "containerSelector": {"containerName": "main"}});
    let selecting = Look::at_freezing(json!({"executionHookInfos": [info]})).object;
    assert!(may_freeze(&selecting, "db-1", Some(&labels("db"))));
    assert!(may_freeze(&selecting, "db-1", None));
    assert!(!may_freeze(&selecting, "db-0", Some(&labels("web"))));
}
