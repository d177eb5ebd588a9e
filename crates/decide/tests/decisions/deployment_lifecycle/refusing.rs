//! Hooks that cannot be run, and Deployments that are not there.

use boathook_api::deployment_lifecycle::{DeploymentLifecycleSpec, StageState};
use boathook_decide::deployment_lifecycle::{Strategy, strategy_mistake};
use serde_json::{Value, json};

use super::{Look, hook, set, told, words};

fn mistake(spec: Value, strategy: Strategy) -> Option<String> {
    let spec: DeploymentLifecycleSpec = serde_json::from_value(spec).expect("it is a spec");
    strategy_mistake(&spec, strategy)
}

#[test]
fn mid_and_an_aborting_post_need_recreate_and_the_message_names_it() {
    for spec in [json!({"mid": hook("Retry")}), json!({"post": hook("Abort")})] {
        let message = mistake(spec.clone(), Strategy::RollingUpdate).unwrap();
        assert!(message.contains("needs the strategy `Recreate`"), "{message}");
        assert_eq!(mistake(spec, Strategy::Recreate), None);
    }
    for policy in ["Retry", "Ignore"] {
        let spec = json!({"pre": hook("Abort"), "post": hook(policy)});
        assert_eq!(mistake(spec, Strategy::RollingUpdate), None);
    }
}

#[test]
fn nul_in_a_command_holds_rather_than_runs() {
    let spec = json!({"pre": {"execNewPod": {"containerName": "main", "command": ["migrate", "\0"]}}});
    let mut look = Look::new_template(Strategy::RollingUpdate, spec);
    look.done();
    assert_eq!(look.condition("Accepted"), ("False".to_owned(), "Invalid".to_owned()));
    assert_eq!((look.gate("new"), look.rollout().target.as_str()), (None, "old"));
    assert_eq!(look.condition("Succeeded"), ("False".to_owned(), "Invalid".to_owned()));
}

#[test]
fn unfit_lifecycle_holds_rather_than_rolls_unhooked() {
    let mut look = Look::new_template(Strategy::RollingUpdate, json!({"mid": hook("Retry")}));
    assert_eq!(look.condition("Accepted"), ("False".to_owned(), "Strategy".to_owned()));
    look.done();
    look.done();
    assert_eq!((look.gate("new"), look.said()), (None, ("False", "Strategy".to_owned())));
    assert_eq!(look.rollout().target, "old");

    let nul = json!({"pre": {"execNewPod": {"containerName": "web", "command": ["\0"]}}});
    for (spec, reason) in [(json!({"mid": hook("Retry")}), "Strategy"), (nul, "Invalid")] {
        let mut adopted = Look::new_template(Strategy::RollingUpdate, spec);
        adopted.deployment().lifecycle = None;
        adopted.sets[0].managed = false;
        let done = words(&adopted.done());
        assert!(done.contains(&"annotate true".to_owned()), "{reason}: {done:?}");
        assert_eq!(adopted.condition("Accepted"), ("False".to_owned(), reason.to_owned()));
        assert_eq!(adopted.condition("Succeeded"), ("False".to_owned(), reason.to_owned()));
    }
}

#[test]
fn what_was_written_before_its_author_could_be_checked_is_refused_and_told_once() {
    let mut look = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    (look.author_checked, look.object.metadata.generation) = (false, Some(2));
    let decision = look.done();
    assert_eq!(told(&decision), ["Refused"]);
    assert_eq!(look.condition("Accepted"), ("False".to_owned(), "Refused".to_owned()));
    assert!(told(&look.done()).is_empty());
    assert_eq!(look.rollout().target, "old");
}

#[test]
fn whose_author_was_checked_once_goes_on_when_the_webhooks_are_made_anew() {
    let mut look = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    (look.author_checked, look.gate_is_there) = (false, false);
    look.done();
    look.gate_is_there = true;
    look.done();
    assert_eq!((look.rollout().target.as_str(), look.condition("Accepted").0), ("new", "True".to_owned()));
    // Another Deployment of its name changes nothing about the author.
    look.deployment().uid = "another".to_owned();
    look.done();
    assert_eq!(look.condition("Accepted").0, "True");
}

#[test]
fn without_its_configuration_nothing_is_begun_and_nothing_adopted_and_what_goes_on_does() {
    let mut new = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    new.gate_is_there = false;
    new.done();
    new.done();
    assert_eq!(new.condition("Accepted"), ("False".to_owned(), "GateMissing".to_owned()));
    let said = new.deployment().ours.clone().expect("it is said on the Deployment too");
    assert_eq!(said.reason, "GateMissing");
    assert!(said.message.starts_with("the MutatingWebhookConfiguration"), "nothing is held: {}", said.message);
    assert_eq!(new.rollout().target, "old");
    new.gate_is_there = true;
    new.done();
    assert_eq!((new.rollout().target.as_str(), new.condition("Accepted").0), ("new", "True".to_owned()));

    let mut adopted = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    (adopted.deployment().lifecycle, adopted.gate_is_there) = (None, false);
    assert_eq!(words(&adopted.done()), ["status"]);

    let mut under_way = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    under_way.gate_is_there = false;
    assert!(words(&under_way.done()).contains(&"create pod".to_owned()));
}

#[test]
fn a_deployment_that_is_not_there_or_goes_is_waited_for() {
    let mut look = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.deployment().deleted = true;
    assert_eq!(words(&look.done()), ["status"]);
    assert_eq!(look.condition("Accepted"), ("False".to_owned(), "DeploymentNotFound".to_owned()));
    assert_eq!(look.condition("Complete"), ("False".to_owned(), "DeploymentNotFound".to_owned()));
    assert_eq!(look.condition("Succeeded").0, "Unknown");
    look.deployment = None;
    assert!(words(&look.done()).is_empty());
}

#[test]
fn a_new_one_is_held_before_anything_is_written() {
    let mut look = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.object.metadata.finalizers = None;
    assert_eq!(words(&look.done()), ["hold"]);
}

#[test]
fn a_strategy_that_was_changed_under_mid_aborts_and_one_without_mid_is_opened() {
    for (mid, opens) in [(true, false), (false, true)] {
        let spec = if mid { json!({"mid": hook("Retry")}) } else { json!({"post": hook("Retry")}) };
        let mut look = Look::at_pre(Strategy::Recreate, spec);
        look.done();
        look.deployment().strategy = Strategy::RollingUpdate;
        look.sets.push(super::set("new", 2, 0, None));
        look.done();
        assert_eq!(look.gate("new").is_some(), opens);
        assert_eq!(look.condition("Failed").0, if mid { "True" } else { "False" });
    }
}

#[test]
fn mid_that_a_person_has_skipped_stays_so_though_the_strategy_was_changed() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    look.deployment().strategy = Strategy::RollingUpdate;
    look.sets.push(super::set("new", 2, 0, None));
    look.done();
    assert_eq!(look.condition("Failed").0, "True");
    let request = json!({"id": "1", "stage": "Mid", "do": "Skip"}).to_string();
    look.object.metadata.annotations = Some([("boathook.dev/rollout-request".to_owned(), request)].into());
    look.done();
    assert_eq!(look.gate("new"), Some("open.2"));
}

#[test]
fn a_lifecycle_that_is_not_accepted_does_not_hold_the_template_that_runs_everywhere() {
    let mut look = Look::new_template(Strategy::RollingUpdate, json!({"mid": hook("Retry")}));
    look.done();
    look.done();
    look.write_template("old");
    look.sets[0].revision = Some("3".to_owned());
    look.done();
    look.done();
    assert_eq!((look.gate("old"), look.said().1.as_str()), (Some("done.3"), "Complete"));
}

#[test]
fn a_skipped_mid_ends_before_anything_is_let_in_though_the_strategy_was_changed() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Abort")}));
    look.done();
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.done();
    assert_eq!(look.hook_pods.len(), 1);
    let rollout = look.object.status.as_mut().and_then(|status| status.rollout.as_mut()).expect("it is under way");
    rollout.stages[0].state = StageState::Skipped;
    look.deployment().strategy = Strategy::RollingUpdate;
    look.done();
    assert_eq!(look.gate("new"), None, "its pod still ends");
    look.hook_pods.clear();
    look.done();
    assert_eq!(look.gate("new"), Some("open.2"));
}
