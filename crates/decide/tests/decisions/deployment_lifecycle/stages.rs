//! One stage: its pod is recorded and made, followed, made again if it was taken away, and judged.

use boathook_api::deployment_lifecycle::{RolloutPhase, Stage, StageState};
use boathook_decide::deployment_lifecycle::{Effect, End, Strategy};
use serde_json::json;

use super::{DEADLINE, Look, at, hook, set, told, words};

fn running(policy: &str) -> Look {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook(policy)}));
    look.done();
    look
}

#[test]
fn a_stage_is_recorded_before_its_pod_is_made_and_after_a_crash_it_is_the_same_pod() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    let decision = look.done();
    assert_eq!(words(&decision), ["status", "create pod"]);
    assert_eq!(decision.again, Some(at(20 + DEADLINE)));
    let made = look.hook_pods.pop().expect("as it is written here");
    assert_eq!(look.stage(Stage::Pre).pod.as_ref(), Some(&made.name));
    assert_eq!(words(&look.done()), ["create pod"]);
    assert_eq!(look.hook_pods[0].name, made.name);
    look.done();
    assert_eq!(look.stage(Stage::Pre).pod_uid, Some(made.uid));
}

#[test]
fn a_stage_without_a_hook_has_passed() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
    look.done();
    assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Rolling), 0));
}

#[test]
fn a_hook_that_is_tried_again_is_counted_and_told_of_each_time() {
    let mut look = running("Retry");
    look.hook_pods[0].failures = 2;
    look.hook_pods[0].last_failure = Some("the hook ended with exit code 3".to_owned());
    assert_eq!(told(&look.done()), ["HookRunFailed"]);
    let record = look.stage(Stage::Pre);
    assert_eq!((record.failures, record.state), (2, StageState::Running));
    let wanted = "pre failed 2 times (the hook ended with exit code 3): the kubelet retries it";
    assert_eq!(record.message.as_deref(), Some(wanted));
    assert!(told(&look.done()).is_empty());
}

#[test]
fn what_a_pod_waits_for_is_shown() {
    let mut look = running("Retry");
    look.hook_pods[0].waiting = Some("the kubelet cannot pull image `x`".to_owned());
    look.done();
    assert_eq!(look.stage(Stage::Pre).message.as_deref(), Some("the kubelet cannot pull image `x`"));
    assert!(words(&look.done()).is_empty());
}

#[test]
fn a_pod_that_was_taken_away_is_made_again_each_time_later_with_the_time_that_is_left() {
    for evicted in [true, false] {
        let mut look = running("Abort");
        look.done();
        for (not_before, pods) in [(20, 2), (22, 3), (26, 4)] {
            match evicted {
                true => look.end(End::Lost("Evicted".to_owned())),
                false => look.hook_pods.clear(),
            }
            look.now = not_before - 1;
            if look.now >= 20 {
                assert!(words(&look.done()).iter().all(|word| word != "create pod"));
            }
            look.now = not_before;
            let decision = look.done();
            assert_eq!(told(&decision), ["HookPodLost"]);
            assert_eq!(look.stage(Stage::Pre).pods, pods);
            assert_eq!(decision.again, Some(at(20 + DEADLINE)), "the time is that of the stage");
            look.done();
        }
    }
}

#[test]
fn a_pod_whose_sidecar_never_ends_is_deleted_once_its_success_is_recorded() {
    let mut look = running("Retry");
    look.hook_pods[0].end = Some(End::Succeeded);
    let words = words(&look.decide());
    assert_eq!(words[..4], ["status", "delete pod", "status", "web-new open.2"]);
}

#[test]
fn a_failure_is_recorded_before_a_pod_with_a_sidecar_is_deleted() {
    for policy in ["Abort", "Ignore"] {
        let mut look = running(policy);
        look.hook_pods[0].end = Some(End::Failed("exit code 1".to_owned()));
        assert_eq!(words(&look.decide())[..2], ["status", "delete pod"], "{policy}");
    }
}

#[test]
fn the_deadline_is_by_our_own_clock_and_fresh_for_each_stage() {
    let mut look = running("Retry");
    look.now = 20 + DEADLINE - 1;
    look.done();
    assert_eq!(look.phase(), Some(RolloutPhase::Pre));
    look.now += 1;
    let decision = look.done();
    assert_eq!(look.phase(), Some(RolloutPhase::Aborted), "though its pod never started");
    assert!(words(&decision).contains(&"delete pod".to_owned()));
    let message = look.stage(Stage::Pre).message.clone().expect("as it is written here");
    assert!(message.contains("within 100 s"), "{message}");

    let mut look = Look::at_pre(Strategy::Recreate, json!({"pre": hook("Retry"), "mid": hook("Retry")}));
    look.done();
    look.end(End::Succeeded);
    look.now = 20 + DEADLINE - 1;
    look.done();
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.now += 50;
    look.done();
    look.now += DEADLINE - 1;
    look.done();
    assert_eq!(look.phase(), Some(RolloutPhase::Mid));
}

#[test]
fn step_of_the_wall_clock_moves_no_deadline_of_a_stage() {
    for step in [-3_600, 3_600] {
        let mut look = running("Retry");
        look.done();
        look.starts = [(20, 20 + step)].into();
        look.now = 20 + step + DEADLINE - 1;
        assert_eq!(look.done().again, Some(at(20 + step + DEADLINE)));
        look.hook_pods.clear();
        assert_eq!(told(&look.done()), ["HookPodLost"], "its pod is replaced at once");
        assert_eq!(look.phase(), Some(RolloutPhase::Pre));
        look.now += 1;
        look.done();
        assert_eq!(look.phase(), Some(RolloutPhase::Aborted));
    }
}

#[test]
fn a_pod_that_is_gone_when_the_time_is_over_is_not_made_again() {
    let mut look = running("Retry");
    look.done();
    look.hook_pods.clear();
    look.now = 20 + DEADLINE;
    look.done();
    assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Aborted), 0));
}

#[test]
fn the_pod_of_a_recreates_pre_is_owned_by_the_replica_set_once_there_is_one() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"pre": hook("Retry")}));
    look.done();
    assert!(look.hook_pods[0].owned_by_deployment);
    look.sets.push(set("new", 2, 0, None));
    assert!(words(&look.done()).contains(&"own by web-new".to_owned()));
    assert!(words(&look.done()).is_empty());
}

#[test]
fn one_that_failed_before_there_was_a_replica_set_is_owned_by_it_too() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"pre": hook("Ignore"), "mid": hook("Retry")}));
    look.done();
    look.fail();
    look.done();
    assert_eq!((look.phase(), look.hook_pods[0].owned_by_deployment), (Some(RolloutPhase::Mid), true));
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.done();
    assert!(!look.hook_pods[0].owned_by_deployment, "it stays, and goes with its version");
}

#[test]
fn a_pod_that_came_late_from_whoever_led_before_is_ended_and_nothing_passes_beside_it() {
    for ends in [false, true] {
        let mut look = running("Retry");
        look.done();
        let mut stray = look.hook_pods[0].clone();
        (stray.name, stray.uid) = ("web-pre-stray".to_owned(), "stray".to_owned());
        if ends {
            look.end(End::Succeeded);
        }
        look.hook_pods.push(stray);
        look.done();
        let told_to_end: Vec<_> = look.hook_pods.iter().map(|pod| pod.gone_by.is_some()).collect();
        assert_eq!(told_to_end, [false, true], "its own stays");
        look.done();
        assert_eq!((look.phase(), look.gate("new")), (Some(RolloutPhase::Pre), None));
        look.hook_pods.pop();
        look.hook_pods[0].end = Some(End::Succeeded);
        look.done();
        assert_eq!(look.gate("new"), Some("open.2"));
    }
}

#[test]
fn a_pod_that_is_lost_again_and_again_keeps_nobody_waiting_past_the_time_of_its_stage() {
    let mut look = running("Abort");
    look.done();
    for not_before in [20, 22, 26, 34, 50, 82] {
        look.end(End::Lost("Evicted".to_owned()));
        look.now = not_before;
        look.done();
    }
    assert_eq!(look.stage(Stage::Pre).pods, 7);
    look.end(End::Lost("Evicted".to_owned()));
    assert_eq!(look.done().again, Some(at(20 + DEADLINE)), "the next one would come later than that");
}

#[test]
fn what_a_hook_wrote_is_kept_when_the_next_time_it_cannot_be_read() {
    let mut look = running("Retry");
    (look.hook_pods[0].failures, look.hook_pods[0].log_tail) = (1, Some("no such table".to_owned()));
    look.done();
    (look.hook_pods[0].failures, look.hook_pods[0].log_tail) = (2, None);
    look.done();
    let record = look.stage(Stage::Pre);
    assert_eq!((record.failures, record.log_tail.as_deref()), (2, Some("no such table")));
}

#[test]
fn what_a_pod_waited_for_to_the_end_is_said_though_its_end_does_not_tell() {
    let mut look = running("Retry");
    look.hook_pods[0].waiting = Some("the kubelet cannot pull image `x`".to_owned());
    look.done();
    look.hook_pods[0].waiting = None;
    let mut late = look.clone();
    late.end(End::Exhausted);
    late.done();
    let message = late.stage(Stage::Pre).message.clone().expect("as it is written here");
    assert!(message.ends_with("last seen: the kubelet cannot pull image `x`"), "{message}");

    // It came in the end, and what it started never ended.
    look.hook_pods[0].runs = true;
    look.done();
    assert_eq!(look.stage(Stage::Pre).message, None);
    look.now = 20 + DEADLINE;
    look.done();
    let message = look.stage(Stage::Pre).message.clone().expect("as it is written here");
    assert!(!message.contains("image"), "{message}");
}

#[test]
fn a_pod_that_cannot_be_made_is_told_of_once_and_tried_again_until_the_time_is_over() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    let refuse = |look: &mut Look| {
        look.done();
        look.hook_pods.clear();
        look.refused = Some("exceeded quota".to_owned());
        let decision = look.done();
        look.refused = None;
        decision
    };
    let decision = refuse(&mut look);
    assert_eq!(told(&decision), ["HookPodRefused"]);
    assert_eq!((words(&decision), decision.again), (vec!["status".to_owned()], Some(at(22))));
    let message = look.stage(Stage::Pre).message.clone();
    assert_eq!(message.as_deref(), Some("failed to create the hook pod: exceeded quota"));
    look.now = 60;
    let decision = refuse(&mut look);
    assert!(told(&decision).is_empty(), "the same again");
    assert_eq!(decision.again, Some(at(70)), "less often");

    let mut made = look.clone();
    made.done();
    made.done();
    assert_eq!((made.hook_pods.len(), made.stage(Stage::Pre).message.clone()), (1, None));

    look.now = 20 + DEADLINE;
    assert_eq!(told(&look.done()), ["HookRunFailed", "Aborted"]);
    let message = look.stage(Stage::Pre).message.clone().expect("as it is written here");
    assert!(
        message.contains("within 100 s") && message.ends_with("failed to create the hook pod: exceeded quota"),
        "{message}"
    );
}

#[test]
fn what_has_happened_is_told_right_after_it_was_written_down() {
    let mut look = running("Retry");
    look.hook_pods[0].end = Some(End::Succeeded);
    let effects = look.decide().effects;
    let told =
        effects.iter().position(|effect| matches!(effect, Effect::Tell(report) if report.reason == "HookSucceeded"));
    assert!(matches!(effects[0], Effect::WriteStatus(_)), "{effects:?}");
    assert_eq!(told, Some(1), "before what may fail: {effects:?}");
}

#[test]
fn each_pod_of_a_stage_has_its_first_failure_told_and_the_stage_counts_them_all() {
    let mut look = running("Retry");
    look.hook_pods[0].failures = 2;
    look.done();
    look.hook_pods[0].failures = 3;
    look.end(End::Lost("Evicted".to_owned()));
    look.now = 21;
    assert_eq!(told(&look.done()), ["HookPodLost"]);
    look.hook_pods[1].failures = 1;
    let decision = look.done();
    assert_eq!(told(&decision), ["HookRunFailed"]);
    assert_eq!((look.stage(Stage::Pre).failures, look.stage(Stage::Pre).pods), (4, 2));
    assert!(told(&look.done()).is_empty());
    look.now = 20 + DEADLINE;
    look.done();
    let message = look.stage(Stage::Pre).message.clone().expect("as it is written here");
    assert!(message.ends_with("it failed 4 times"), "{message}");
}

#[test]
fn a_hook_that_runs_is_looked_at_again_when_its_time_is_over() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.done();
    look.now += 40;
    let decision = look.done();
    assert_eq!(super::after(&decision, look.now).map(|again| again.as_secs()), Some(DEADLINE - 40));
}

#[test]
fn a_pod_that_should_have_gone_is_named_with_the_way_out() {
    let mut look = running("Ignore");
    look.now += super::DEADLINE;
    look.done();
    let pod = look.hook_pods[0].name.clone();
    assert!(look.hook_pods[0].gone_by.is_some() && look.hook_pods[0].live);
    look.done();
    assert!(!look.deployment().ours.clone().expect("something is said").message.contains(&pod));
    look.now += 30 + 60;
    look.done();
    let message = look.deployment().ours.clone().expect("something is said").message;
    assert!(message.contains(&format!("`kubectl delete pod {pod} -n shop --force`")), "{message}");
}
