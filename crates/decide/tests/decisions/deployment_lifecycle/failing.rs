//! Failures by policy, stage and strategy; and what an abort says.

use boathook_api::deployment_lifecycle::{RolloutPhase, Stage, StageState};
use boathook_decide::deployment_lifecycle::{Decision, Effect, End, Strategy};
use serde_json::{Value, json};

use super::{Look, at, hook, set, told, words};

/// The hook of this stage runs, and no other stage has one.
fn running(strategy: Strategy, stage: Stage, policy: &str) -> Look {
    let mut spec = json!({});
    spec[stage.as_str()] = hook(policy);
    let mut look = Look::at_pre(strategy, spec);
    look.done();
    if strategy == Strategy::Recreate && stage != Stage::Pre {
        look.old_version_ends();
        look.sets.push(set("new", 2, 0, None));
        look.done();
    }
    if stage == Stage::Post {
        (look.sets[0].replicas, look.sets[0].status_replicas) = (0, 0);
        (look.sets[1].replicas, look.sets[1].status_replicas) = (3, 3);
        look.deployment().updated_replicas = 3;
        look.done();
        look.done();
    }
    assert_eq!(look.stage(stage).state, StageState::Running);
    look
}

#[test]
fn every_policy_at_every_stage_for_both_strategies() {
    use Strategy::{Recreate, RollingUpdate};
    for (strategy, stage) in [
        (RollingUpdate, Stage::Pre),
        (RollingUpdate, Stage::Post),
        (Recreate, Stage::Pre),
        (Recreate, Stage::Mid),
        (Recreate, Stage::Post),
    ] {
        for policy in ["Abort", "Ignore", "Retry"] {
            if (strategy, stage, policy) == (RollingUpdate, Stage::Post, "Abort") {
                // Refused from the start.
                continue;
            }
            let mut look = running(strategy, stage, policy);
            match policy {
                "Retry" => look.end(End::Exhausted),
                _ => look.fail(),
            }
            let decision = look.done();
            let goes_on = policy == "Ignore" || (strategy == RollingUpdate && stage == Stage::Post);
            let state = if goes_on { StageState::Ignored } else { StageState::Failed };
            assert_eq!(look.stage(stage).state, state, "{strategy:?} {stage} {policy}");
            assert_eq!(look.phase() == Some(RolloutPhase::Aborted), !goes_on, "{strategy:?} {stage} {policy}");
            assert_eq!(told(&decision)[0], "HookRunFailed", "every failure is told");
        }
    }
}

#[test]
fn an_abort_says_so_on_the_lifecycle_and_makes_rollout_status_fail_at_once() {
    for (strategy, stage) in [(Strategy::RollingUpdate, Stage::Pre), (Strategy::Recreate, Stage::Mid)] {
        let mut look = running(strategy, stage, "Abort");
        look.fail();
        let decision = look.done();
        assert_eq!(told(&decision), ["HookRunFailed", "Aborted"]);
        assert_eq!(look.condition("Failed"), ("True".to_owned(), "Aborted".to_owned()));
        assert_eq!(look.condition("Complete"), ("False".to_owned(), "Aborted".to_owned()));
        let progressing = look.deployment().progressing.clone().expect("as it is written here");
        assert_eq!((progressing.status, progressing.reason.as_str()), ("False", "ProgressDeadlineExceeded"));
        assert!(progressing.message.starts_with("boathook: "), "{}", progressing.message);
        assert!(words(&look.done()).is_empty());
        look.deployment().progressing.as_mut().expect("as it is written here").message = "by another".to_owned();
        assert_eq!(words(&look.done()), ["Progressing=ProgressDeadlineExceeded"], "asserted again");
        assert_eq!(look.gate("new"), None);
    }
}

#[test]
fn progressing_is_left_alone_after_post_with_no_replicas_and_before_the_generation_is_seen() {
    let mut post = running(Strategy::Recreate, Stage::Post, "Abort");
    post.fail();
    post.done();
    assert_eq!((post.phase(), post.deployment().progressing.clone()), (Some(RolloutPhase::Aborted), None));
    let mut none = running(Strategy::RollingUpdate, Stage::Pre, "Abort");
    none.deployment().replicas = 0;
    none.fail();
    none.done();
    assert_eq!((none.phase(), none.deployment().progressing.clone()), (Some(RolloutPhase::Aborted), None));
    let mut unseen = running(Strategy::RollingUpdate, Stage::Pre, "Abort");
    unseen.deployment().generation += 1;
    unseen.fail();
    unseen.done();
    assert_eq!((unseen.phase(), unseen.deployment().progressing.clone()), (Some(RolloutPhase::Aborted), None));
}

#[test]
fn after_an_abort_a_mended_template_is_rolled_out() {
    let mut look = running(Strategy::RollingUpdate, Stage::Pre, "Abort");
    look.fail();
    look.done();
    look.write_template("mended");
    look.sets.push(set("mended", 3, 0, None));
    look.done();
    assert_eq!((look.phase(), look.rollout().target.as_str()), (Some(RolloutPhase::Pre), "mended"));
    assert_eq!(look.condition("Failed").0, "False");
}

#[test]
fn the_failed_pods_of_the_last_rollouts_stay() {
    let mut look = running(Strategy::RollingUpdate, Stage::Pre, "Abort");
    look.fail();
    look.done();
    assert!(look.hook_pods[0].gone_by.is_none());
    let mut of_long_ago = look.hook_pods[0].clone();
    (of_long_ago.uid, of_long_ago.rollout) = ("long-ago".to_owned(), "1".to_owned());
    look.hook_pods.push(of_long_ago);
    look.done();
    assert_eq!(look.hook_pods.iter().map(|pod| pod.gone_by.is_some()).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn the_message_says_what_happened_last() {
    let mut look = running(Strategy::RollingUpdate, Stage::Pre, "Retry");
    look.hook_pods[0].log_tail = Some("no such table".to_owned());
    look.hook_pods[0].failures = 4;
    look.end(End::Exhausted);
    look.done();
    let record = look.stage(Stage::Pre);
    assert!(record.message.as_ref().expect("as it is written here").ends_with("it failed 4 times"), "{record:?}");
    assert_eq!(record.log_tail.as_deref(), Some("no such table"));
    assert_eq!(record.complete_time.as_ref().map(|time| time.0), Some(at(20)));
}

#[test]
fn last_lines_of_a_failed_hook_are_in_conditions_and_events() {
    let mut look = running(Strategy::RollingUpdate, Stage::Pre, "Abort");
    look.hook_pods[0].log_tail = Some("connected\nno such table\n".to_owned());
    look.fail();
    let decision = look.done();
    let why = "the hook ended with exit code 1: connected | no such table";
    let said = [look.message("Failed"), look.message("Complete")];
    assert_eq!(said, [format!("pre failed: {why}"), format!("pre failed: {why}")]);
    let events = notes(&decision);
    assert!(events.len() == 2 && events.iter().all(|note| note.ends_with(why)), "{events:?}");
    let progressing = look.deployment().progressing.clone().expect("as it is written here").message;
    assert!(progressing.ends_with(why), "{progressing}");
    assert_eq!(
        look.stage(Stage::Pre).message.as_deref(),
        Some("the hook ended with exit code 1"),
        "the tail is beside it"
    );

    let mut again = running(Strategy::RollingUpdate, Stage::Pre, "Retry");
    (again.hook_pods[0].failures, again.hook_pods[0].log_tail) = (1, Some("no such table".to_owned()));
    assert_eq!(notes(&again.done()), ["pre failed once: the kubelet retries it: no such table"]);
}

#[test]
fn output_of_a_hook_that_says_none_is_kept_nowhere() {
    for end in [Some(End::Failed("exit code 1".to_owned())), Some(End::Exhausted), None] {
        let mut quiet = hook("Retry");
        quiet["execNewPod"]["output"] = json!("None");
        let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": quiet}));
        look.done();
        (look.hook_pods[0].failures, look.hook_pods[0].log_tail) = (1, Some("the password is 7".to_owned()));
        end.into_iter().for_each(|end| look.end(end));
        let decision = look.done();
        assert!(!notes(&decision).is_empty() && look.stage(Stage::Pre).log_tail.is_none());
        let status = serde_json::to_string(&look.object.status).expect("it is a status");
        assert!(!status.contains("password") && !format!("{decision:?}").contains("password"), "{status}");
    }
}

/// What its Events say.
fn notes(decision: &Decision) -> Vec<String> {
    let note = |effect: &Effect| match effect {
        Effect::Tell(report) => Some(report.note.clone()),
        _ => None,
    };
    decision.effects.iter().filter_map(note).collect()
}

#[test]
fn a_container_that_the_template_has_not_is_a_failure_that_names_it() {
    let mut unknown: Value = hook("Abort");
    unknown["execNewPod"]["containerName"] = json!("wbe");
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": unknown}));
    look.done();
    assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Aborted), 0));
    let message = look.stage(Stage::Pre).message.clone().expect("as it is written here");
    assert!(message.contains("no container `wbe`"), "{message}");
}

/// Every stage passes but that of this container, under this policy.
fn with_a_mistake(strategy: Strategy, at: Stage, policy: &str) -> Look {
    let mut spec = json!({"pre": hook("Abort"), "post": hook("Retry")});
    if strategy == Strategy::Recreate {
        spec["mid"] = hook("Abort");
    }
    spec[at.as_str()] = hook(policy);
    spec[at.as_str()]["execNewPod"]["containerName"] = json!("wbe");
    let mut look = Look::at_pre(strategy, spec);
    look.done();
    look
}

#[test]
fn a_hook_of_a_later_stage_that_cannot_run_aborts_before_anything_is_touched() {
    for (at, policy) in [(Stage::Mid, "Retry"), (Stage::Mid, "Abort"), (Stage::Post, "Retry"), (Stage::Post, "Abort")] {
        let mut look = with_a_mistake(Strategy::Recreate, at, policy);
        assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Aborted), 0), "{at} {policy}");
        assert_eq!((look.gate("old"), look.sets[0].replicas), (None, 3), "the old version serves");
        let message = look.stage(at).message.clone().expect("as it is written here");
        assert!(message.contains("no container `wbe` (it has `web`)") && message.contains(at.as_str()), "{message}");
        let progressing = look.deployment().progressing.clone().expect("`kubectl rollout status` fails");
        assert!(progressing.message.contains("`wbe`"), "{}", progressing.message);
        assert!(words(&look.done()).is_empty());
    }
}

#[test]
fn one_that_cannot_run_and_would_be_ignored_is_so_at_its_stage() {
    for (strategy, at, policy) in [
        (Strategy::Recreate, Stage::Pre, "Ignore"),
        (Strategy::Recreate, Stage::Mid, "Ignore"),
        (Strategy::Recreate, Stage::Post, "Ignore"),
        (Strategy::RollingUpdate, Stage::Post, "Retry"),
    ] {
        let look = with_a_mistake(strategy, at, policy);
        assert_ne!(look.phase(), Some(RolloutPhase::Aborted), "{strategy:?} {at} {policy}");
        let begun = look.rollout().stage(at).map(|record| record.state);
        assert_eq!(begun, (at == Stage::Pre).then_some(StageState::Ignored), "{strategy:?} {at} {policy}");
    }
}

#[test]
fn without_a_deadline_and_when_all_is_rolled_out_progressing_is_left_alone() {
    let mut never = running(Strategy::RollingUpdate, Stage::Pre, "Abort");
    never.deployment().progress_deadline_seconds = i32::MAX;
    never.fail();
    never.done();
    assert_eq!((never.phase(), never.deployment().progressing.clone()), (Some(RolloutPhase::Aborted), None));
    assert!(words(&never.done()).is_empty());
    let mut complete = running(Strategy::RollingUpdate, Stage::Pre, "Abort");
    complete.deployment().updated_replicas = 3;
    complete.fail();
    complete.done();
    assert_eq!((complete.phase(), complete.deployment().progressing.clone()), (Some(RolloutPhase::Aborted), None));
}

#[test]
fn a_failure_that_is_ignored_is_written_and_told_before_anything_is_let_in() {
    for (strategy, stage, after) in [
        (Strategy::RollingUpdate, Stage::Pre, "web-new open.2"),
        (Strategy::Recreate, Stage::Mid, "web-new open.2"),
        (Strategy::Recreate, Stage::Post, "web-new done.2"),
    ] {
        let mut look = running(strategy, stage, "Ignore");
        look.fail();
        let decision = look.decide();
        let told = decision.effects.iter().position(|effect| matches!(effect, Effect::Tell(_))).expect("it is told");
        let marked = decision.effects.iter().position(|effect| matches!(effect, Effect::MarkReplicaSet { .. }));
        assert!(marked.is_some_and(|marked| told < marked), "{strategy:?} {stage}: {:?}", words(&decision));
        let words = words(&decision);
        let marked = words.iter().position(|word| word == after);
        assert!(words[0] == "status" && marked.is_some(), "{words:?}");
    }
}
