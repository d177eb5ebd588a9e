//! What is let in and out, from pre to the end, for both strategies; and after a crash anywhere in between.

use boathook_api::deployment_lifecycle::{RolloutPhase, Stage, StageState};
use boathook_decide::deployment_lifecycle::{End, ReplicaSet, Strategy};
use serde_json::json;

use super::{Look, after, hook, set, told, words};

fn rolled_out(look: &mut Look) {
    (look.sets[0].replicas, look.sets[0].status_replicas) = (0, 0);
    let target = look.sets.last_mut().expect("the target");
    (target.replicas, target.status_replicas) = (3, 3);
    let deployment = look.deployment();
    (deployment.updated_replicas, deployment.status_replicas, deployment.available_replicas) = (3, 3, 3);
}

#[test]
fn rolling_update_is_recorded_then_opened_then_drained() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry"), "post": hook("Retry")}));
    look.done();
    look.end(End::Succeeded);
    let decision = look.done();
    let opens = ["status", "web-new open.2", "web-old draining.2.hashnew", "BoathookLifecycle=Rolling"];
    assert_eq!(words(&decision), opens);
    assert_eq!(told(&decision), ["HookSucceeded"]);
    assert_eq!((look.phase(), look.stage(Stage::Pre).state), (Some(RolloutPhase::Rolling), StageState::Succeeded));

    assert!(words(&look.done()).is_empty(), "the Deployment controller rolls");
    rolled_out(&mut look);
    assert_eq!(words(&look.done()), ["status", "create pod", "BoathookLifecycle=Post", "status"]);
    look.end(End::Succeeded);
    let decision = look.done();
    let completes = ["BoathookLifecycle=Complete", "status", "web-new done.2", "web-old -"];
    assert_eq!(words(&decision)[..4], completes);
    assert_eq!(words(&decision)[4..], ["delete pod", "delete pod"], "succeeded ones go, once that is recorded");
    assert_eq!(look.condition("Complete"), ("True".to_owned(), "Complete".to_owned()));
    assert_eq!(look.rollout().revision.as_deref(), Some("2"));
    look.hook_pods.clear();
    assert!(words(&look.done()).is_empty(), "and nothing more is written");
}

#[test]
fn a_recreate_is_recorded_as_mid_before_anything_drains_and_mid_runs_when_nothing_does() {
    let spec = json!({"pre": hook("Retry"), "mid": hook("Retry")});
    let mut look = Look::at_pre(Strategy::Recreate, spec);
    assert_eq!(look.rollout().revision, None);
    look.done();
    look.end(End::Succeeded);
    let drains = ["status", "web-old draining.t.new", "BoathookLifecycle=Draining"];
    assert_eq!(words(&look.done()), drains);
    assert_eq!(look.phase(), Some(RolloutPhase::Mid));

    (look.sets[0].replicas, look.sets[0].status_replicas) = (0, 0);
    look.live_pods = vec!["web-old-1".to_owned()];
    look.sets.push(set("new", 2, 0, None));
    look.done();
    assert_eq!((look.hook_pods.len(), look.said().1.as_str()), (1, "Draining"), "a pod that still ends is waited for");
    look.live_pods.clear();
    look.sets[0].status_replicas = 1;
    look.done();
    assert_eq!(look.hook_pods.len(), 1, "one that is counted is waited for");
    look.sets[0].status_replicas = 0;
    look.done();
    assert_eq!((look.hook_pods.len(), look.said().1.as_str()), (2, "Mid"));
    assert_eq!(look.rollout().revision.as_deref(), Some("2"), "by now there is one");
    look.end(End::Succeeded);
    assert_eq!(words(&look.done())[..2], ["status", "web-new open.2"]);
}

#[test]
fn mid_waits_for_the_new_replica_set_and_wakes_who_makes_it() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    look.old_version_ends();
    let decision = look.done();
    assert!(look.hook_pods.is_empty());
    assert_eq!(after(&decision, look.now).map(|again| again.as_secs()), Some(3));
    look.now += 3;
    assert_eq!(words(&look.done()), ["BoathookLifecycle=Draining"], "woken");
}

#[test]
fn an_old_one_that_drains_for_the_template_need_not_be_marked_again_for_its_replica_set() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    assert_eq!(look.gate("old"), Some("draining.t.new"));
    look.sets.push(set("new", 2, 0, None));
    look.done();
    assert_eq!(look.gate("old"), Some("draining.t.new"));
}

#[test]
fn complete_is_when_every_count_is_as_wanted_and_the_generation_is_seen() {
    for spoil in 0..4 {
        let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
        look.done();
        rolled_out(&mut look);
        let deployment = look.deployment();
        match spoil {
            0 => deployment.updated_replicas = 2,
            1 => deployment.status_replicas = 4,
            2 => deployment.available_replicas = 2,
            _ => deployment.generation += 1,
        }
        look.done();
        assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Rolling), 0), "{spoil}");
    }
}

#[test]
fn mark_without_its_record_is_revoked() {
    for forged in ["open.2", "done.2"] {
        let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Abort"), "post": hook("Retry")}));
        look.done();
        look.sets[1].gate = Some(forged.to_owned());
        look.done();
        assert_eq!((look.gate("new"), look.phase()), (None, Some(RolloutPhase::Pre)), "{forged} while pre runs");
        look.fail();
        look.done();
        look.sets[1].gate = Some(forged.to_owned());
        look.done();
        assert_eq!((look.gate("new"), look.phase()), (None, Some(RolloutPhase::Aborted)), "{forged} after the veto");

        let mut unseen = Look::new_template(Strategy::RollingUpdate, json!({"pre": hook("Abort")}));
        unseen.sets[1].gate = Some(forged.to_owned());
        unseen.done();
        assert_eq!(unseen.gate("new"), None, "{forged} before the rollout is recorded");
        unseen.done();
        unseen.done();
        assert_eq!((unseen.phase(), unseen.hook_pods.len()), (Some(RolloutPhase::Pre), 1));
    }
}

#[test]
fn mark_is_written_after_its_record() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({}));
    let decision = look.done();
    assert_eq!(words(&decision)[..2], ["status", "web-new open.2"]);
    rolled_out(&mut look);
    let decision = words(&look.done());
    let place = |word: &str| decision.iter().position(|one| one == word).expect("it is written");
    assert!(place("status") < place("web-new done.2"), "{decision:?}");

    // The controller stopped between the two.
    look.sets[1].gate = Some("open.2".to_owned());
    assert_eq!(words(&look.done()), ["web-new done.2"]);
}

#[test]
fn done_target_without_any_record_is_idle() {
    let mut forgotten = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    forgotten.object.status.as_mut().unwrap().rollout = None;
    forgotten.done();
    forgotten.done();
    assert_eq!((forgotten.phase(), forgotten.hook_pods.len()), (Some(RolloutPhase::Complete), 0));
    assert_eq!(forgotten.gate("old"), Some("done.1"));
}

#[test]
fn a_mark_for_another_revision_opens_nothing() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.sets[1].gate = Some("open.1".to_owned());
    look.done();
    assert_eq!(look.phase(), Some(RolloutPhase::Pre));
}

#[test]
fn a_label_that_somebody_took_away_is_written_again() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
    look.done();
    assert_eq!(look.gate("new"), Some("open.2"));
    look.sets[1].gate = None;
    look.done();
    assert_eq!((look.gate("new"), look.phase()), (Some("open.2"), Some(RolloutPhase::Rolling)));
}

#[test]
fn the_deployment_controller_is_woken_later_each_time() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
    look.done();
    assert_eq!(woken(&mut look, 180), [3, 6, 12, 24, 48, 96, 156]);
}

/// In which seconds from now on the Deployment controller is woken, and for nothing else.
fn woken(look: &mut Look, seconds: i64) -> Vec<i64> {
    let (from, mut woken) = (look.now, vec![]);
    for second in 1..seconds {
        look.now = from + second;
        let words = words(&look.done());
        assert!(words.is_empty() || words == ["BoathookLifecycle=Rolling"], "{words:?}");
        woken.extend((!words.is_empty()).then_some(second));
    }
    woken
}

/// It takes away old pods that are never ready, and forgets at once that this has failed: nobody else would ever tell it.
#[test]
fn who_may_be_waiting_for_pods_is_woken_too_and_rarely() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
    look.done();
    look.sets[0].available_replicas = 0;
    (look.sets[1].replicas, look.sets[1].status_replicas, look.sets[1].available_replicas) = (1, 1, 1);
    assert_eq!(woken(&mut look, 1_100), [15, 30, 60, 120, 240, 480, 780, 1080]);
    rolled_out(&mut look);
    look.done();
    look.end(End::Succeeded);
    look.done();
    look.hook_pods.clear();
    look.now += 100_000;
    assert!(words(&look.done()).is_empty(), "I12: what is as it should be is not touched any more");
}

#[test]
fn mid_waits_until_every_replica_set_is_seen_as_it_is_by_its_controller() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.sets[0].observed = false;
    look.done();
    assert!(look.hook_pods.is_empty(), "its controller may be making the pods that it was asked for before");
    look.sets[0].observed = true;
    look.done();
    assert_eq!(look.hook_pods.len(), 1);
}

#[test]
fn mid_waits_for_the_gate_without_which_the_new_version_would_run_beside_it() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.gate_is_there = false;
    assert!(look.done().again.is_some(), "nobody tells when it is there again");
    assert!(look.hook_pods.is_empty());
    look.gate_is_there = true;
    look.done();
    assert_eq!(look.hook_pods.len(), 1);
}

#[test]
fn which_pods_do_not_end_is_said_after_a_minute() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    (look.sets[0].replicas, look.sets[0].status_replicas) = (0, 0);
    let message = |look: &mut Look| look.deployment().ours.clone().expect("something is said").message;
    look.done();
    assert!(!message(&mut look).contains("web-old"));
    look.now += 60;
    look.done();
    assert!(message(&mut look).ends_with("; pods that still run: `web-old-1`, `web-old-2`, `web-old-3`"));
    look.live_pods = (1..=5).map(|number| format!("p{number}")).collect();
    look.done();
    assert!(message(&mut look).ends_with("; pods that still run: `p1`, `p2`, `p3` and 2 others"));
}

#[test]
fn mid_that_would_run_beside_pods_of_its_own_version_is_aborted_and_without_a_hook_it_is_let_in() {
    for (hooks, gate, failed) in
        [(json!({"mid": hook("Retry")}), None, "True"), (json!({"post": hook("Retry")}), Some("open.2"), "False")]
    {
        let mut look = Look::at_pre(Strategy::Recreate, hooks);
        look.sets.push(set("new", 2, 1, None));
        look.done();
        look.done();
        assert_eq!((look.gate("new"), look.condition("Failed").0.as_str()), (gate, failed));
    }
}

#[test]
fn how_mid_ended_is_judged_whatever_runs_by_then() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Abort")}));
    look.done();
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.done();
    look.live_pods = vec!["by-hand".to_owned()];
    look.fail();
    look.done();
    assert_eq!(look.condition("Failed").0, "True");
}

#[test]
fn who_has_stopped_to_drain_is_woken() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    look.now += 3;
    assert_eq!(words(&look.done()), ["BoathookLifecycle=Draining"]);
    look.sets[0].replicas = 0;
    look.now += 60;
    look.live_pods.clear();
    assert!(words(&look.done()).is_empty(), "while its pods end, there is nothing to be woken for");

    let mut adopted = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    adopted.sets.push(set("before", 0, 1, Some("draining.1.hashold")));
    adopted.done();
    adopted.now += 60;
    assert_eq!(words(&adopted.done()), ["BoathookLifecycle=Complete"]);
}

#[test]
fn deployment_controller_is_woken_though_the_wall_clock_was_stepped_back() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Retry")}));
    look.done();
    look.now -= 3_600;
    assert_eq!(words(&look.done()), ["BoathookLifecycle=Draining"]);
    look.now += 2;
    assert!(words(&look.done()).is_empty(), "once");
    look.now += 1;
    assert_eq!(words(&look.done()), ["BoathookLifecycle=Draining"]);
}

#[test]
fn who_does_not_let_the_first_pod_in_is_woken_though_some_are_missing() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
    look.done();
    look.sets[0].available_replicas = 2;
    look.done();
    look.now += 3;
    assert_eq!(words(&look.done()), ["BoathookLifecycle=Rolling"]);
}

#[test]
fn who_gave_up_while_pods_were_missing_is_woken_though_its_count_says_that_they_still_are() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
    look.done();
    (look.sets[1].replicas, look.sets[1].status_replicas, look.sets[1].available_replicas) = (1, 1, 0);
    look.sets[0].available_replicas = 2;
    look.deployment().available_replicas = 2;
    look.now += 3;
    assert!(words(&look.done()).is_empty(), "it waits for pods, as it should");
    (look.sets[0].available_replicas, look.sets[1].available_replicas) = (3, 1);
    assert_eq!(words(&look.done()), ["BoathookLifecycle=Rolling"]);
}

#[test]
fn of_two_replica_sets_of_one_template_the_older_one_is_meant_as_kubernetes_has_it() {
    let mut look = Look::at_pre(Strategy::RollingUpdate, json!({"post": hook("Retry")}));
    let twin = set("new", 2, 0, None);
    look.sets.push(ReplicaSet {
        name: "web-twin".to_owned(),
        uid: "twin-uid".to_owned(),
        created: super::at(9),
        ..twin
    });
    assert_eq!(words(&look.done())[..2], ["status", "web-new open.2"]);
}

#[test]
fn pods_of_another_version_that_somebody_made_when_all_was_done_are_let_go() {
    let mut look = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.sets.push(set("older", 0, 1, None));
    look.done();
    assert_eq!(look.gate("older"), Some("draining.1.hashold"));
    let older = &mut look.sets[1];
    (older.replicas, older.status_replicas) = (0, 0);
    look.done();
    assert_eq!(look.gate("older"), None);
}

#[test]
fn mid_waits_for_pods_of_its_own_version_that_are_going() {
    let mut look = Look::at_pre(Strategy::Recreate, json!({"mid": hook("Abort")}));
    look.done();
    look.old_version_ends();
    look.sets.push(set("new", 2, 0, None));
    look.sets[1].status_replicas = 1;
    look.done();
    assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Mid), 0));
    // Scaled to 0 by a person, and the Deployment controller has not followed yet.
    (look.sets[1].replicas, look.deployment().replicas) = (3, 0);
    look.done();
    assert_eq!((look.phase(), look.hook_pods.len()), (Some(RolloutPhase::Mid), 0));
    (look.sets[1].replicas, look.sets[1].status_replicas) = (0, 0);
    look.done();
    assert_eq!(look.hook_pods.len(), 1);
}

#[test]
fn what_is_said_holds_for_hooks_that_were_edited_since_and_count_from_the_next_rollout_on() {
    let mut look = Look::idle(Strategy::RollingUpdate, json!({"pre": hook("Retry")}));
    look.object.metadata.generation = Some(2);
    assert_eq!(words(&look.done()), ["status"], "who waits for Complete asks for this generation");
    let conditions = look.object.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    assert!(conditions.len() >= 2 && conditions.iter().all(|one| one.observed_generation == Some(2)), "{conditions:?}");
    assert!(words(&look.done()).is_empty());
}
