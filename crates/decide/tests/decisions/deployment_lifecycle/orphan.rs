//! Marks that outlive their lifecycle.

use boathook_decide::{
    Leadership,
    deployment_lifecycle::{LiveHook, Orphan, Release, Strategy, Unclaimed, decide_orphan},
};
use serde_json::json;

use super::{Look, hook, released};

/// Idle at revision 1, with every mark in place.
fn marked() -> Look {
    let mut look = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    assert!(look.deployment().ours.is_some(), "the condition is written");
    look
}

fn decide(look: &Look, leadership: Leadership, lifecycle_exists: bool, live_hooks: &[LiveHook]) -> Orphan {
    let deployment = look.deployment.as_ref().expect("it has a Deployment");
    decide_orphan(&Unclaimed { leadership, deployment, replica_sets: &look.sets, live_hooks, lifecycle_exists })
}

/// What the leader does when no lifecycle exists and no hook runs.
fn released_words(look: &Look) -> Vec<String> {
    match decide(look, Leadership::Leader, false, &[]) {
        Orphan::Release(releases) => releases.iter().map(released).collect(),
        other => panic!("nothing is released: {other:?}"),
    }
}

#[test]
fn marks_without_a_lifecycle_are_removed() {
    let look = marked();
    assert_eq!(released_words(&look), ["annotate false", "web-old -", "BoathookLifecycle -"]);
    let Orphan::Release(releases) = decide(&look, Leadership::Leader, false, &[]) else { panic!("it is released") };
    for release in releases {
        match release {
            Release::Deployment { resource_version } => assert_eq!(resource_version, "7"),
            Release::ReplicaSet { resource_version, .. } => assert_eq!(resource_version, "old-7"),
            Release::Condition => {}
        }
    }
}

#[test]
fn late_mark_of_a_replica_set_alone_is_removed() {
    let mut look = marked();
    (look.deployment().lifecycle, look.deployment().ours) = (None, None);
    assert_eq!(released_words(&look), ["web-old -"]);
    (look.sets[0].managed, look.sets[0].gate) = (false, None);
    assert_eq!(decide(&look, Leadership::Leader, false, &[]), Orphan::Keep);
}

#[test]
fn hook_of_a_lifecycle_that_is_gone_ends_before_the_release() {
    let look = marked();
    let pod = |name: &str, deleted| LiveHook { name: name.to_owned(), uid: format!("{name}-uid"), deleted };
    let hooks = [pod("mid-1", false), pod("mid-2", true)];
    let ended = decide(&look, Leadership::Leader, false, &hooks);
    assert_eq!(ended, Orphan::EndHooks(vec![hooks[0].clone()]));
    let waits = decide(&look, Leadership::Leader, false, &hooks[1..]);
    assert_eq!(waits, Orphan::EndHooks(vec![]), "it is waited for");
}

#[test]
fn marks_stay_while_the_lifecycle_exists() {
    assert_eq!(decide(&marked(), Leadership::Leader, true, &[]), Orphan::Keep);
}

#[test]
fn only_the_leader_removes_marks() {
    assert_eq!(decide(&marked(), Leadership::ThawOnly, false, &[]), Orphan::Keep);
}

#[test]
fn deployment_that_requires_a_lifecycle_stays_held() {
    let mut look = marked();
    look.deployment().lifecycle = Some("required".to_owned());
    assert_eq!(decide(&look, Leadership::Leader, false, &[]), Orphan::Keep);
}
