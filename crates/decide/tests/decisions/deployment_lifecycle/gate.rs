//! The gate's rule, case by case: each row of the table in the flow's page.

use boathook_decide::deployment_lifecycle::gate::{DrainFor, Mark, Request, Update, Verdict, drain_is_valid, judge};

fn update(old: i32, new: i32) -> Update {
    let desired = Some("3".to_owned());
    Update { old, new, old_desired: desired.clone(), new_desired: desired, revision: Some("2".to_owned()), mark: None }
}

fn mark(text: &str) -> Option<Mark> {
    Some(text.parse().expect("a mark"))
}

#[test]
fn every_mark_is_read_as_it_was_written_and_nothing_else_is_one() {
    for text in ["open.2", "done.17", "draining.2.7b9f", "draining.t.00ff00ff00ff00ff"] {
        assert_eq!(text.parse::<Mark>().expect("as it is written here").to_string(), text);
    }
    for text in ["", "open", "open.2.3", "opened.2", "draining.2", "draining", "done.1.2.3"] {
        assert!(text.parse::<Mark>().is_err(), "{text}");
    }
}

#[test]
fn a_new_replica_set_is_made_without_pods() {
    assert_eq!(judge(&Request::Create { replicas: 3 }), Verdict::Replicas(0));
    assert_eq!(judge(&Request::Create { replicas: 0 }), Verdict::Pass);
}

#[test]
fn what_moves_nothing_passes() {
    assert_eq!(judge(&Request::Update(update(2, 2))), Verdict::Pass);
}

#[test]
fn scaling_passes_whatever_the_mark_says_but_not_from_nothing() {
    for (old, new) in [(2, 5), (2, 1), (2, 0)] {
        let scaled = Update { new_desired: Some("9".to_owned()), ..update(old, new) };
        assert_eq!(judge(&Request::Update(scaled)), Verdict::Pass, "{old} -> {new}");
    }
    let from_nothing = Update { new_desired: Some("9".to_owned()), ..update(0, 5) };
    assert_eq!(judge(&Request::Update(from_nothing)), Verdict::Replicas(0));
    let never_desired = Update { old_desired: None, new_desired: Some("9".to_owned()), ..update(2, 5) };
    assert_eq!(judge(&Request::Update(never_desired)), Verdict::Replicas(2));
}

#[test]
fn a_correction_to_what_is_desired_passes_and_to_anything_else_does_not() {
    assert_eq!(judge(&Request::Update(update(5, 3))), Verdict::Pass);
    assert_eq!(judge(&Request::Update(update(5, 4))), Verdict::Replicas(5));
    assert_eq!(judge(&Request::Update(update(2, 3))), Verdict::Replicas(2), "growth is no correction");
}

#[test]
fn only_what_is_open_or_done_for_its_own_revision_grows() {
    for (text, expected) in [
        ("open.2", Verdict::Pass),
        ("done.2", Verdict::Pass),
        ("open.1", Verdict::Replicas(0)),
        ("done.22", Verdict::Replicas(0)),
        ("draining.2.abc", Verdict::Replicas(0)),
    ] {
        let growth = Update { mark: mark(text), ..update(0, 2) };
        assert_eq!(judge(&Request::Update(growth)), expected, "{text}");
    }
    let without_revision = Update { mark: mark("open.2"), revision: None, ..update(0, 2) };
    assert_eq!(judge(&Request::Update(without_revision)), Verdict::Replicas(0));
}

#[test]
fn only_what_drains_for_a_target_that_is_valid_shrinks() {
    let target = DrainFor::ReplicaSet { revision: "2".to_owned(), pod_template_hash: "abc".to_owned() };
    let shrink = |text: &str| judge(&Request::Update(Update { mark: mark(text), ..update(2, 1) }));
    assert_eq!(shrink("draining.2.abc"), Verdict::PassIf(target.clone()));
    assert_eq!(shrink("open.2"), Verdict::Replicas(2));
    assert_eq!(shrink("done.2"), Verdict::Replicas(2));
    assert_eq!(judge(&Request::Update(update(2, 1))), Verdict::Replicas(2));

    let valid = |sets: &[(&str, &str, &str)]| drain_is_valid(&target, "new", sets.iter().copied());
    assert!(valid(&[("xyz", "1", "old"), ("abc", "2", "new")]));
    assert!(!valid(&[("abc", "2", "old")]), "the template is another one by now");
    assert!(!valid(&[("abc", "3", "new")]), "the template went away and came back");
    assert!(!valid(&[("xyz", "2", "new")]));
    assert!(!valid(&[]));
    let by_template = DrainFor::Template { digest: "new".to_owned() };
    assert!(drain_is_valid(&by_template, "new", [].into_iter()));
    assert!(!drain_is_valid(&by_template, "old", [].into_iter()));
}

#[test]
fn by_scale_only_the_target_grows() {
    let scale = |old, new, text: &str, is_target| {
        let (desired, revision) = (Some("3".to_owned()), Some("2".to_owned()));
        judge(&Request::Scale { old, new, desired, revision, mark: text.parse().ok(), is_target })
    };
    assert_eq!(scale(1, 2, "open.2", true), Verdict::Pass);
    assert_eq!(scale(1, 2, "open.2", false), Verdict::Replicas(1));
    assert_eq!(scale(1, 2, "", true), Verdict::Replicas(1));
    assert_eq!(scale(5, 3, "", false), Verdict::Pass, "a correction");
    assert_eq!(scale(5, 4, "", false), Verdict::Replicas(5));
    assert!(matches!(scale(5, 4, "draining.t.ff", false), Verdict::PassIf(_)));
    assert_eq!(scale(2, 2, "", false), Verdict::Pass);
}
