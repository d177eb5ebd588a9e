//! A person asks for a stage to be retried or skipped.

use boathook_api::{
    deployment_lifecycle::{RolloutPhase, Stage, StageState},
    words::{ROLLOUT_REQUEST, ROLLOUT_REQUESTED_BY},
};
use boathook_decide::deployment_lifecycle::Strategy;
use kube::ResourceExt;
use serde_json::json;

use super::{Look, hook, told, words};

fn ask(look: &mut Look, text: &str) {
    look.object.annotations_mut().insert(ROLLOUT_REQUEST.to_owned(), text.to_owned());
    look.object.annotations_mut().insert(ROLLOUT_REQUESTED_BY.to_owned(), "ann".to_owned());
}

fn aborted() -> Look {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Abort")}));
    look.done();
    look.done();
    look.fail();
    look.done();
    assert_eq!(look.phase(), Some(RolloutPhase::Aborted));
    look
}

#[test]
fn a_stage_that_failed_is_retried_in_another_pod_with_fresh_time_and_who_asked_is_recorded() {
    let mut look = aborted();
    look.now = 500;
    ask(&mut look, r#"{"id": "1", "stage": "Pre", "do": "Retry"}"#);
    let decision = look.done();
    assert_eq!(told(&decision), ["Retried"]);
    assert_eq!(words(&decision)[..2], ["status", "create pod"]);
    let record = look.stage(Stage::Pre).clone();
    assert_eq!((record.state, record.requested_by.as_deref()), (StageState::Running, Some("ann")));
    assert_eq!((look.phase(), record.complete_time, record.pods), (Some(RolloutPhase::Pre), None, 2));
    assert_ne!(look.hook_pods[0].name, look.hook_pods[1].name);
    assert_eq!(look.condition("Failed").0, "False");
    assert!(told(&look.done()).is_empty(), "once");
    look.now += super::DEADLINE - 1;
    look.done();
    assert_eq!(look.phase(), Some(RolloutPhase::Pre));
}

#[test]
fn a_stage_that_failed_before_its_turn_is_skipped_and_those_before_it_run() {
    for at in [Stage::Mid, Stage::Post] {
        let mut hooks = json!({"pre": hook("Abort"), "mid": hook("Abort"), "post": hook("Abort")});
        hooks[at.as_str()]["execNewPod"]["containerName"] = json!("wbe");
        let mut look = Look::at_pre(Strategy::Recreate, hooks);
        look.done();
        assert_eq!(look.phase(), Some(RolloutPhase::Aborted));
        ask(&mut look, &format!(r#"{{"id": "1", "stage": "{at:?}", "do": "Retry"}}"#));
        look.done();
        assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Aborted), 0), "it still cannot run");
        ask(&mut look, &format!(r#"{{"id": "2", "stage": "{at:?}", "do": "Skip"}}"#));
        look.done();
        look.done();
        assert_eq!((look.phase(), look.stage(at).state), (Some(RolloutPhase::Pre), StageState::Skipped));
        assert_eq!((look.hook_pods.len(), look.gate("old")), (1, None), "pre runs");
    }
}

#[test]
fn without_pre_a_retry_of_what_cannot_run_touches_nothing_of_the_old_version() {
    for at in [Stage::Mid, Stage::Post] {
        let mut hooks = json!({"mid": hook("Abort"), "post": hook("Abort")});
        hooks[at.as_str()]["execNewPod"]["containerName"] = json!("wbe");
        let mut look = Look::at_pre(Strategy::Recreate, hooks);
        look.done();
        assert_eq!(look.phase(), Some(RolloutPhase::Aborted));
        ask(&mut look, &format!(r#"{{"id": "1", "stage": "{at:?}", "do": "Retry"}}"#));
        look.done();
        look.done();
        assert_eq!((look.phase(), look.gate("old")), (Some(RolloutPhase::Aborted), None), "{at:?}");
    }
}

#[test]
fn what_failed_before_its_turn_and_is_skipped_is_not_let_in_while_it_is_paused() {
    let mut hooks = json!({"post": hook("Abort")});
    hooks["post"]["execNewPod"]["containerName"] = json!("wbe");
    let mut look = Look::at_pre(Strategy::Recreate, hooks);
    look.done();
    look.deployment().paused = true;
    ask(&mut look, r#"{"id": "1", "stage": "Post", "do": "Skip"}"#);
    look.done();
    look.done();
    assert_eq!((look.phase(), look.gate("old")), (Some(RolloutPhase::Pre), None));
}

#[test]
fn a_stage_that_runs_is_retried_when_its_pod_is_gone() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    look.done();
    ask(&mut look, r#"{"id": "1", "stage": "Pre", "do": "Retry"}"#);
    assert_eq!(words(&look.done())[..2], ["status", "delete pod"]);
    assert_eq!(look.hook_pods.len(), 1, "one at a time");
    look.hook_pods.clear();
    assert_eq!(words(&look.done()), ["create pod"]);
}

#[test]
fn a_stage_that_is_skipped_has_passed_when_nothing_of_it_runs() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    ask(&mut look, r#"{"id": "1", "stage": "Pre", "do": "Skip"}"#);
    let decision = look.done();
    assert_eq!(told(&decision), ["Skipped"]);
    assert_eq!((look.stage(Stage::Pre).state, look.gate("new")), (StageState::Skipped, None));
    look.hook_pods.clear();
    look.done();
    assert_eq!((look.gate("new"), look.stage(Stage::Pre).requested_by.as_deref()), (Some("open.2"), Some("ann")));

    let mut failed = aborted();
    ask(&mut failed, r#"{"id": "1", "stage": "Pre", "do": "Skip"}"#);
    failed.done();
    assert_eq!((failed.gate("new"), failed.phase()), (Some("open.2"), Some(RolloutPhase::Rolling)));
}

#[test]
fn what_cannot_be_done_is_refused_once() {
    for text in
        [r#"{"id": "1", "stage": "Post", "do": "Skip"}"#, r#"{"id": "1", "stage": "Pre", "do": "Fly"}"#, "please"]
    {
        let mut look = aborted();
        ask(&mut look, text);
        assert_eq!(told(&look.done()), ["RequestRefused"], "{text}");
        assert_eq!(look.phase(), Some(RolloutPhase::Aborted));
        assert!(told(&look.done()).is_empty());
    }
    let mut passed = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    passed.done();
    passed.end(boathook_decide::deployment_lifecycle::End::Succeeded);
    passed.done();
    ask(&mut passed, r#"{"id": "1", "stage": "Pre", "do": "Retry"}"#);
    assert_eq!(told(&passed.done()), ["RequestRefused"], "it has passed");
}

#[test]
fn what_was_asked_about_the_rollout_before_is_not_about_the_next_one() {
    let mut look = aborted();
    ask(&mut look, r#"{"id": "1", "stage": "Pre", "do": "Skip"}"#);
    look.write_template("newer");
    look.sets.push(super::set("newer", 3, 0, None));
    look.done();
    let decision = look.done();
    assert_eq!((look.rollout().target.as_str(), look.phase()), ("newer", Some(RolloutPhase::Pre)));
    assert!(!told(&decision).contains(&"RequestRefused"), "{:?}", told(&decision));
    assert_eq!(look.stage(Stage::Pre).state, StageState::Running);
}

#[test]
fn what_was_said_of_an_abort_is_taken_back_when_its_stage_is_retried_or_skipped() {
    for what in ["Retry", "Skip"] {
        let mut look = aborted();
        assert_eq!(look.deployment().progressing.as_ref().map(|told| told.status), Some("False"));
        ask(&mut look, &format!(r#"{{"id": "1", "stage": "Pre", "do": "{what}"}}"#));
        look.done();
        let told = look.deployment().progressing.clone().expect("it is still there");
        assert_eq!((told.status, told.reason.as_str()), ("True", "ReplicaSetUpdated"), "{what}");
        assert!(!words(&look.done()).iter().any(|word| word.starts_with("Progressing")), "once");
    }
}
