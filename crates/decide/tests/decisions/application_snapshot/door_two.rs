//! Door 2: somebody else makes the VolumeSnapshot, and it is waited for.

use boathook_api::{
    application_snapshot::{Consistency, Phase},
    words::condition,
};
use boathook_decide::application_snapshot::Decision;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{Look, deeds, said, snapshot};
use crate::execution_hook::at;

/// A VolumeSnapshot `theirs`, of which admission knows the UID.
fn door_two() -> Value {
    let source = json!({"persistentVolumeClaimName": "data", "volumeSnapshotName": "theirs", "volumeSnapshotUID": "u"});
    json!({"source": source})
}

#[test]
fn it_is_frozen_and_says_so_and_makes_nothing() {
    let look = Look::at_cutting(door_two());
    assert_eq!(said(&look.status(), condition::FROZEN), "True Frozen");
    assert_eq!(look.status().snapshots[0].volume_snapshot_name, "theirs");
    assert!(look.snapshots.is_empty());
    assert_eq!(deeds(&look.decide()), [""; 0]);
}

#[test]
fn the_cut_of_the_one_that_was_meant_is_seen_and_marked() {
    let mut look = Look::at_cutting(door_two());
    look.snapshots.push(snapshot("theirs"));
    assert_eq!(deeds(&look.decide()), ["write Cutting"], "that it is there");
    look = look.done();
    assert_eq!(deeds(&look.decide()), [""; 0]);
    look.snapshots[0].cut = true;
    let look = look.done().thawed();
    assert_eq!(look.outcome(), (Phase::Complete, Some(Consistency::Application), String::new()));
    assert_eq!(look.snapshots[0].consistency.as_deref(), Some("Application"));
    let owner = &look.object.metadata.owner_references.as_ref().expect("it goes with what was marked")[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str(), owner.uid.as_str()), ("VolumeSnapshot", "theirs", "u"));
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn one_deleted_before_its_cut_thaws_at_once() {
    let mut look = Look::at_cutting(door_two());
    look.snapshots.push(snapshot("theirs"));
    assert_eq!(deeds(&look.decide()), ["write Cutting"], "that it was there is written down, once");
    let mut look = look.done();
    assert_eq!(deeds(&look.decide()), [""; 0]);
    look.snapshots.clear();
    look.now += 1;
    assert_eq!(deeds(&look.decide()), ["write Thawing", "thaw"]);
    let look = look.done().thawed();
    assert_eq!(look.outcome(), (Phase::Failed, None, "CutFailed".to_owned()));
    let message = look.status().failure.unwrap().message;
    assert!(message.contains("`theirs` was deleted before the storage cut it"), "{message}");
}

#[test]
fn another_one_of_that_name_is_not_it() {
    let mut look = Look::at_cutting(door_two());
    look.snapshots.push(snapshot("theirs"));
    (look.snapshots[0].ours, look.snapshots[0].cut) = (false, true);
    let look = look.done().thawed();
    assert_eq!(look.outcome(), (Phase::Failed, None, "SnapshotExists".to_owned()));
    assert_eq!((look.snapshots.len(), look.snapshots[0].consistency.as_deref()), (1, None));
}

#[test]
fn one_that_was_there_before_is_refused_and_nothing_is_frozen() {
    let mut look = Look::with(door_two());
    look.snapshots = vec![snapshot("theirs")];
    look.snapshots[0].cut = true;
    assert_eq!(deeds(&look.decide()), ["write Failed"]);
    assert_eq!(look.done().outcome(), (Phase::Failed, None, "SnapshotExists".to_owned()));
}

#[test]
fn one_that_never_comes_is_not_waited_for_longer_than_a_cut() {
    let mut look = Look::at_cutting(door_two());
    look.now = 90;
    let look = look.done().thawed();
    assert_eq!(look.outcome(), (Phase::Failed, None, "CutTimedOut".to_owned()));
    assert!(look.object.owner_references().is_empty(), "nothing takes it along");
    let gone_at = 90 + 3_600;
    assert_eq!(look.decide(), Decision { again: Some(at(gone_at)), ..Decision::default() }, "a person can read it");
    let mut look = look;
    look.now = gone_at;
    assert_eq!(deeds(&look.decide()), ["delete"]);
    look.hooks.iter_mut().for_each(|hook| hook.spec.thaw_requested = true);
    look.snapshots.push(snapshot("theirs"));
    assert_eq!(deeds(&look.decide()), ["mark theirs Crash", "belong to theirs"], "it came after all");
    look.snapshots.clear();
    assert_eq!(look.deleted().decide(), Decision::default(), "it goes anyway");
}

#[test]
fn one_that_failed_is_kept_as_long_as_a_thaw_is_owed() {
    let mut look = Look::at_cutting(door_two());
    look.now = 90;
    let mut look = look.done();
    while !look.phase().is_terminal() {
        look.thaw_hooks(false);
        look = look.done();
    }
    look.now = 1_000_000;
    assert_eq!(look.decide(), Decision::default());
}

#[test]
fn a_request_that_has_ended_freezes_nothing_though_whoever_asked_could_not_take_it_back() {
    let mut look = Look::with(door_two());
    look.before = Some("first".to_owned());
    assert_eq!((deeds(&look.decide()), look.decide().again), (vec!["write Pending".to_owned()], Some(at(60))));
    let mut look = look.done();
    (look.now, look.before) = (60, None);
    assert_eq!(deeds(&look.decide()), ["write Failed"]);
    assert_eq!(look.done().outcome(), (Phase::Failed, None, "FreezeTimedOut".to_owned()));
    // Nobody's request: it has all the time that it needs.
    let mut look = Look::with(json!({}));
    look.now = 1_000;
    assert_eq!(look.done().phase(), Phase::Freezing);
}

#[test]
fn one_that_comes_when_everything_is_thawed_is_called_a_crash_and_kept() {
    let mut look = Look::at_cutting(door_two());
    look.now = 90;
    let mut look = look.done().thawed();
    look.snapshots.push(snapshot("theirs"));
    assert_eq!(deeds(&look.decide()), ["mark theirs Crash", "belong to theirs"]);
    let mut look = look.done();
    look.snapshots[0].cut = true;
    assert_eq!(look.decide(), Decision::default());
    assert_eq!(look.outcome(), (Phase::Failed, None, "CutTimedOut".to_owned()));
}

#[test]
fn what_was_done_for_a_snapshot_that_was_seen_goes_with_it() {
    let mut look = Look::at_cutting(door_two());
    look.snapshots.push(snapshot("theirs"));
    look.snapshots[0].cut = true;
    let mut look = look.done();
    // Also if it went in the meantime: then so does this.
    look.snapshots.clear();
    let mut look = look.thawed();
    assert_eq!(look.object.owner_references().len(), 1);
    assert_eq!(look.decide(), Decision::default());
    look.object.owner_references_mut().clear();
    assert_eq!(deeds(&look.decide()), ["belong to theirs"]);
    assert_eq!(look.deleted().decide(), Decision::default(), "it goes anyway");
}

#[test]
fn a_caller_cannot_mark_it_as_better_than_it_is() {
    let mut look = Look::at_cutting(door_two());
    look.snapshots.push(snapshot("theirs"));
    look.snapshots[0].consistency = Some("Application".to_owned());
    look.snapshots[0].error = Some("disk full".to_owned());
    let look = look.done().thawed();
    assert_eq!(look.phase(), Phase::Failed);
    assert_eq!(look.snapshots[0].consistency.as_deref(), Some("Crash"));
}

#[test]
fn a_freeze_that_fails_is_said_before_anything_is_cut() {
    let mut look = Look::at_freezing(door_two());
    look.run(0, &["main"]);
    let look = look.done().thawed();
    assert_eq!(look.outcome(), (Phase::Failed, None, "HookFailed".to_owned()));
    assert!(look.snapshots.is_empty());
}
