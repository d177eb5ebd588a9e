//! A lifecycle that is deleted lets its Deployment go.

use boathook_decide::deployment_lifecycle::{Effect, Release, Strategy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{Look, at, hook, words};

fn deleted() -> Look {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    look.object.metadata.deletion_timestamp = Some(Time(at(30)));
    look
}

#[test]
fn the_hook_that_runs_is_ended_and_gone_before_anything_is_let_in() {
    let mut look = deleted();
    assert_eq!(words(&look.done()), ["delete pod"]);
    assert!(words(&look.done()).is_empty());
}

#[test]
fn the_deployment_is_let_go_first_then_its_replica_sets_and_the_lifecycle_when_nothing_is_held() {
    let mut look = deleted();
    look.hook_pods.clear();
    let decision = look.done();
    let lets_go = ["annotate false", "web-old -", "web-new -", "BoathookLifecycle -"];
    assert_eq!(words(&decision), lets_go);
    for effect in &decision.effects {
        if let Effect::Release(Release::ReplicaSet { name, resource_version, .. }) = effect {
            let read = look.sets.iter().find(|set| set.name == *name).expect("a known ReplicaSet");
            assert_eq!(*resource_version, read.resource_version, "of the version that was read");
        }
    }

    look.deployment().generation += 1;
    assert!(words(&look.done()).is_empty(), "the Deployment controller may be making a ReplicaSet as it was");
    look.deployment().observed_generation += 1;
    look.sets[1].managed = true;
    assert_eq!(words(&look.done()), ["web-new -"], "so it did");
    look.sets[1].managed = false;
    assert_eq!(words(&look.done()), ["let go"]);
    assert!(words(&look.done()).is_empty());
}

#[test]
fn without_a_deployment_nothing_is_waited_for() {
    let mut look = deleted();
    (look.deployment, look.sets) = (None, vec![]);
    assert_eq!(words(&look.done()), ["delete pod", "let go"]);
}

#[test]
fn a_deployment_that_is_deleted_too_need_not_be_seen_again() {
    let mut look = deleted();
    look.hook_pods.clear();
    look.done();
    look.sets.clear();
    look.deployment().generation += 1;
    look.deployment().deleted = true;
    assert_eq!(words(&look.done()), ["let go"]);
}

#[test]
fn replica_sets_that_lost_their_deployment_are_let_go_too() {
    let mut look = deleted();
    look.hook_pods.clear();
    look.deployment = None;
    let lets_go = look.done();
    assert_eq!(words(&lets_go), ["web-old -", "web-new -"]);
    assert!(lets_go.again.is_some(), "I9: nobody tells of what has no owner");
    assert_eq!(words(&look.done()), ["let go"]);
}

#[test]
fn a_hook_that_does_not_end_is_named_on_the_deployment_that_it_keeps_held() {
    let mut look = deleted();
    look.done();
    let pod = look.hook_pods[0].name.clone();
    assert_eq!(look.done().again, Some(at(look.now + 30 + 60)));
    look.now += 30 + 60;
    assert_eq!(words(&look.done()), ["BoathookLifecycle=LettingGo"]);
    let message = look.deployment().ours.clone().expect("something is said").message;
    assert!(message.contains(&format!("`kubectl delete pod {pod} -n shop --force`")), "{message}");
    assert!(words(&look.done()).is_empty(), "once");
}
