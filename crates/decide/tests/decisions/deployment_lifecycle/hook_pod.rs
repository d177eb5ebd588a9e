//! The pod of a hook, field by field.

use boathook_api::deployment_lifecycle::{LifecycleHook, Stage};
use boathook_decide::deployment_lifecycle::{Deployment, Making, ReplicaSet, Strategy, hook_pod, is_ours, label_of};
use serde_json::{Value, json};

use super::{deployment, set};

fn from(template: Value) -> Deployment {
    Deployment {
        pod_template: serde_json::from_value(template).expect("it is a template"),
        ..deployment(Strategy::RollingUpdate)
    }
}

fn web() -> Value {
    json!({
        "name": "web", "image": "web:2", "imagePullPolicy": "Never",
        "command": ["serve"], "args": ["--all"], "workingDir": "/srv",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}],
        "envFrom": [{"configMapRef": {"name": "env"}}],
        "resources": {"limits": {"cpu": "1"}}, "securityContext": {"privileged": false},
        "livenessProbe": {"tcpSocket": {"port": 1}}, "readinessProbe": {"tcpSocket": {"port": 1}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}, "ports": [{"containerPort": 80}],
        "volumeMounts": [
            {"name": "cfg", "mountPath": "/cfg", "subPath": "x", "readOnly": true},
            {"name": "disk", "mountPath": "/disk"}
        ],
        "volumeDevices": [{"name": "disk", "devicePath": "/dev/x"}]
    })
}

fn full() -> Deployment {
    from(json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"injected": "yes"}},
        "spec": {
            "serviceAccountName": "shop", "automountServiceAccountToken": false,
            "securityContext": {"runAsUser": 7}, "hostUsers": false, "imagePullSecrets": [{"name": "secret"}],
            "tolerations": [{"key": "gpu"}], "nodeSelector": {"disk": "fast"},
            "affinity": {"nodeAffinity": {}}, "runtimeClassName": "small",
            "dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"]},
            "initContainers": [{"name": "init"}], "terminationGracePeriodSeconds": 900, "hostNetwork": true,
            "volumes": [{"name": "cfg", "configMap": {"name": "cfg"}}, {"name": "disk", "emptyDir": {}}],
            "containers": [
                {"name": "other", "image": "other:1"},
                web()
            ]
        }
    }))
}

fn build(
    deployment: &Deployment,
    target: Option<&ReplicaSet>,
    policy: &str,
    fields: Value,
    left: i64,
) -> Option<Value> {
    let mut run = json!({"containerName": "web"});
    for (name, value) in fields.as_object().expect("fields are an object") {
        run[name] = value.clone();
    }
    let hook: LifecycleHook =
        serde_json::from_value(json!({"failurePolicy": policy, "execNewPod": run})).expect("it is a hook");
    let pod = hook_pod(&Making {
        name: "web-pre-x".to_owned(),
        namespace: Some("shop".to_owned()),
        deployment,
        target,
        rollout: "17".to_owned(),
        stage: Stage::Pre,
        hook: &hook,
        seconds_left: left,
    })?;
    Some(serde_json::to_value(pod).expect("a pod is written"))
}

fn built(fields: Value) -> Value {
    build(&full(), Some(&set("new", 2, 0, None)), "Retry", fields, 30).expect("the template has the container")
}

#[test]
fn its_command_and_arguments_are_the_hooks_and_never_the_containers() {
    let container = &built(json!({"command": ["rake", "$(A)"], "args": ["-q"]}))["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["rake", "$(A)"]));
    assert_eq!(container["args"], json!(["-q"]));
    let bare = &built(json!({}))["spec"]["containers"][0];
    assert_eq!((bare.get("command"), bare.get("args")), (None, None), "those of the image");
}

#[test]
fn its_variables_are_the_containers_then_the_hooks_in_their_order() {
    let env = json!([{"name": "C", "value": "$(B)3"}, {"name": "A", "value": "4"}]);
    let container = &built(json!({"env": env}))["spec"]["containers"][0];
    let names: Vec<_> = container["env"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["A", "B", "C", "A"]);
    assert_eq!(container["env"][2]["value"], "$(B)3", "as it was written");
    assert_eq!(container["envFrom"], json!([{"configMapRef": {"name": "env"}}]));
}

#[test]
fn only_the_named_volumes_are_mounted_whole_and_unknown_ones_are_ignored() {
    let pod = built(json!({"volumes": ["cfg", "unknown"]}));
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "cfg", "configMap": {"name": "cfg"}}]));
    let container = &pod["spec"]["containers"][0];
    let mount = json!([{"name": "cfg", "mountPath": "/cfg", "subPath": "x", "readOnly": true}]);
    assert_eq!((&container["volumeMounts"], &container["volumeDevices"]), (&mount, &json!([])));
    let none = built(json!({}));
    assert_eq!((&none["spec"]["volumes"], &none["spec"]["containers"][0]["volumeMounts"]), (&json!([]), &json!([])));
}

#[test]
fn it_runs_where_and_as_whom_the_template_does_and_has_nothing_else_of_it() {
    let pod = built(json!({"volumes": ["disk"]}));
    let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]);
    let template = serde_json::to_value(full().pod_template).unwrap();
    let (of, web) = (&template["spec"], &template["spec"]["containers"][1]);
    for field in [
        "serviceAccountName",
        "automountServiceAccountToken",
        "securityContext",
        "hostUsers",
        "imagePullSecrets",
        "tolerations",
        "nodeSelector",
        "affinity",
        "runtimeClassName",
        "dnsPolicy",
        "dnsConfig",
    ] {
        assert!(!of[field].is_null() && spec[field] == of[field], "{field}");
    }
    for field in ["image", "imagePullPolicy", "workingDir", "resources", "securityContext", "volumeDevices"] {
        assert!(!web[field].is_null() && container[field] == web[field], "{field}");
    }
    for field in ["initContainers", "terminationGracePeriodSeconds", "hostNetwork"] {
        assert_eq!(spec.get(field), None, "{field}");
    }
    for field in ["livenessProbe", "readinessProbe", "lifecycle", "ports"] {
        assert_eq!(container.get(field), None, "{field}");
    }
    assert_eq!(spec["containers"].as_array().unwrap().len(), 1);
}

#[test]
fn its_labels_are_outside_the_selector_and_say_whose_it_is() {
    let metadata = &built(json!({}))["metadata"];
    let labels = json!({"boathook.dev/hook-of": "web", "boathook.dev/stage": "pre", "boathook.dev/rollout": "17"});
    assert_eq!(metadata["labels"], labels);
    assert_eq!(metadata["annotations"], json!({"kubectl.kubernetes.io/default-container": "web"}));
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("web-pre-x"), &json!("shop")));
    assert_eq!(label_of("web"), "web");
    assert_eq!((label_of(&"x".repeat(63)).len(), label_of(&"x".repeat(64)).len()), (63, 16));
}

#[test]
fn it_has_the_resource_claims_that_its_container_names_and_no_others() {
    let mut web = full();
    let pod = web.pod_template.spec.as_mut().expect("as it is written here");
    let claims = json!([{"name": "gpu", "resourceClaimTemplateName": "gpus"}, {"name": "other"}]);
    pod.resource_claims = serde_json::from_value(claims).expect("as it is written here");
    assert_eq!(build(&web, None, "Retry", json!({}), 30).unwrap()["spec"].get("resourceClaims"), None);
    let container = web.pod_template.spec.as_mut().expect("as it is written here").containers.iter_mut();
    let container = container.into_iter().find(|container| container.name == "web").expect("as it is written here");
    container.resources = serde_json::from_value(json!({"claims": [{"name": "gpu"}]})).expect("as it is written here");
    let built = build(&web, None, "Retry", json!({}), 30).unwrap();
    assert_eq!(built["spec"]["resourceClaims"], json!([{"name": "gpu", "resourceClaimTemplateName": "gpus"}]));
    assert_eq!(built["spec"]["containers"][0]["resources"], json!({"claims": [{"name": "gpu"}]}));
}

#[test]
fn its_owner_is_the_new_replica_set_or_without_one_the_deployment_and_neither_controls_it() {
    let owner = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": false}]);
    assert_eq!(built(json!({}))["metadata"]["ownerReferences"], owner("ReplicaSet", "web-new", "new-uid"));
    let early = build(&full(), None, "Retry", json!({}), 30).unwrap();
    assert_eq!(early["metadata"]["ownerReferences"], owner("Deployment", "web", "web-uid"));
}

#[test]
fn it_is_restarted_only_to_retry_and_has_the_time_that_is_left() {
    for (policy, restarts) in [("Retry", "OnFailure"), ("Abort", "Never"), ("Ignore", "Never")] {
        let pod = build(&full(), None, policy, json!({}), 30).unwrap();
        assert_eq!(
            (&pod["spec"]["restartPolicy"], &pod["spec"]["activeDeadlineSeconds"]),
            (&json!(restarts), &json!(30))
        );
    }
    let late = build(&full(), None, "Retry", json!({}), 0).unwrap();
    assert_eq!(late["spec"]["activeDeadlineSeconds"], 1, "none is no valid deadline");
}

#[test]
fn without_a_container_of_that_name_there_is_none() {
    assert_eq!(build(&full(), None, "Retry", json!({"containerName": "wbe"}), 30), None);
    assert_eq!(build(&full(), None, "Retry", json!({"containerName": "init"}), 30), None);
}

#[test]
fn a_pod_is_ours_by_its_name_and_its_owner_and_not_by_labels_alone() {
    let run: LifecycleHook = serde_json::from_value(json!({"execNewPod": {"containerName": "web"}})).expect("a hook");
    let (web, target) = (full(), set("new", 2, 0, None));
    let made = |target| {
        hook_pod(&Making {
            name: "web-pre-0123456789abcdef".to_owned(),
            namespace: None,
            deployment: &web,
            target,
            rollout: "1".to_owned(),
            stage: Stage::Pre,
            hook: &run,
            seconds_left: 1,
        })
        .expect("the template has the container")
    };
    let owners = [web.uid.clone(), target.uid.clone()];
    for pod in [made(None), made(Some(&target))] {
        assert!(is_ours(&pod, "web", &owners));
        assert!(!is_ours(&pod, "web", &["another-uid".to_owned()]), "owned by another");
        assert!(!is_ours(&pod, "web-2", &owners), "of another Deployment");
        for name in ["web-mid-0123456789abcdef", "web-pre-0123", "web-pre", "web"] {
            let mut named = pod.clone();
            named.metadata.name = Some(name.to_owned());
            assert!(!is_ours(&named, "web", &owners), "{name}");
        }
        let mut orphan = pod.clone();
        orphan.metadata.owner_references = None;
        assert!(!is_ours(&orphan, "web", &owners));
    }
}
