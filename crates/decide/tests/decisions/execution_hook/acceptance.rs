//! A hook that nobody has looked at yet.

use boathook_api::words::condition;
use boathook_decide::{
    Gravity, Leadership,
    execution_hook::{Decision, Effect, child_name, is_settled},
};
use kube::ResourceExt;
use serde_json::json;

use super::{Look, ME, at, deeds, message, said, template, written};

/// Nothing is run, it is said why, and nothing holds the object.
#[track_caller]
fn assert_refused(look: Look, reason: &str, text: &str) {
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["write"]);
    assert_eq!((decision.reports[0].gravity, decision.reports[0].reason.as_str()), (Gravity::Warning, reason));
    assert_eq!(decision.reports[0].note, text);
    let status = written(&decision);
    for kind in [condition::ACCEPTED, condition::FROZEN] {
        assert_eq!((said(&status, kind), message(&status, kind)), (format!("False {reason}"), text.to_owned()));
    }
    assert_eq!(said(&status, condition::THAWED), "True NothingToUndo");
    assert_eq!((status.pre_action_succeed, status.post_action_succeed), (Some(false), Some(true)));
    assert!(status.recorded.is_none() && status.container_execution_hook_statuses.is_empty());
    let look = look.done();
    assert_eq!(look.decide(), Decision::default(), "and nothing follows");
    assert!(is_settled(&look.object, look.children.into_iter()));
}

#[test]
fn what_cannot_be_run_is_refused_with_what_to_write() {
    let named = |list: serde_json::Value| Look::with(json!({"podContainerNamesList": list}));
    let operator = json!({"matchExpressions": [{"key": "app", "operator": "Has"}]});
    let of_names = "is not a name: write lower-case letters, digits, `-` and `.`, with a letter or digit at both ends";
    let (pod_name, template_name) = (
        format!(r#"podContainerNamesList[0].podName: "db\0" {of_names}"#),
        format!(r#"executionHookTemplateName: "My SQL" {of_names}"#),
    );
    let cases = [
        (
            Look::with(json!({"podSelector": operator})),
            "Invalid",
            r#"podSelector.matchExpressions[0].operator: "Has" is unknown: write In, NotIn, Exists, DoesNotExist"#,
        ),
        (named(json!([{"podName": "db\0", "containerNames": ["main"]}])), "Invalid", &pod_name),
        (Look::at_new(json!({"executionHookTemplateName": "My SQL", "podSelector": {}})), "Invalid", &template_name),
        (
            Look::with(json!({"preAction": {"exec": {"command": ["sync", "\0"]}}})),
            "Invalid",
            "preAction: exec.command[1]: contains a NUL byte, which no program can be given: remove it",
        ),
        (
            Look::at_new(json!({"executionHookTemplateName": "mysql", "podSelector": {}})),
            "TemplateNotFound",
            "ExecutionHookTemplate `mysql` not found in this namespace: create it, or fix executionHookTemplateName",
        ),
        (
            Look::with(json!({"podSelector": null})),
            "NoTarget",
            "containerSelector selects no pods: also write podSelector or podContainerNamesList",
        ),
        (
            Look::with(json!({"podSelector": null, "containerSelector": null})),
            "NoTarget",
            "the hook selects no pods: write podContainerNamesList or podSelector",
        ),
        (named(json!([])), "NoTarget", "podContainerNamesList is empty: name at least one pod"),
        (
            named(json!([{"podName": "db-0", "containerNames": []}])),
            "NoTarget",
            "containerNames of pod `db-0` is empty: name at least one container (the pod has `main`, `side`)",
        ),
        (
            named(json!([{"podName": "db-7", "containerNames": ["main"]}])),
            "NoTarget",
            "pod `db-7` not found in this namespace: fix podContainerNamesList",
        ),
        (
            named(json!([{"podName": "db-0", "containerNames": ["mian"]}])),
            "NoTarget",
            "pod `db-0` has no container `mian`: name one of `main`, `side`",
        ),
        (
            Look::with(json!({"containerSelector": {"containerName": "mian"}})),
            "NoTarget",
            "pod `db-0` has no container `mian`: name one of `main`, `side`",
        ),
        (
            Look::with(json!({"postAction": {"exec": {"command": ["thaw"], "hold": true}}})),
            "Invalid",
            "postAction: exec.hold: only a preAction can hold its session: remove hold",
        ),
        (
            Look::with(json!({"preAction": {"exec": {"command": []}}})),
            "Invalid",
            "preAction: exec.command: names no program",
        ),
        (
            Look::with(json!({"postAction": {}})),
            "Invalid",
            "postAction: write exactly one of exec, httpGet, tcpSocket and notifier",
        ),
        (
            Look::with(json!({"preAction": null, "postAction": null})),
            "Invalid",
            "write exactly one of executionHookTemplateName and preAction",
        ),
        (
            Look::with(json!({"containerSelector": null, "preAction": {"notifier": "stop"}})),
            "NoTarget",
            "no container of pod `db-0` declares notifier `stop`: declare it in the pod's template, or fix the name",
        ),
        (
            Look::with(json!({})).requested(),
            "ThawRequested",
            "the thaw was requested before Boathook ran the PreAction",
        ),
    ];
    for (look, reason, text) in cases {
        assert_refused(look, reason, text);
    }
    let mut no_pod = Look::with(json!({}));
    no_pod.pods.clear();
    assert_refused(
        no_pod,
        "NoTarget",
        "podSelector matches no pod in this namespace: fix the selector or the labels of the pods",
    );
    let mut waiting = Look::with(json!({}));
    waiting.pods[1].running = false;
    assert_refused(
        waiting,
        "PodNotRunning",
        "the hook selects pod `db-1`, which is not Running: wait until it runs, then create the hook again",
    );
    let mut wrong = Look::with(json!({"containerSelector": null, "preAction": {"notifier": "quiesce"}}));
    wrong.pods[1].declared = Err("line 1: nonsense".to_owned());
    assert_refused(wrong, "Invalid", "pod `db-1` has an invalid declaration of notifiers: line 1: nonsense");
    let mut unchecked = Look::with(json!({}));
    unchecked.author_checked = false;
    let text = "the ExecutionHook was created before Boathook's webhooks answered, so Boathook did not check whether \
                the author of its actions may run them: delete the ExecutionHook and create it again";
    assert_refused(unchecked, "Refused", text);
    let mut unchecked = Look::at_new(json!({"executionHookTemplateName": "mysql", "podSelector": {}}));
    unchecked.template = Some(template(json!({"preAction": {"exec": {"command": ["freeze"]}}})));
    unchecked.author_checked = false;
    let text = "ExecutionHookTemplate `mysql` was created before Boathook's webhooks answered, so Boathook did not \
                check whether the author of its actions may run them: delete ExecutionHookTemplate `mysql` and create \
                it again";
    assert_refused(unchecked, "Refused", text);
}

#[test]
fn what_is_accepted_is_held_and_pinned_before_the_first_child_is_made() {
    let look = Look::with(json!({}));
    let decision = look.decide();
    assert_eq!(deeds(&decision), ["hold", "write", "freeze db-0", "freeze db-1"]);
    let status = written(&decision);
    assert_eq!(said(&status, condition::ACCEPTED), "True Pinned");
    assert_eq!(said(&status, condition::FROZEN), "False Freezing");
    assert_eq!(said(&status, condition::NO_EXPIRY), "nothing");
    assert_eq!((status.accepted_by.as_deref(), status.start_time.map(|time| time.0)), (Some(ME), Some(at(1))));
    let pinned = status.container_execution_hook_statuses.iter();
    let pinned: Vec<_> = pinned.map(|one| format!("{} {} {}", one.pod_name, one.pod_uid, one.container_name)).collect();
    assert_eq!(pinned, ["db-0 uid-0 main", "db-1 uid-1 main"]);
    assert_eq!((status.pre_action_succeed, status.post_action_succeed), (None, None));
}

#[test]
fn a_child_has_the_post_action_as_its_undo_and_is_held_from_the_start() {
    let look = Look::at_freezing();
    let child = &look.children[1];
    assert_eq!(child.name_any(), child_name(&look.object, "uid-1"));
    assert_eq!(child.owner_references()[0].uid, "hook-uid");
    assert_eq!(child.finalizers(), ["boathook.dev/undo"]);
    assert_eq!(child.labels()["boathook.dev/execution-hook"], "hook");
    let spec = serde_json::to_value(&child.spec).expect("it is plain");
    assert_eq!(
        (&spec["podName"], &spec["podUID"], &spec["containers"]),
        (&"db-1".into(), &"uid-1".into(), &json!(["main"]))
    );
    assert_eq!((&spec["retry"], &spec["action"]["timeoutSeconds"]), (&"UntilTimeout".into(), &10.into()));
    assert_eq!(
        (&spec["undo"]["action"]["exec"]["command"], &spec["undo"]["afterSeconds"]),
        (&json!(["thaw"]), &30.into())
    );
}

#[test]
fn without_a_post_action_a_child_has_no_undo_and_nothing_holds_it() {
    let look = Look::with(json!({"postAction": null, "expirationSeconds": null})).done();
    assert!(look.children[0].spec.undo.is_none() && look.children[0].finalizers().is_empty());
    assert_eq!(said(&look.status(), condition::NO_EXPIRY), "nothing", "there is nothing to forget");
}

#[test]
fn without_a_post_action_a_session_that_is_held_is_released_all_the_same() {
    let held = json!({"preAction": {"exec": {"command": ["freeze"], "hold": true}}, "postAction": null});
    let child = Look::with(held).done().children.remove(0);
    assert_eq!(child.finalizers(), ["boathook.dev/undo"]);
    let undo = child.spec.undo.expect("something must release it");
    assert_eq!((undo.notifier, undo.action, undo.after_seconds), (None, None, Some(30)));
}

#[test]
fn a_hook_without_an_expiry_is_warned_of() {
    let look = Look::with(json!({"expirationSeconds": null}));
    assert_eq!(look.decide().reports[0].reason, "NoExpiry");
    assert_eq!(said(&look.done().status(), condition::NO_EXPIRY), "True NoExpiry");
}

#[test]
fn the_template_is_copied_so_that_a_later_edit_changes_nothing() {
    let pre_action = |command: &str| json!({"preAction": {"exec": {"command": [command]}, "actionTimeoutSeconds": 7}});
    let mut look = Look::at_new(json!({"executionHookTemplateName": "mysql", "podSelector": {}}));
    look.template = Some(template(pre_action("first")));
    let mut look = look.done();
    look.template = Some(template(pre_action("second")));
    // One child was not made: it is made now.
    look.children.remove(1);
    let decision = look.decide();
    let Some(Effect::CreateChild(made)) = decision.effects.last() else { panic!("none is made: {decision:?}") };
    let action = made.spec.action.as_ref().expect("it is inline");
    assert_eq!(action.exec.as_ref().expect("it is exec").command, ["first"]);
    assert_eq!(action.timeout_seconds, 7);
}

#[test]
fn what_is_deleted_before_it_was_accepted_runs_nothing() {
    assert_eq!(Look::with(json!({})).deleted().decide(), Decision::default());
    let mut held = Look::with(json!({})).deleted();
    held.object.finalizers_mut().push("boathook.dev/thaw".to_owned());
    assert_eq!(deeds(&held.decide()), ["let go"]);
}

#[test]
fn a_refused_hook_that_is_held_is_let_go() {
    let mut look = Look::with(json!({"podSelector": null}));
    look.object.finalizers_mut().push("boathook.dev/thaw".to_owned());
    assert_eq!(deeds(&look.decide()), ["write", "let go"]);
    let mut look = look.done();
    // The second write was lost.
    look.object.finalizers_mut().push("boathook.dev/thaw".to_owned());
    assert_eq!(deeds(&look.decide()), ["let go"]);
}

#[test]
fn whoever_does_not_lead_does_nothing() {
    for mut look in [Look::with(json!({})), Look::at_freezing(), Look::at_frozen().deleted()] {
        look.leadership = Leadership::ThawOnly;
        assert_eq!(look.decide(), Decision::default());
    }
}
