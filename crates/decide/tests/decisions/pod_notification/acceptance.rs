//! From a new object to a claim.

use boathook_api::{
    ApplicationSnapshot,
    action::Output,
    pod_notification::{ErrorType, Executor, State},
    words::{UNDO_FINALIZER, condition},
};
use boathook_decide::{
    Leadership,
    pod_notification::{Decision, Effect, Me, Pod, Progress, Role, SeenPod, needs_pod},
};
use kube::ResourceExt;
use serde_json::json;

use super::{Look, ME, THAW_ONLY, assert_refused, at, controller, declaring, deeds, pod, reason, status, undone};

#[test]
fn with_the_api_executor_one_write_accepts_and_claims_and_two_of_three_containers_start() {
    let decision = Look::at_freeze().decide();
    assert_eq!(deeds(&decision), ["hold", "write", "start back front"]);
    let status = status(&decision).unwrap();
    assert_eq!((status.state, status.executor), (State::New, Some(Executor::Api)));
    assert_eq!((status.pod_uid.as_deref(), status.node_name.as_deref()), (Some("pod-uid"), Some("node")));
    let claim = status.claim.clone().unwrap();
    assert_eq!((claim.holder.as_str(), claim.time.0), (ME, at(1)));
    for record in &status.containers {
        assert_eq!(record.undo.clone().unwrap().action.unwrap().exec.unwrap().command, ["thaw"]);
    }
    assert_eq!(undone(&status), "Armed");
    assert_eq!(reason(&status, condition::ACCEPTED), ("Pinned".to_owned(), "True".to_owned()));
}

#[test]
fn notification_is_recorded_on_undecided_snapshots_before_it_is_accepted() {
    let spec = json!({"source": {"persistentVolumeClaimName": "data"}, "executionHookInfos": []});
    let mut snapshot = ApplicationSnapshot::new("nightly", serde_json::from_value(spec).unwrap());
    snapshot.status = Some(serde_json::from_value(json!({"phase": "Freezing"})).unwrap());
    for (executor, rest) in [(Executor::Api, &["write", "start back front"][..]), (Executor::Agent, &["write"])] {
        for (mut look, hold) in
            [(Look::at_freeze(), &["hold"][..]), (Look::at_new(json!({"podName": "db", "notifier": "thaw"})), &[])]
        {
            (look.role, look.undecided) = (controller(executor), vec![snapshot.clone()]);
            assert_eq!(deeds(&look.decide()), [&["record on nightly"], hold, rest].concat());
        }
    }
    // What runs nothing is not recorded.
    let mut look = Look::at_new(json!({"podName": "db", "notifier": "unknown"}));
    look.undecided = vec![snapshot];
    assert_eq!(deeds(&look.decide()), ["write"]);
}

#[test]
fn undo_is_recorded_with_its_output_policy() {
    let handler = |name: &str| format!("{{name: {name}, handler: {{exec: {{command: [{name}]}}}}, output: None}}");
    let text = format!("[{}, {}]", handler("freeze"), handler("thaw"));
    let mut look = Look::at_freeze();
    look.pod = SeenPod::There(declaring(&[("front", &text)]));
    let decision = look.decide();
    let recorded = status(&decision).unwrap().containers[0].undo.clone().unwrap().action.unwrap();
    assert_eq!(recorded.output, Some(Output::None));
    let Some(Effect::Start(work)) = decision.effects.last() else { panic!("{decision:?}") };
    assert_eq!(work[0].1.action.output, Output::None);
}

#[test]
fn invalid_name_is_refused_without_looking_for_the_pod() {
    let mut look = Look::at_new(json!({"podName": "db\0", "notifier": "freeze"}));
    look.pod = SeenPod::Unknown;
    let status = assert_refused(&look, ErrorType::Unsupported);
    let message = status.error.unwrap().message;
    assert!(message.starts_with(r#"podName: "db\0" is not a name: write"#), "{message}");
    assert!(!needs_pod(&look.object, Me { identity: ME, role: look.role }, &Progress::Idle, &Progress::Idle));
    let nul = Look::at_new(json!({"podName": "db", "action": {"exec": {"command": ["sync", "\0"]}}}));
    assert_refused(&nul, ErrorType::Unsupported);
}

#[test]
fn hook_runs_with_the_gate_off() {
    for mut look in [Look::at_freeze(), Look::at_accepted(Executor::Api)] {
        look.role = Role::Controller { leadership: Leadership::Leader, executor: Executor::Api, enabled: false };
        assert_refused(&look, ErrorType::Unsupported);
        let owner = json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "ExecutionHook", "name": "hook", "uid": "uid",
            "controller": true});
        look.object.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
        let deeds = deeds(&look.decide());
        assert!(deeds.contains(&"start back front".to_owned()), "{deeds:?}");
    }
}

#[test]
fn only_an_undo_that_is_not_yet_held_is_held() {
    let look = Look::at_new(json!({"podName": "db", "notifier": "freeze"}));
    assert_eq!(deeds(&look.decide()), ["write", "start back front"]);
    let mut look = Look::at_freeze();
    look.object.finalizers_mut().push(UNDO_FINALIZER.to_owned());
    assert_eq!(deeds(&look.decide()), ["write", "start back front"]);
}

#[test]
fn with_the_agent_the_controller_pins_and_only_the_agent_claims() {
    let mut look = Look::at_freeze();
    look.role = controller(Executor::Agent);
    assert_eq!(deeds(&look.decide()), ["hold", "write"]);
    let mut look = look.written();
    assert_eq!(look.status().claim, None);
    assert_eq!(look.decide(), Decision { again: Some(at(60)), ..Decision::default() });
    look.role = Role::Agent;
    assert_eq!(deeds(&look.decide()), ["write", "start back front"]);
}

#[test]
fn the_agent_never_runs_what_is_pinned_to_the_api_server_or_to_nobody() {
    for mut look in [Look::at_freeze(), Look::at_accepted(Executor::Api), Look::at_claimed(Executor::Api)] {
        look.role = Role::Agent;
        assert!(look.decide().effects.is_empty());
    }
}

#[test]
fn without_room_it_is_accepted_and_claimed_later() {
    let mut look = Look::at_freeze();
    look.room = false;
    assert_eq!(deeds(&look.decide()), ["hold", "write"]);
    let mut look = look.written();
    assert!(look.decide().effects.is_empty());
    look.room = true;
    assert_eq!(deeds(&look.decide()), ["write", "start back front"]);
}

#[test]
fn only_the_containers_that_were_pinned_run() {
    let mut look = Look::at_freeze();
    look.role = controller(Executor::Agent);
    let both = "[{name: freeze, handler: {signal: HUP}}, {name: thaw, handler: {signal: HUP}}]";
    look.pod = SeenPod::There(declaring(&[("front", both)]));
    let mut look = look.written();
    // Its sandbox declares it in two containers.
    (look.role, look.pod) = (Role::Agent, SeenPod::There(pod()));
    assert_eq!(deeds(&look.decide()), ["write", "start front"]);
}

#[test]
fn an_inline_action_runs_in_the_containers_that_it_names_or_in_all() {
    let action = json!({"exec": {"command": ["sync"]}});
    let look = Look::at_new(json!({"podName": "db", "action": action, "containers": ["quiet"]}));
    assert_eq!(deeds(&look.decide()), ["write", "start quiet"]);
    let look = Look::at_new(json!({"podName": "db", "action": action}));
    assert_eq!(deeds(&look.decide()), ["write", "start front back quiet"]);
    let look = Look::at_new(json!({"podName": "db", "action": action, "containers": ["loud"]}));
    let status = assert_refused(&look, ErrorType::ContainerNotRunning);
    assert!(status.error.unwrap().message.contains("`loud`"));
}

#[test]
fn a_notifier_that_no_container_declares_succeeds_at_once() {
    let look = Look::at_new(json!({"podName": "db", "notifier": "other", "undo": {"notifier": "thaw"}}));
    assert_eq!(deeds(&look.decide()), ["write"]);
    let status = look.written().status();
    assert_eq!(status.state, State::Succeeded);
    assert_eq!(reason(&status, condition::COMPLETE).0, "NoMatchingNotifier");
    assert_eq!(undone(&status), "NothingToUndo");
}

#[test]
fn a_pod_that_is_not_there_is_not_found() {
    let mut look = Look::at_freeze();
    look.pod = SeenPod::Gone { node_ready: true };
    assert_eq!(undone(&assert_refused(&look, ErrorType::PodNotFound)), "NothingToUndo");
}

#[test]
fn another_pod_than_the_one_that_was_meant_is_not_told() {
    let look = Look::at_new(json!({"podName": "db", "podUID": "pod-uid", "notifier": "freeze"}));
    assert_eq!(deeds(&look.decide()), ["write", "start back front"]);
    let look = Look::at_new(json!({"podName": "db", "podUID": "older", "notifier": "freeze"}));
    assert_refused(&look, ErrorType::PodNotFound);
}

#[test]
fn a_pod_that_was_re_created_between_acceptance_and_claim_is_another_one() {
    let mut look = Look::at_accepted(Executor::Api);
    look.pod = SeenPod::There(Pod { uid: "another".to_owned(), ..pod() });
    assert_refused(&look, ErrorType::PodNotFound);
}

#[test]
fn a_pod_that_does_not_run_is_not_told() {
    for pod in [Pod { over: true, ..pod() }, Pod { node: None, ..pod() }] {
        let mut look = Look::at_freeze();
        look.pod = SeenPod::There(pod);
        assert_refused(&look, ErrorType::ContainerNotRunning);
    }
}

#[test]
fn nothing_is_claimed_after_the_start_deadline() {
    for mut look in [Look::at_freeze(), Look::at_accepted(Executor::Api), Look::at_accepted(Executor::Agent)] {
        look.now = 60;
        assert_refused(&look, ErrorType::StartDeadlineExceeded);
        look.role = Role::Agent;
        assert_eq!(look.decide(), Decision::default());
    }
}

#[test]
fn what_is_revoked_before_it_is_claimed_never_runs() {
    for mut look in [
        Look::at_freeze().requested(),
        Look::at_freeze().deleted(),
        Look::at_accepted(Executor::Api).deleted(),
        Look::at_accepted(Executor::Agent).requested(),
    ] {
        assert_eq!(undone(&assert_refused(&look, ErrorType::Revoked)), "NothingToUndo");
        look.role = Role::Agent;
        assert_eq!(look.decide(), Decision::default());
    }
}

#[test]
fn with_the_gate_off_nothing_new_runs_and_nothing_that_was_only_accepted() {
    let unheard = Look::at_claimed(Executor::Api);
    let accepted = [Look::at_accepted(Executor::Api), Look::at_accepted(Executor::Agent)];
    for mut look in [Look::at_freeze(), unheard].into_iter().chain(accepted) {
        look.role = Role::Controller { leadership: Leadership::Leader, executor: Executor::Api, enabled: false };
        let status = assert_refused(&look, ErrorType::Unsupported);
        assert_eq!(reason(&status, condition::ACCEPTED), ("FeatureDisabled".to_owned(), "False".to_owned()));
    }
}

#[test]
fn a_container_that_does_not_declare_the_undo_keeps_the_handler_from_running_anywhere() {
    let mut look = Look::at_freeze();
    let freeze = "[{name: freeze, handler: {signal: HUP}}]";
    let both = "[{name: freeze, handler: {signal: HUP}}, {name: thaw, handler: {signal: HUP}}]";
    look.pod = SeenPod::There(declaring(&[("front", freeze), ("back", both)]));
    let status = assert_refused(&look, ErrorType::UndoNotDeclared);
    assert!(status.error.unwrap().message.contains("`front`"));
}

#[test]
fn an_invalid_declaration_is_told_as_it_is() {
    let mut look = Look::at_freeze();
    look.pod = SeenPod::There(declaring(&[("front", "[{name: freeze, handler: {}}]")]));
    let status = assert_refused(&look, ErrorType::InvalidDeclaration);
    assert!(status.error.unwrap().message.contains("exactly one of exec and signal"));
}

#[test]
fn a_pod_of_which_nothing_can_be_learnt_is_asked_for_again_soon() {
    for mut look in [Look::at_freeze(), Look::at_accepted(Executor::Api), Look::at_claimed(Executor::Agent)] {
        look.pod = SeenPod::Unknown;
        assert_eq!(look.decide(), Decision { again: Some(at(2)), ..Decision::default() });
    }
}

#[test]
fn whoever_has_lost_the_lease_accepts_and_claims_nothing() {
    for mut look in [Look::at_freeze(), Look::at_accepted(Executor::Api), Look::at_claimed(Executor::Api)] {
        look.role = THAW_ONLY;
        assert!(look.decide().effects.is_empty());
    }
}

#[test]
fn an_action_whose_author_nobody_checked_is_refused_and_a_declared_one_needs_no_check() {
    let inline = json!({"podName": "db", "action": {"exec": {"command": ["true"]}}});
    let undo = json!({"podName": "db", "notifier": "freeze", "undo": {"action": {"exec": {"command": ["true"]}}}});
    for spec in [inline, undo] {
        let mut look = Look::at_new(spec);
        look.author_checked = false;
        assert_refused(&look, ErrorType::Forbidden);
    }
    let mut look = Look::at_new(json!({"podName": "db", "notifier": "freeze"}));
    look.author_checked = false;
    assert_eq!(deeds(&look.decide()), ["write", "start back front"]);
}

#[test]
fn a_pod_that_went_before_the_claim_is_told_at_once_though_there_is_no_room() {
    let mut look = Look::at_accepted(Executor::Api);
    (look.room, look.pod) = (false, SeenPod::Gone { node_ready: true });
    assert_refused(&look, ErrorType::PodNotFound);
}

#[test]
fn no_handler_starts_in_an_ending_pod() {
    let ending = || SeenPod::There(Pod { ending: true, ..pod() });
    let looks = [Look::at_freeze(), Look::at_accepted(Executor::Api), Look::at_accepted(Executor::Agent)];
    for look in looks {
        assert_refused(&Look { pod: ending(), ..look }, ErrorType::ContainerNotRunning);
    }
}
