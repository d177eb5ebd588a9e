//! A Deployment that nobody looked after, and one whose first rollout waits for its lifecycle.

use boathook_api::deployment_lifecycle::RolloutPhase;
use boathook_decide::deployment_lifecycle::{Annotate, Effect, Strategy};
use serde_json::json;

use super::{Look, hook, set, told, words};

fn unmanaged(strategy: Strategy) -> Look {
    let mut look = Look::idle(strategy, json!({"pre": hook("Retry")}));
    look.object.status = None;
    (look.deployment().lifecycle, look.deployment().ours) = (None, None);
    for set in &mut look.sets {
        (set.managed, set.gate) = (false, None);
    }
    look
}

#[test]
fn an_adoption_marks_every_replica_set_and_the_deployment_last() {
    let mut look = unmanaged(Strategy::RollingUpdate);
    look.sets.push(set("older", 0, 0, None));
    look.sets[1].managed = false;
    let decision = look.decide();
    assert_eq!(words(&decision), ["web-old done.1", "web-older -", "status", "annotate true"]);
    for effect in &decision.effects {
        match effect {
            Effect::MarkReplicaSet { annotate, .. } => assert_eq!(*annotate, Annotate::Write("managed".to_owned())),
            Effect::AnnotateDeployment { resource_version, .. } => assert_eq!(resource_version, "7"),
            _ => {}
        }
    }
    look.done();
    assert_eq!(look.phase(), Some(RolloutPhase::Complete));
    assert_eq!(look.condition("Complete"), ("False".to_owned(), "Adopting".to_owned()));
    assert!(told(&look.done()).contains(&"Adopted"));
    assert_eq!(look.condition("Complete"), ("True".to_owned(), "Adopted".to_owned()));
    assert!(look.rollout().stages.is_empty());
}

#[test]
fn adoption_is_complete_only_once_the_deployment_is_annotated() {
    let mut look = unmanaged(Strategy::Recreate);
    for effect in &look.decide().effects {
        let annotated = matches!(effect, Effect::AnnotateDeployment { .. });
        look.carry_out(effect);
        let is_true = look.object.status.is_some() && look.condition("Complete").0 == "True";
        assert!(annotated || !is_true, "a version that is rolled out now is not held");
    }
    look.done();
    assert_eq!(look.condition("Complete").0, "True");
}

#[test]
fn a_rollout_under_way_goes_on_when_it_is_adopted() {
    let mut look = unmanaged(Strategy::RollingUpdate);
    look.write_template("new");
    look.sets.push(set("new", 2, 1, None));
    look.sets[1].managed = false;
    let marks = ["web-new done.2", "web-old draining.2.hashnew", "status", "annotate true"];
    assert_eq!(words(&look.decide()), marks);
}

#[test]
fn nothing_is_adopted_before_the_deployment_controller_has_seen_the_template() {
    let mut look = unmanaged(Strategy::RollingUpdate);
    look.deployment().generation += 1;
    assert_eq!(words(&look.decide()), ["status"]);
    let mut undone = unmanaged(Strategy::RollingUpdate);
    undone.sets.push(set("newer", 5, 3, None));
    undone.sets[1].managed = false;
    assert_eq!(words(&undone.decide()), ["status"], "its revision is not the newest yet");
}

#[test]
fn an_adoption_that_a_new_template_interrupts_does_not_hold_that_one_up() {
    let mut look = unmanaged(Strategy::Recreate);
    (look.sets[0].managed, look.sets[0].gate) = (true, Some("done.1".to_owned()));
    look.write_template("new");
    let decision = look.done();
    assert_eq!(words(&decision), ["web-old draining.t.new", "BoathookLifecycle=Pre", "status"]);
}

#[test]
fn who_requires_a_lifecycle_has_the_first_rollout_held_and_its_hooks_run() {
    let mut look = unmanaged(Strategy::RollingUpdate);
    look.deployment().lifecycle = Some("required".to_owned());
    look.sets = vec![set("old", 1, 0, None)];
    let decision = look.done();
    assert_eq!(words(&decision), ["BoathookLifecycle=Pre", "status"]);
    assert_eq!(look.phase(), Some(RolloutPhase::Pre));
    assert_eq!(words(&look.done()), ["status", "create pod"]);
}

#[test]
fn replica_sets_from_before_the_adoption_are_annotated_as_soon_as_they_are_seen() {
    let mut look = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.sets.push(set("older", 0, 0, None));
    look.sets[1].managed = false;
    assert_eq!(words(&look.done()), ["web-older -"]);
}

#[test]
fn what_was_recorded_of_another_deployment_of_its_name_counts_for_nothing() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.deployment().uid = "another".to_owned();
    look.deployment().lifecycle = None;
    look.done();
    assert!(told(&look.done()).contains(&"Adopted"));
    let status = look.object.status.expect("as it is written here");
    assert_eq!(status.deployment_uid.as_deref(), Some("another"));
    assert!(status.history.is_empty());
}

#[test]
fn a_hook_of_another_deployment_of_its_name_ends_before_that_is_forgotten() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    look.deployment().uid = "another".to_owned();
    look.done();
    assert_eq!(look.rollout().target, "new", "by this its pod is known");
    assert!(look.hook_pods[0].gone_by.is_some());
    look.hook_pods.clear();
    look.done();
    let status = look.object.status.as_ref().expect("it was looked at");
    assert_eq!(status.deployment_uid.as_deref(), Some("another"));
}
