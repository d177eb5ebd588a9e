//! Whether it is application-consistent: only when that is known to be true.

use boathook_api::{
    Action, PodNotification,
    application_snapshot::{Consistency, Phase},
    hook_action::HookPolicy,
    pod_notification::Executor,
    words::condition,
};
use boathook_decide::execution_hook::child_name;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::{Look, said, snapshot, user};
use crate::execution_hook::{ME, at, children};

/// Cut, and it is called no more than `Crash`, for this reason.
#[track_caller]
fn assert_crash(look: Look, reason: &str) {
    let look = look.done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), reason.to_owned()));
}

#[test]
fn what_was_frozen_and_still_is_when_the_cut_is_seen_is_application_consistent() {
    let look = Look::at_end(json!({}));
    assert_eq!(look.outcome(), (Phase::Complete, Some(Consistency::Application), String::new()));
    assert_eq!(said(&look.status(), condition::COMPLETE), "True Cut");
    assert_eq!(said(&look.status(), condition::FAILED), "nothing");
    assert_eq!(look.snapshots[0].consistency.as_deref(), Some("Application"));
}

#[test]
fn a_container_that_restarted_makes_it_a_crash() {
    let mut look = Look::at_cut(json!({}));
    look.containers[0].2 = "containerd://another".to_owned();
    assert_crash(look, "ContainerRestarted");
    let mut look = Look::at_cut(json!({}));
    look.containers.clear();
    assert_crash(look, "ContainerRestarted");
    let mut look = Look::at_cut(json!({}));
    let status = look.hooks[0].status.as_mut().expect("it is frozen");
    status.container_execution_hook_statuses[0].container_id = None;
    assert_crash(look, "ContainerRestarted");
}

#[test]
fn a_new_pod_makes_it_a_crash() {
    let mut look = Look::at_cut(json!({}));
    look.claims[0].pods.push(user(1));
    assert_crash(look, "NewPod");
    // Also one that does not run yet, and one that did not run when the others were frozen.
    let mut look = Look::at_cut(json!({}));
    look.claims[0].pods.push(user(1));
    look.claims[0].pods[1].running = false;
    assert_crash(look, "NewPod");
    let mut look = Look::with(json!({}));
    look.claims[0].pods.push(user(1));
    look.claims[0].pods[1].running = false;
    let mut look = look.done();
    look.freeze_last();
    let mut look = look.done();
    look.freeze_last();
    let mut look = look.done();
    look.claims[0].pods[1].running = true;
    look.snapshots[0].cut = true;
    assert_crash(look, "NewPod");
}

/// Two pods mount the claim from the start, and the one hook runs only in the first.
fn one_of_two_pods_is_frozen(fields: Value, label: &str) -> Look {
    let info = json!({"executionHookTemplateName": "app", "podSelector": {"matchLabels": {"app": "db"}},
        "containerSelector": {"containerName": "main"}});
    let mut spec = json!({"executionHookInfos": [info]});
    for (name, value) in fields.as_object().expect("fields are an object") {
        spec[name] = value.clone();
    }
    let mut look = Look::with(spec);
    look.claims[0].pods = vec![user(0), user(1)];
    look.claims[0].pods[0].labels = [("app".to_owned(), "db".to_owned())].into();
    look.claims[0].pods[1].labels = [("app".to_owned(), label.to_owned())].into();
    let mut look = look.done().until(Phase::Cutting, Look::freeze_last);
    look.now = 8;
    look.snapshots[0].cut = true;
    look
}

#[test]
fn a_running_pod_without_hook_makes_a_crash() {
    let look = one_of_two_pods_is_frozen(json!({}), "web").done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), "PodNotFrozen".to_owned()));
    let message = look.status().failure.expect("it is a crash").message;
    assert!(message.contains("pod `db-1`") && message.contains("otherPods"), "{message}");
    // With ExecuteAll, to be selected is not enough: only pinned pods are frozen.
    assert_crash(one_of_two_pods_is_frozen(json!({}), "db"), "PodNotFrozen");
}

/// For example a Job's pod that wrote to the claim while the others were frozen.
#[test]
fn uncovered_pod_that_ended_before_the_cut_counts() {
    let ended = |fields: Value, at_the_cut: bool| {
        let mut look = one_of_two_pods_is_frozen(fields, "web");
        let pod = look.claims[0].pods.remove(1);
        if at_the_cut {
            look.claims[0].ended = vec![pod];
        }
        look
    };
    assert_crash(ended(json!({}), true), "PodNotFrozen");
    let gone = ended(json!({}), false).done();
    assert_eq!(gone.outcome(), (Phase::Thawing, Some(Consistency::Crash), "PodNotFrozen".to_owned()));
    let message = gone.status().failure.expect("it is a crash").message;
    assert!(message.contains("a deleted pod with UID `uid-1`"), "{message}");
    for (at_the_cut, named) in [(true, "db-1"), (false, "uid-1")] {
        let look = ended(json!({"otherPods": "Vouched"}), at_the_cut).done();
        assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
        assert_eq!(look.status().vouched_pods, [named]);
    }
}

#[test]
fn pod_that_came_and_ended_before_the_cut_counts() {
    let ended = |created: i64| {
        let mut look = Look::at_cut(json!({}));
        look.claims[0].ended = vec![user(1)];
        look.claims[0].ended[0].created = Some(at(created));
        look
    };
    assert_crash(ended(3), "NewPod");
    // The API server writes whole seconds.
    assert_crash(ended(0), "NewPod");
    let look = ended(-1).done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()), "it had ended before");
}

#[test]
fn execute_once_covers_the_pods_it_selects() {
    let once = |label: &str| {
        let mut look = one_of_two_pods_is_frozen(json!({}), label);
        let recorded = look.hooks[0].status.as_mut().and_then(|status| status.recorded.as_mut());
        recorded.expect("it is accepted").policy = HookPolicy::ExecuteOnce;
        look
    };
    let look = once("db").done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    assert!(look.status().vouched_pods.is_empty(), "the template's author vouches for it");
    assert_crash(once("web"), "PodNotFrozen");
}

#[test]
fn execute_once_covers_the_pods_it_names() {
    let list =
        json!([{"podName": "db-0", "containerNames": ["main"]}, {"podName": "db-1", "containerNames": ["main"]}]);
    for (named, outcome) in [(2, Consistency::Application), (1, Consistency::Crash)] {
        let list = &list.as_array().expect("it is a list")[..named];
        let info = json!({"executionHookTemplateName": "app", "podContainerNamesList": list});
        let mut look = Look::with(json!({"executionHookInfos": [info]}));
        look.policy = HookPolicy::ExecuteOnce;
        look.claims[0].pods = vec![user(0), user(1)];
        look.more_pods = 1;
        let mut look = look.done().until(Phase::Cutting, Look::freeze_last);
        (look.now, look.snapshots[0].cut) = (8, true);
        assert_eq!(look.done().status().consistency, Some(outcome), "{named} named");
    }
}

#[test]
fn a_vouched_pod_is_named_in_the_status() {
    let vouched = json!({"otherPods": "Vouched"});
    let look = one_of_two_pods_is_frozen(vouched.clone(), "web").done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    assert_eq!(look.status().vouched_pods, ["db-1"]);
    let status = look.thawed().status();
    let complete = status.conditions.iter().find(|one| one.type_ == condition::COMPLETE).expect("it is complete");
    assert!(complete.message.contains("otherPods: Vouched") && complete.message.contains("`db-1`"), "{complete:?}");
    // Vouched for or not, a pod that comes later counts.
    let mut look = one_of_two_pods_is_frozen(vouched.clone(), "web");
    look.claims[0].pods.push(user(2));
    assert_crash(look, "NewPod");
    let look = Look::at_end(vouched);
    assert!(look.status().vouched_pods.is_empty(), "nothing was relied on");
}

#[test]
fn a_container_that_nobody_knows_makes_it_a_crash() {
    let mut look = Look::at_cut(json!({}));
    for hook in &mut look.hooks {
        let records = &mut hook.status.as_mut().expect("it is frozen").container_execution_hook_statuses;
        records.iter_mut().for_each(|record| record.container_id = None);
    }
    look.containers.clear();
    assert_crash(look, "ContainerRestarted");
}

#[test]
fn what_was_frozen_only_after_the_cut_was_begun_without_it_is_a_crash() {
    let hooks = json!([{"executionHookTemplateName": "app"}]);
    let without_patience =
        json!({"onHookFailure": "CrashConsistent", "freezeTimeoutSeconds": 5, "executionHookInfos": hooks});
    let mut look = Look::at_freezing(without_patience);
    look.now = 10;
    let mut look = look.done();
    assert_eq!(look.phase(), Phase::Cutting);
    look.freeze_last();
    look.snapshots[0].cut = true;
    assert_crash(look, "FreezeTimedOut");
}

#[test]
fn a_claim_that_is_gone_makes_it_a_crash() {
    let mut look = Look::at_cut(json!({}));
    look.claims.clear();
    assert_crash(look, "ClaimNotFound");
}

#[test]
fn what_was_thawed_before_the_cut_was_seen_makes_it_a_crash() {
    // What each of them means is said of the hooks themselves.
    let mut look = Look::at_cut(json!({}));
    look.notifications[0].spec.undo_requested = true;
    assert_crash(look, "HookFailed");
    let mut look = Look::at_cut(json!({}));
    children::undo(&mut look.notifications[1], [7, 8], true);
    assert_crash(look, "HookFailed");
    let mut look = Look::at_cut(json!({}));
    look.notifications.remove(1);
    assert_crash(look, "HookFailed");
    let mut look = Look::at_cut(json!({}));
    look.hooks[1].metadata.deletion_timestamp = Some(Time(at(7)));
    assert_crash(look, "HookFailed");
    let mut look = Look::at_cut(json!({}));
    look.hooks.remove(0);
    assert_crash(look, "HookFailed");
    let mut look = Look::at_cut(json!({}));
    look.hooks[0].status.as_mut().expect("it is frozen").conditions.clear();
    assert_crash(look, "HookFailed");
    let mut look = Look::at_cut(json!({}));
    look.hooks[0].spec.thaw_requested = true;
    look.play(0);
    assert_crash(look, "HookFailed");
}

#[test]
fn what_somebody_else_thawed_in_the_same_container_makes_it_a_crash() {
    // Another hook froze it before, at second 0, or later, at 7; all is cut at 8.
    let beside = |claimed: i64, change: fn(&mut PodNotification)| {
        let mut look = Look::at_cut(json!({}));
        let mut other = look.notifications[0].clone();
        (other.metadata.name, other.metadata.owner_references) = (Some("other".to_owned()), None);
        other.status.as_mut().expect("it is frozen").pod_uid = Some("uid-0".to_owned());
        children::claim(&mut other, ME, claimed);
        children::end(&mut other, claimed, &[]);
        change(&mut other);
        // What is this snapshot's own is not somebody else's.
        look.beside = vec![other];
        look
    };
    for claimed in [0, 7] {
        assert_crash(beside(claimed, |other| children::undo(other, [7, 8], true)), "ThawedByAnother");
        assert_crash(beside(claimed, |other| children::undo(other, [7, 8], false)), "ThawedByAnother");
        assert_crash(beside(claimed, |other| other.spec.undo_requested = true), "ThawedByAnother");
    }
    assert_crash(beside(-30, |_| ()), "ThawedByAnother");
    let harmless: [fn(&mut PodNotification); 5] = [
        |_| (),
        |other| children::undo(other, [0, 1], true),
        |other| (other.spec.undo, other.spec.undo_requested) = (None, true),
        |other| {
            other.spec.undo_requested = true;
            other.status.as_mut().expect("it is frozen").containers[0].name = "side".to_owned();
        },
        |other| {
            other.spec.undo_requested = true;
            other.status.as_mut().expect("it is frozen").pod_uid = Some("uid-1".to_owned());
        },
    ];
    for change in harmless {
        let look = beside(0, change).done();
        assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    }
}

/// Cut at second 8, beside a PodNotification that ran in the frozen container from second 7 on.
fn beside_handler(change: impl Fn(&mut PodNotification)) -> Look {
    let mut look = Look::at_cut(json!({}));
    let mut other = look.notifications[0].clone();
    (other.metadata.name, other.metadata.owner_references) = (Some("other".to_owned()), None);
    other.spec.undo = None;
    other.status = None;
    other.status.get_or_insert_default().pod_uid = Some("uid-0".to_owned());
    children::claim(&mut other, ME, 7);
    children::end(&mut other, 7, &[]);
    change(&mut other);
    look.beside = vec![other];
    look
}

/// Every user who may create a PodNotification can write the owner reference, and derive the name.
#[test]
fn notification_named_for_a_hook_of_other_pods_is_not_its_own() {
    let mut look = beside_handler(|_| ());
    // Only the second hook runs in the pod of the handler.
    let status = look.hooks[0].status.as_mut().expect("it is accepted");
    status.container_execution_hook_statuses[0].pod_uid = "uid-1".to_owned();
    look.containers.push(("uid-1".to_owned(), "main".to_owned(), "containerd://main".to_owned()));
    let first = look.hooks[0].clone();
    let named_for = |notification: &mut PodNotification, pod: &str| {
        notification.metadata.owner_references = first.controller_owner_ref(&()).map(|owner| vec![owner]);
        notification.metadata.name = Some(child_name(&first, pod));
        notification.spec.pod_uid = Some(pod.to_owned());
    };
    let of_first = |child: &&mut PodNotification| child.name_any() == child_name(&first, "uid-0");
    named_for(look.notifications.iter_mut().find(of_first).expect("it is frozen"), "uid-1");
    named_for(&mut look.beside[0], "uid-0");
    assert_crash(look, "ThawedByAnother");
}

fn action(command: &str) -> Action {
    serde_json::from_value(json!({"exec": {"command": [command]}, "timeoutSeconds": 3})).expect("it is an action")
}

#[test]
fn handler_without_undo_in_a_frozen_container_makes_a_crash() {
    let owner = Look::at_cut(json!({})).notifications[0].metadata.owner_references.clone();
    assert!(owner.is_some());
    let forges_owner = |other: &mut PodNotification| other.metadata.owner_references = owner.clone();
    let harmful: [&dyn Fn(&mut PodNotification); 5] = [
        &|_| (),
        &|other| children::end(other, 7, &["main"]),
        &|other| other.status.as_mut().expect("it ran").complete_time = None,
        &|other| (other.spec.notifier, other.spec.action) = (Some("unlock".to_owned()), None),
        &forges_owner,
    ];
    for change in harmful {
        let look = beside_handler(change).done();
        assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Crash), "ThawedByAnother".to_owned()));
        let message = look.status().failure.expect("it is a crash").message;
        assert!(message.contains("`other` ran in pod `db-0`"), "{message}");
    }
    let harmless: [&dyn Fn(&mut PodNotification); 4] = [
        &|other| other.status.as_mut().expect("it ran").claim = None,
        &|other| {
            children::claim(other, ME, 0);
            children::end(other, 1, &[]);
        },
        &|other| other.status.as_mut().expect("it ran").containers[0].name = "side".to_owned(),
        &|other| other.status.as_mut().expect("it ran").pod_uid = Some("uid-1".to_owned()),
    ];
    for change in harmless {
        let look = beside_handler(change).done();
        assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    }
}

#[test]
fn handler_that_runs_the_own_undo_makes_a_crash() {
    let armed = |notifier: Option<&str>, command: Option<&str>| {
        beside_handler(|other| {
            (other.spec.notifier, other.spec.action) = (notifier.map(ToOwned::to_owned), command.map(action));
            // With an undo of its own it would pass for a freeze.
            other.spec.undo = Some(serde_json::from_value(json!({"notifier": "other"})).expect("it is an undo"));
        })
    };
    assert_crash(armed(None, Some("thaw")), "ThawedByAnother");
    let look = armed(None, Some("freeze")).done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    // What it runs may be the command that takes back: the caller of a notifier does not write it, and chose the undo.
    assert_crash(armed(Some("unfreeze"), None), "ThawedByAnother");
    let by_notifier = |name: &str| {
        let mut look = armed(Some(name), None);
        let (freeze, thaw) = (json!({"notifier": "lock"}), json!({"notifier": "unlock"}));
        for child in look.notifications.iter_mut().filter(|child| child.spec.notifier.as_deref() != Some(name)) {
            (child.spec.notifier, child.spec.action) = (Some("lock".to_owned()), None);
            child.spec.undo = Some(serde_json::from_value(thaw.clone()).expect("it is an undo"));
        }
        for hook in &mut look.hooks {
            let recorded = hook.status.as_mut().and_then(|status| status.recorded.as_mut()).expect("it is accepted");
            recorded.pre_action = serde_json::from_value(freeze.clone()).expect("it is an action");
            recorded.post_action = Some(serde_json::from_value(thaw.clone()).expect("it is an action"));
            recorded.expiration_seconds = None;
        }
        look
    };
    assert_crash(by_notifier("unlock"), "ThawedByAnother");
    assert_crash(by_notifier("other"), "ThawedByAnother");
    let look = by_notifier("lock").done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
}

#[test]
fn more_neighbours_than_are_looked_at_make_it_a_crash() {
    let mut look = Look::at_cut(json!({}));
    look.and_more = true;
    assert_crash(look, "ThawedByAnother");
}

#[test]
fn a_cut_that_is_seen_when_a_hooks_time_is_over_is_a_crash_by_the_clock_alone() {
    // Nobody has said yet that it expired: an agent thaws without an API server.
    let mut look = Look::at_cut(json!({}));
    let accepted = look.hooks[0].status.as_ref().and_then(|status| status.start_time.clone()).expect("accepted").0;
    let over = accepted.duration_since(at(0)).as_secs() + 30;
    look.now = over - 1;
    assert_eq!(look.done().outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    let mut look = Look::at_cut(json!({}));
    look.now = over;
    assert_crash(look, "Expired");
}

#[test]
fn a_hook_of_another_controllers_clock_makes_it_a_crash_unless_it_never_expires() {
    let mut look = Look::at_cut(json!({}));
    look.identity = "the next";
    assert_crash(look, "ControllerChanged");
    let mut look = Look::at_freezing(json!({}));
    look.expiration = None;
    look.freeze_last();
    let mut look = look.done();
    look.freeze_last();
    let mut look = look.done();
    (look.snapshots[0].cut, look.identity) = (true, "the next");
    assert_eq!(look.done().outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
}

#[test]
fn what_another_controller_froze_for_a_time_makes_it_a_crash_but_not_what_an_agent_did() {
    let another = |look: &mut Look| {
        let status = look.notifications[0].status.as_mut().expect("it is frozen");
        status.claim.as_mut().expect("it is claimed").holder = "another".to_owned();
    };
    let mut look = Look::at_cut(json!({}));
    another(&mut look);
    assert_crash(look, "ControllerChanged");
    let mut look = Look::at_cut(json!({}));
    another(&mut look);
    look.notifications[0].status.as_mut().expect("it is frozen").executor = Some(Executor::Agent);
    assert_eq!(look.done().outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
    // But whether a hook's time was over, only who accepted it can tell.
    let mut look = Look::at_cut(json!({}));
    for child in &mut look.notifications {
        child.status.as_mut().expect("it is frozen").executor = Some(Executor::Agent);
    }
    look.hooks[0].status.as_mut().expect("it is frozen").accepted_by = Some("another".to_owned());
    assert_crash(look, "ControllerChanged");
}

#[test]
fn a_claim_that_nothing_uses_is_application_consistent_if_nothing_did_at_the_cut() {
    let cut = || {
        let mut look = Look::with(json!({}));
        (look.claims[0].attached, look.claims[0].pods) = (false, vec![]);
        let mut look = look.done();
        look.snapshots[0].cut = true;
        look
    };
    let look = cut().done().done();
    assert_eq!(look.outcome(), (Phase::Complete, Some(Consistency::Application), String::new()));
    assert_eq!(said(&look.status(), condition::COMPLETE), "True NotInUse");
    assert_eq!(said(&look.status(), condition::THAWED), "True NothingToUndo");
    let mut attached = cut();
    attached.claims[0].attached = true;
    assert_crash(attached, "NewPod");
    let mut ended = cut();
    ended.claims[0].ended = vec![user(3)];
    ended.claims[0].ended[0].created = Some(at(1));
    assert_crash(ended, "NewPod");
    let mut starting = cut();
    starting.claims[0].pods = vec![user(3)];
    starting.claims[0].pods[0].running = false;
    assert_crash(starting, "NewPod");
}

#[test]
fn without_hooks_it_is_a_crash() {
    let mut look = Look::at_freezing(json!({"executionHookInfos": []}));
    look.snapshots = vec![snapshot("snap")];
    look.snapshots[0].cut = true;
    assert_crash(look, "NoHooks");
}

#[test]
fn a_session_that_another_controller_held_makes_it_a_crash_though_it_never_expires() {
    let cut_by = |identity: &'static str| {
        let mut look = Look::at_freezing(json!({}));
        look.expiration = None;
        look.freeze_last();
        let mut look = look.done();
        look.freeze_last();
        let mut look = look.done();
        let held = json!({"exec": {"command": ["freeze"], "hold": true}, "actionTimeoutSeconds": 10});
        let recorded = look.hooks[1].status.as_mut().and_then(|status| status.recorded.as_mut());
        recorded.expect("it is accepted").pre_action = serde_json::from_value(held).expect("it is an action");
        let hold = json!({"exec": {"command": ["freeze"], "hold": true}, "timeoutSeconds": 10});
        look.notifications[1].spec.action = Some(serde_json::from_value(hold).expect("it is an action"));
        (look.snapshots[0].cut, look.identity) = (true, identity);
        look
    };
    assert_crash(cut_by("the next"), "ControllerChanged");
    let look = cut_by(ME).done();
    assert_eq!(look.outcome(), (Phase::Thawing, Some(Consistency::Application), String::new()));
}

#[test]
fn what_somebody_else_runs_under_the_name_of_a_child_does_not_count_as_frozen() {
    let mut look = Look::at_cut(json!({}));
    look.notifications[1].metadata.owner_references = None;
    assert_crash(look, "HookFailed");
    let mut look = Look::at_cut(json!({}));
    let harmless = json!({"exec": {"command": ["true"]}, "timeoutSeconds": 10});
    look.notifications[1].spec.action = Some(serde_json::from_value(harmless).expect("it is an action"));
    assert_crash(look, "HookFailed");
}

#[test]
fn a_hook_that_somebody_put_in_the_place_of_another_makes_it_a_crash() {
    let mut look = Look::at_cut(json!({"onHookFailure": "CrashConsistent"}));
    look.hooks[1].metadata.owner_references = None;
    assert_crash(look, "HookFailed");
}
