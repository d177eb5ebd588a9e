//! Which containers of which pods.

use serde_json::json;

use super::{Look, pod, said, written};

/// The containers that are pinned, pod by pod.
fn pinned(look: &Look) -> Vec<String> {
    let status = written(&look.decide());
    let records = status.container_execution_hook_statuses.iter();
    records.map(|one| format!("{}/{}", one.pod_name, one.container_name)).collect()
}

#[test]
fn without_a_container_selector_every_container_is_meant() {
    let look = Look::with(json!({"containerSelector": null}));
    assert_eq!(pinned(&look), ["db-0/main", "db-0/side", "db-1/main", "db-1/side"]);
}

#[test]
fn with_a_notifier_those_that_declare_it_are_meant() {
    let notifiers = json!({"preAction": {"notifier": "quiesce"}, "postAction": {"notifier": "unquiesce"}});
    let mut look = Look::with(notifiers);
    look.object.spec.container_selector = None;
    assert_eq!(pinned(&look), ["db-0/main", "db-1/main"]);
    let look = look.done();
    assert_eq!(look.children[0].spec.notifier.as_deref(), Some("quiesce"));
    assert_eq!(look.children[0].spec.undo.as_ref().and_then(|undo| undo.notifier.as_deref()), Some("unquiesce"));
    assert!(look.children[0].spec.action.is_none());
}

#[test]
fn the_list_wins_over_the_selectors() {
    let list = json!([{"podName": "db-1", "containerNames": ["side"]}]);
    assert_eq!(pinned(&Look::with(json!({"podContainerNamesList": list}))), ["db-1/side"]);
}

#[test]
fn a_pod_that_is_listed_twice_is_frozen_once() {
    let list = json!([
        {"podName": "db-1", "containerNames": ["side", "side"]},
        {"podName": "db-0", "containerNames": ["main"]},
        {"podName": "db-1", "containerNames": ["main", "side"]},
    ]);
    let look = Look::with(json!({"podContainerNamesList": list}));
    assert_eq!(pinned(&look), ["db-1/side", "db-1/main", "db-0/main"]);
    assert_eq!(look.done().children.len(), 2);
}

#[test]
fn execute_once_pins_the_oldest_that_is_ready() {
    let mut look = Look::with(json!({"policy": "ExecuteOnce"}));
    look.pods = vec![pod(2), pod(1), pod(0)];
    assert_eq!(pinned(&look), ["db-0/main"]);
    // It is not Ready, and the next one is older than the last.
    look.pods[2].ready = false;
    assert_eq!(pinned(&look), ["db-1/main"]);
    // Of two of the same age, the first by name.
    look.pods[0].created = look.pods[1].created;
    assert_eq!(pinned(&look), ["db-1/main"]);
    // Another one that comes later changes nothing.
    let mut look = look.done();
    look.pods.push(pod(-5));
    assert_eq!(look.children.len(), 1);
    look.children.clear();
    assert_eq!(look.done().children[0].spec.pod_name, "db-1");
}

#[test]
fn execute_once_does_not_care_whether_the_others_run() {
    let mut look = Look::with(json!({"policy": "ExecuteOnce"}));
    (look.pods[0].running, look.pods[0].ready) = (false, false);
    assert_eq!(pinned(&look), ["db-1/main"]);
    look.pods[1].ready = false;
    assert_eq!(said(&written(&look.decide()), "Frozen"), "False PodNotRunning");
}

#[test]
fn execute_once_chooses_among_the_listed() {
    let list = json!([{"podName": "db-1", "containerNames": ["main"]}]);
    let look = Look::with(json!({"policy": "ExecuteOnce", "podContainerNamesList": list}));
    assert_eq!(pinned(&look), ["db-1/main"]);
}
