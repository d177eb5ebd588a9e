//! A new template: what was allowed for the one before is revoked, then pre is recorded; or nothing is begun.

use boathook_api::deployment_lifecycle::{RecordedHooks, RolloutOutcome, RolloutPhase, Stage, StageState};
use boathook_decide::{Leadership, deployment_lifecycle::Strategy};
use serde_json::json;

use super::{Look, at, hook, set, told, words};

#[test]
fn marks_are_revoked_and_seen_to_be_before_pre_is_recorded() {
    let mut look = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.sets.push(set("older", 0, 1, Some("draining.1.hashold")));
    let decision = look.done();
    assert_eq!(words(&decision), ["web-old -", "web-older -"]);
    assert_eq!(decision.again, Some(at(20)));
    let decision = look.done();
    assert_eq!(words(&decision), ["BoathookLifecycle=Pre", "status"]);
    assert_eq!((look.phase(), look.rollout().revision.as_deref()), (Some(RolloutPhase::Pre), Some("2")));
    assert_eq!(look.condition("Complete"), ("False".to_owned(), "Pre".to_owned()));
    assert_eq!(look.said(), ("False", "Pre".to_owned()));
    let past = &look.object.status.as_ref().expect("as it is written here").history[0];
    assert_eq!((past.outcome, past.rollout.target.as_str()), (RolloutOutcome::Complete, "old"));
}

#[test]
fn a_newer_template_ends_the_hook_that_runs_and_begins_when_it_is_gone() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    look.write_template("newer");
    look.sets.push(set("newer", 3, 0, None));
    assert_eq!(words(&look.done()), ["delete pod", "BoathookLifecycle=Pre", "status"]);
    let message = look.deployment().ours.clone().expect("something is said").message;
    assert!(message.contains(&format!("pod `{}`", look.hook_pods[0].name)), "what is waited for is said: {message}");
    assert_eq!(words(&look.done()), [""; 0], "it is waited for");
    look.hook_pods.clear();
    let decision = look.done();
    assert!(told(&decision).contains(&"Superseded"));
    assert_eq!(look.rollout().target, "newer");
    let past = &look.object.status.as_ref().expect("as it is written here").history[0];
    let stage = &past.rollout.stages[0];
    assert_eq!((past.outcome, stage.state), (RolloutOutcome::Superseded, StageState::Superseded));
    assert!(stage.complete_time.is_some());
}

#[test]
fn the_hooks_are_those_of_the_moment_when_the_rollout_began() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Abort")}));
    look.object.spec = serde_json::from_value(json!({"post": hook("Ignore")})).expect("as it is written here");
    assert_eq!(words(&look.done()), ["status", "create pod"], "pre as it was");
    assert!(look.rollout().hooks.post.is_none());
}

#[test]
fn a_template_that_came_back_before_anything_was_let_in_is_a_cancel() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry"), "post": hook("Retry")}));
    look.write_template("old");
    look.sets[0].revision = Some("3".to_owned());
    let decision = look.done();
    assert_eq!(words(&decision), ["status", "web-old done.3", "BoathookLifecycle=Complete"]);
    assert_eq!(told(&decision), ["Superseded", "Cancelled"]);
    assert_eq!(look.condition("Complete"), ("True".to_owned(), "Cancelled".to_owned()));
    assert!(look.rollout().stages.is_empty() && look.rollout().hooks.post.is_none(), "it has no hooks");
    assert!(words(&look.done()).is_empty());
}

#[test]
fn a_template_that_came_back_when_others_have_pods_has_its_hooks() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.sets[1].status_replicas = 1;
    look.write_template("old");
    look.sets[0].revision = Some("3".to_owned());
    look.done();
    assert_eq!((look.phase(), look.rollout().target.as_str()), (Some(RolloutPhase::Pre), "old"));
}

#[test]
fn a_paused_deployment_begins_nothing_and_opens_nothing() {
    let mut look = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    look.deployment().paused = true;
    look.done();
    assert_eq!((look.rollout().target.as_str(), look.said()), ("old", ("False", "Paused".to_owned())));
    look.deployment().paused = false;
    look.done();
    look.deployment().paused = true;
    look.done();
    assert!(look.hook_pods.is_empty(), "a stage is not begun");
    look.deployment().paused = false;
    look.done();
    look.end(boathook_decide::deployment_lifecycle::End::Succeeded);
    look.deployment().paused = true;
    look.done();
    assert_eq!((look.gate("new"), look.said().1.as_str()), (None, "Paused"));
    look.deployment().paused = false;
    look.done();
    assert_eq!(look.gate("new"), Some("open.2"));
}

#[test]
fn a_template_that_the_deployment_controller_has_not_seen_is_waited_for_and_it_is_woken() {
    for unseen in [true, false] {
        let mut look = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
        look.done();
        match unseen {
            true => look.deployment().observed_generation -= 1,
            false => look.sets[1].revision = Some("0".to_owned()),
        }
        let decision = look.done();
        assert_eq!(words(&decision), ["BoathookLifecycle=Complete"], "only to wake it");
        assert_eq!(look.rollout().target, "old");
    }
}

#[test]
fn two_rollouts_never_have_the_same_beginning_whatever_the_clock_says() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    let first = look.rollout().start_time.clone();
    look.now = 5;
    look.write_template("newer");
    look.sets.push(set("newer", 3, 0, None));
    look.done();
    assert_eq!(look.rollout().target, "newer");
    assert!(look.rollout().start_time > first);
}

#[test]
fn a_rollout_whose_replica_set_is_gone_is_not_taken_up_again() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    look.sets.pop();
    look.deployment().paused = true;
    assert_eq!(words(&look.done())[0], "delete pod", "its hook is ended");
}

#[test]
fn ten_past_rollouts_are_kept() {
    let mut look = Look::idle(Strategy::Recreate, json!({"post": hook("Retry")}));
    for number in 0..15 {
        look.write_template(&format!("t{number}"));
        look.done();
        look.done();
    }
    assert_eq!(look.object.status.as_ref().expect("as it is written here").history.len(), 10);
    assert_eq!(look.object.status.as_ref().expect("as it is written here").history[0].rollout.target, "t13");
    assert!(look.rollout().stage(Stage::Pre).is_none());
}

#[test]
fn of_past_rollouts_no_more_is_kept_than_fits_into_the_object() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Abort")}));
    look.done();
    look.hook_pods[0].log_tail = Some(format!("{}the end", "ä".repeat(5000)));
    look.fail();
    look.done();
    assert!(look.rollout().hooks.pre.is_some());
    look.write_template("mended");
    look.sets.push(set("mended", 3, 0, None));
    look.done();
    let past = &look.object.status.as_ref().expect("as it is written here").history[0].rollout;
    assert_eq!((&past.hooks, &past.request), (&RecordedHooks::default(), &None));
    let tail = past.stages[0].log_tail.as_deref().expect("it failed");
    assert!(tail.ends_with("äthe end") && tail.len() <= 2048, "{} bytes", tail.len());
}

#[test]
fn whoever_does_not_lead_does_nothing() {
    let mut look = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.leadership = Leadership::ThawOnly;
    assert!(words(&look.decide()).is_empty());
}

#[test]
fn mid_that_passes_while_the_deployment_is_paused_opens_at_the_resume() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.done();
    look.end(boathook_decide::deployment_lifecycle::End::Succeeded);
    look.deployment().paused = true;
    look.done();
    assert_eq!((look.gate("new"), look.said().1.as_str()), (None, "Paused"));
    look.deployment().paused = false;
    look.done();
    assert_eq!(look.gate("new"), Some("open.2"));
}

/// The version `new` was let in and its pods do not become ready; then another template came, which is held.
fn let_in_and_replaced(strategy: Strategy) -> Look {
    let mut look = Look::at_pre(strategy, json!({"post": hook("Retry")}));
    look.done();
    if strategy == Strategy::Recreate {
        look.old_version_ends();
        look.sets.push(set("new", 2, 0, None));
        look.done();
    }
    assert_eq!((look.phase(), look.gate("new")), (Some(RolloutPhase::Rolling), Some("open.2")));
    look.old_version_ends();
    (look.sets[1].replicas, look.sets[1].status_replicas) = (3, 3);
    look.write_template("newer");
    look.sets.push(set("newer", 3, 0, None));
    look.done();
    look.done();
    assert_eq!(look.rollout().target, "newer");
    look
}

/// The template of `new` again.
fn comes_back(look: &mut Look) {
    look.write_template("new");
    look.sets[1].revision = Some("4".to_owned());
    look.done();
    look.done();
}

#[test]
fn a_version_that_was_let_in_and_never_complete_has_its_post_when_its_template_comes_back() {
    for strategy in [Strategy::RollingUpdate, Strategy::Recreate] {
        let mut look = let_in_and_replaced(strategy);
        comes_back(&mut look);
        assert_eq!((look.phase(), look.gate("new")), (Some(RolloutPhase::Rolling), Some("open.4")), "{strategy:?}");
        let rollout = look.rollout();
        assert!(rollout.resumed && rollout.hooks.pre.is_none() && rollout.hooks.mid.is_none());
        let deployment = look.deployment();
        (deployment.updated_replicas, deployment.status_replicas, deployment.available_replicas) = (3, 3, 3);
        look.done();
        assert_eq!(look.stage(Stage::Post).state, StageState::Running);
    }
}

#[test]
fn what_comes_back_when_its_post_had_passed_has_no_hooks() {
    for state in [StageState::Succeeded, StageState::Ignored, StageState::Skipped] {
        let mut look = let_in_and_replaced(Strategy::RollingUpdate);
        let past = &mut look.object.status.as_mut().expect("it is under way").history[0].rollout;
        let post = json!({"stage": "Post", "state": state, "startTime": past.start_time});
        past.stages.push(serde_json::from_value(post).expect("it is a record"));
        comes_back(&mut look);
        assert_eq!((look.phase(), look.gate("new")), (Some(RolloutPhase::Complete), Some("done.4")), "{state:?}");
    }
}

#[test]
fn what_comes_back_runs_no_post_whose_author_nobody_has_checked() {
    let mut look = let_in_and_replaced(Strategy::RollingUpdate);
    (look.author_checked, look.object.metadata.generation) = (false, Some(7));
    comes_back(&mut look);
    assert_eq!((look.gate("new"), look.rollout().target.as_str()), (None, "newer"));
    assert_eq!(look.said(), ("False", "Refused".to_owned()));
    // Nor if whoever let it in was stopped before that was recorded.
    look.sets[1].gate = Some("open.4".to_owned());
    look.done();
    assert_eq!(look.rollout().target, "newer");
}

#[test]
fn while_a_new_template_waits_nothing_is_called_complete_and_when_it_is_taken_back_it_is() {
    let waits: [fn(&mut Look); 2] = [|look| look.deployment().paused = true, |look| look.gate_is_there = false];
    for wait in waits {
        let mut look = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
        assert_eq!(look.condition("Complete").0, "True", "that of the version before");
        wait(&mut look);
        look.done();
        assert_eq!(look.condition("Complete").0, "False");
        assert_eq!(look.rollout().target, "old", "nothing is begun");
        look.write_template("old");
        look.sets.pop();
        look.done();
        assert_eq!(look.condition("Complete").0, "True");
    }
}
