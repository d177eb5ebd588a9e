//! Everything is frozen, and the storage is waited for.

use boathook_api::{
    application_snapshot::{Consistency, Phase},
    words::condition,
};
use boathook_decide::application_snapshot::Decision;
use serde_json::json;

use super::{Look, claim, deeds, said};
use crate::execution_hook::at;

/// Something that ends the cut.
type End = fn(&mut Look);

#[test]
fn it_waits_for_the_cut_and_for_nothing_more() {
    let look = Look::at_cutting(json!({}));
    let deadline = look.status().cut_time.expect("it has begun").0 + jiff::SignedDuration::from_secs(60);
    assert_eq!(look.decide(), Decision { again: Some(deadline), ..Decision::default() });
    assert_eq!(deeds(&Look::at_cut(json!({})).decide()), ["write Thawing", "thaw"]);
}

#[test]
fn a_snapshot_that_is_missing_is_made_after_a_write_that_fails_if_anything_has_changed() {
    let mut look = Look::at_cutting(json!({}));
    look.snapshots.clear();
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap"]);
}

#[test]
fn several_claims_are_cut_at_once_and_all_are_waited_for() {
    let mut look = Look::with(json!({"source": {"selector": {}}}));
    look.claims = vec![claim("data"), claim("log")];
    let mut look = look.done();
    look.freeze_last();
    let mut look = look.done();
    look.freeze_last();
    assert_eq!(deeds(&look.decide()), ["write Cutting", "cut snap-data", "cut snap-log"]);
    let mut look = look.done();
    look.snapshots[1].cut = true;
    assert_eq!(deeds(&look.decide()), [""; 0]);
    // What the storage has to say of one that was cut all the same does not matter.
    look.snapshots[1].error = Some("cannot list snapshots".to_owned());
    assert_eq!(deeds(&look.decide()), [""; 0]);
    look.snapshots[0].cut = true;
    let cut = look.done();
    assert_eq!(cut.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    assert!(cut.status().snapshots.iter().all(|one| one.cut_seen_time.is_some()));
}

#[test]
fn one_of_several_that_fails_fails_all_and_all_go() {
    let mut look = Look::with(json!({"source": {"selector": {}}}));
    look.claims = vec![claim("data"), claim("log")];
    let mut look = look.done();
    look.freeze_last();
    let mut look = look.done();
    look.freeze_last();
    let mut look = look.done();
    look.snapshots[0].cut = true;
    look.snapshots[1].error = Some("disk full".to_owned());
    assert_eq!(deeds(&look.decide()), ["write Thawing", "thaw", "delete snap-data", "delete snap-log"]);
    let look = look.done();
    assert_eq!(look.status().snapshots[1].error.as_deref(), Some("disk full"));
    assert_eq!(look.status().failure.expect("it failed").message, "VolumeSnapshot `snap-log`: disk full");
}

#[test]
fn message_of_a_late_cut_quotes_the_storage() {
    let mut look = Look::at_cutting(json!({}));
    look.snapshots[0].last_error = Some("no such pool".to_owned());
    look.expiration = None;
    look.now = 90;
    let status = look.done().status();
    assert_eq!(status.snapshots[0].error.as_deref(), Some("no such pool"));
    let message = status.failure.unwrap().message;
    assert_eq!(
        message,
        "the storage did not report the cut within 60 s (cutTimeoutSeconds); VolumeSnapshot `snap` reports: no such \
         pool"
    );
}

#[test]
fn whatever_ends_the_cut_thaws_and_takes_away_what_we_made() {
    let ends: [(&str, End); 5] = [
        ("CutFailed", |look| look.snapshots[0].error = Some("disk full".to_owned())),
        ("CutFailed", |look| look.snapshots[0].deleted = true),
        ("CutFailed", |look| look.refused = Some("no VolumeSnapshotClass `fast`".to_owned())),
        ("CutTimedOut", |look| look.now = 90),
        ("Deleted", |look| look.object.metadata.deletion_timestamp = look.object.metadata.creation_timestamp.clone()),
    ];
    for (reason, end) in ends {
        let mut look = Look::at_cutting(json!({}));
        look.expiration = None;
        end(&mut look);
        let look = look.done();
        assert_eq!(look.outcome(), (Phase::Thawing, None, reason.to_owned()));
        assert!(look.snapshots.iter().all(|one| one.deleted), "{reason}");
        let look = look.thawed();
        assert_eq!(look.outcome(), (Phase::Failed, None, reason.to_owned()));
        assert_eq!(said(&look.status(), condition::THAWED), "True Thawed");
        assert!(look.hooks.is_empty() && look.object.metadata.finalizers.clone().unwrap_or_default().is_empty());
    }
}

#[test]
fn somebody_elses_snapshot_of_that_name_is_left_alone() {
    let mut look = Look::at_cutting(json!({}));
    (look.snapshots[0].ours, look.snapshots[0].cut) = (false, true);
    assert_eq!(deeds(&look.decide()), ["write Thawing", "thaw"]);
    assert_eq!(look.done().outcome(), (Phase::Thawing, None, "SnapshotExists".to_owned()));
}

#[test]
fn a_cut_that_comes_after_its_time_is_never_called_anything() {
    let mut look = Look::at_cutting(json!({}));
    look.now = 62;
    assert_eq!((deeds(&look.decide()), look.decide().again), (vec![], Some(at(63))));
    look.now = 63;
    let mut look = look.done();
    assert!(look.snapshots.is_empty());
    // The storage had begun, and the snapshot is held by a finalizer of its own.
    look.snapshots = vec![super::snapshot("snap")];
    (look.snapshots[0].cut, look.snapshots[0].deleted) = (true, true);
    for _ in 0..4 {
        look.thaw_asked();
        look = look.done();
    }
    assert_eq!(look.outcome(), (Phase::Failed, None, "CutTimedOut".to_owned()));
    assert_eq!(look.snapshots[0].consistency, None);
    assert_eq!(look.decide(), Decision::default());
    look.snapshots[0].deleted = false;
    assert_eq!(deeds(&look.decide()), ["delete snap"]);
}

#[test]
fn a_hook_that_expires_before_the_cut_ends_it() {
    let mut look = Look::at_cutting(json!({}));
    look.now = 40;
    look.play(0);
    look.play(1);
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Thawing, None, "Expired".to_owned()));
    assert!(look.snapshots.is_empty());
}

#[test]
fn crash_consistent_goes_on_when_a_hook_expires_and_does_not_forget_it() {
    let mut look = Look::at_cutting(json!({"onHookFailure": "CrashConsistent"}));
    look.now = 40;
    look.play(1);
    assert_eq!(deeds(&look.decide()), ["write Cutting"]);
    let mut look = look.done();
    assert_eq!(said(&look.status(), condition::FROZEN), "Unknown HookFailed");
    assert_eq!(deeds(&look.decide()), [""; 0]);
    assert_eq!(look.decide().again, Some(at(63)));
    // The first failure is the one that counts.
    look.hooks.clear();
    assert_eq!(deeds(&look.decide()), [""; 0]);
    look.snapshots[0].cut = true;
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), "Expired".to_owned()));
}

#[test]
fn why_it_failed_is_said_and_not_what_it_went_on_in_spite_of() {
    let mut look = Look::at_freezing(json!({"onHookFailure": "CrashConsistent"}));
    look.run(0, &["main"]);
    let mut look = look.done();
    look.snapshots[0].error = Some("disk full".to_owned());
    assert_eq!(look.done().outcome(), (Phase::Thawing, None, "CutFailed".to_owned()));
}
