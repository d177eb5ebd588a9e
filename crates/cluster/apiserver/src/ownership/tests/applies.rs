//! Appliers among themselves and with others.

use serde_json::{Value, json};

use super::{Server, containers, owner, thing};
use crate::ownership::FieldSet;

#[test]
fn appliers_own_share_dispute_and_give_up_fields() {
    let mut server = Server::new();
    server.apply("a", json!({"metadata": {"labels": {"x": "1"}}, "data": {"k": "1", "l": "2"}}));
    let of_a = json!({"f:data": {"f:k": {}, "f:l": {}}, "f:metadata": {"f:labels": {"f:x": {}}}});
    assert_eq!(server.owners(), [owner("a Apply 00", of_a.clone())]);

    // The same value: both own it, and the newcomer has changed nothing, at no time.
    server.second = 1;
    server.apply("b", json!({"data": {"k": "1"}}));
    let of_b = json!({"f:data": {"f:k": {}}});
    assert_eq!(server.owners(), [owner("b Apply -", of_b.clone()), owner("a Apply 00", of_a)]);

    let status = server.refuses("b", json!({"metadata": {"labels": {"x": "2"}}, "data": {"k": "2", "l": "3"}}));
    let wanted = "Apply failed with 3 conflicts: conflicts with \"a\":\n- .data.k\n- .data.l\n- .metadata.labels.x";
    assert_eq!(status.message, wanted);
    let status = server.refuses("b", json!({"data": {"k": "2"}}));
    let wanted = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409, "reason": "Conflict",
        "message": "Apply failed with 1 conflict: conflict with \"a\": .data.k",
        "details": {"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"a\"", "field": ".data.k"}]},
    });
    assert_eq!(status.body(), wanted);

    server.second = 2;
    server.try_apply("b", true, json!({"data": {"k": "2"}})).unwrap();
    let rest_of_a = json!({"f:data": {"f:l": {}}, "f:metadata": {"f:labels": {"f:x": {}}}});
    assert_eq!(server.owners(), [owner("a Apply 00", rest_of_a.clone()), owner("b Apply 02", of_b.clone())]);

    server.second = 3;
    server.apply("a", json!({"metadata": {"labels": {"x": "1"}}, "data": {"l": "2"}}));
    assert_eq!(server.owners(), [owner("a Apply 00", rest_of_a), owner("b Apply 02", of_b.clone())]);
    server.apply("a", json!({}));
    assert_eq!(server.owners(), [owner("b Apply 02", of_b)]);
    assert_eq!(server.object()["data"], json!({"k": "2"}));
    assert_eq!(server.object()["metadata"].get("labels"), None);
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_clients_side() {
    let mut server = Server::new();
    let applied = thing(json!({"data": {"k": "1", "l": "2"}}));
    let name = "kubectl.kubernetes.io/last-applied-configuration";
    server.write("kubectl-client-side-apply", |new| {
        *new = applied.clone();
        new["metadata"]["annotations"] = json!({name: format!("{applied}\n")});
    });
    let fields = json!({
        "f:data": {".": {}, "f:k": {}, "f:l": {}},
        "f:metadata": {"f:annotations": {".": {}, format!("f:{name}"): {}}},
    });
    assert_eq!(server.owners(), [owner("kubectl-client-side-apply Update 00", fields)]);

    let status = server.refuses("other", json!({"data": {"k": "3", "l": "2"}}));
    let wanted = "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.k";
    assert_eq!(status.message, wanted);

    server.second = 1;
    server.apply("kubectl", json!({"data": {"k": "5"}}));
    assert_eq!(server.object()["data"]["k"], "5");
    let current = "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"5\"},\"kind\":\"Thing\",\"metadata\":{\"name\":\"c1\"}}\n";
    assert_eq!(server.object()["metadata"]["annotations"][name], current);
    assert_eq!(server.owners()[0], owner("kubectl Apply 01", json!({"f:data": {"f:k": {}}})));

    // What somebody changed since is not kubectl's to take.
    server.write("editor", |new| new["data"]["l"] = json!("7"));
    let status = server.refuses("kubectl", json!({"data": {"k": "6", "l": "8"}}));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.l");
}

#[test]
fn the_first_apply_finds_the_fields_that_nobody_kept_account_of() {
    for reset in [json!([]), json!([{}])] {
        let mut server = Server::new();
        server.write("kubectl-create", |new| new["data"] = json!({"a": "1"}));
        server.write("kubectl-patch", |new| new["metadata"]["managedFields"] = reset);
        assert_eq!(server.owners(), []);
        server.write("kubectl-patch", |new| new["data"]["b"] = json!("1"));
        assert_eq!(server.owners(), []);

        let status = server.refuses("first", json!({"data": {"a": "2", "z": "z"}}));
        let wanted = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a";
        assert_eq!(status.message, wanted);
        server.apply("first", json!({"data": {"z": "z"}}));
        let wanted = [
            owner("first Apply 00", json!({"f:data": {"f:z": {}}})),
            owner("before-first-apply Update 00", json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}})),
        ];
        assert_eq!(server.owners(), wanted);
    }
}

#[test]
fn lists_are_merged_by_key_in_the_appliers_order() {
    let mut server = Server::new();
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]);
    let one = json!({"name": "one", "image": "host", "args": ["a", "b"], "ports": [{"containerPort": 80}], "env": env});
    let two = json!({"name": "two", "image": "host", "resources": {"limits": {"cpu": "1"}}});
    server.apply("l1", containers(json!([one, two])));
    let entry = json!({".": {}, "f:name": {}, "f:value": {}});
    let one = json!({
        ".": {},
        "f:args": {},
        "f:env": {"k:{\"name\":\"A\"}": entry, "k:{\"name\":\"B\"}": entry},
        "f:image": {},
        "f:name": {},
        "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
    });
    let two = json!({".": {}, "f:image": {}, "f:name": {}, "f:resources": {"f:limits": {"f:cpu": {}}}});
    let of_containers = json!({"f:containers": {"k:{\"name\":\"one\"}": one, "k:{\"name\":\"two\"}": two}});
    let fields = json!({"f:spec": {"f:template": {"f:spec": of_containers}}});
    assert_eq!(server.owners(), [owner("l1 Apply 00", fields)]);

    server.apply(
        "l2",
        containers(json!([
            {"name": "zero", "image": "host"},
            {"name": "two", "env": [{"name": "Z", "value": "z"}]},
            {"name": "one", "env": [{"name": "Z", "value": "1"}, {"name": "A", "value": "1"}]},
        ])),
    );
    let merged = server.object()["spec"]["template"]["spec"]["containers"].as_array().unwrap().clone();
    let names: Vec<&Value> = merged.iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["zero", "two", "one"]);
    let env: Vec<&Value> = merged[2]["env"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(env, ["Z", "A", "B"]);

    let one = json!({"name": "one", "args": ["c"], "image": "z", "env": [{"name": "A", "value": "2"}]});
    let status = server.refuses("l2", containers(json!([one])));
    let wanted = "Apply failed with 3 conflicts: conflicts with \"l1\":\n\
                  - .spec.template.spec.containers[name=\"one\"].args\n\
                  - .spec.template.spec.containers[name=\"one\"].image\n\
                  - .spec.template.spec.containers[name=\"one\"].env[name=\"A\"].value";
    assert_eq!(status.message, wanted);
}

#[test]
fn a_list_item_goes_when_nobody_applies_it_any_more() {
    let mut server = Server::new();
    let one = json!({"name": "one", "image": "a"});
    let two = json!({"name": "two", "image": "b"});
    server.apply("a", containers(json!([one, two])));
    server.apply("b", containers(json!([{"name": "two", "args": ["x"]}])));
    server.apply("a", containers(json!([one])));
    let left = json!([one, {"name": "two", "args": ["x"]}]);
    assert_eq!(server.object()["spec"]["template"]["spec"]["containers"], left);
    server.apply("b", json!({}));
    assert_eq!(server.object()["spec"]["template"]["spec"]["containers"], json!([one]));
    server.apply("a", json!({}));
    assert_eq!(server.object().get("spec"), None);
}

#[test]
fn what_the_schema_does_not_know_is_deduced() {
    let mut server = Server::new();
    server.blank = json!({});
    let spec = json!({
        "free": {"a": {"b": 1}, "l": [{"x": 1}], "e": {}, "n": null, "s": "t"},
        "any": {"z": {"y": 1}, "l": [1]},
        "tags": ["p", "q"],
    });
    server.write("cr", |new| new["spec"] = spec.clone());
    let fields = json!({"f:spec": {
        ".": {},
        "f:any": {".": {}, "f:l": {}, "f:z": {".": {}, "f:y": {}}},
        "f:free": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:e": {}, "f:l": {}, "f:n": {}, "f:s": {}},
        "f:tags": {".": {}, "v:\"p\"": {}, "v:\"q\"": {}},
    }});
    assert_eq!(server.owners(), [owner("cr Update 00", fields)]);

    server.live = None;
    server.apply("ap", json!({"spec": spec}));
    let fields = json!({"f:spec": {
        "f:any": {"f:l": {}, "f:z": {".": {}, "f:y": {}}},
        "f:free": {"f:a": {".": {}, "f:b": {}}, "f:e": {}, "f:l": {}, "f:n": {}, "f:s": {}},
        "f:tags": {"v:\"p\"": {}, "v:\"q\"": {}},
    }});
    assert_eq!(server.owners(), [owner("ap Apply 00", fields)]);

    server.apply("ap", json!({"spec": {"free": {"a": {"c": 2}}, "tags": ["q", "r"], "any": "now text"}}));
    assert_eq!(server.object()["spec"], json!({"free": {"a": {"c": 2}}, "tags": ["q", "r"], "any": "now text"}));
}

#[test]
fn each_door_owns_only_what_can_be_written_through_it() {
    let mut server = Server::new();
    server.apply("ap", json!({"spec": {"replicas": 1}, "status": {"ready": true}}));
    assert_eq!(server.owners(), [owner("ap Apply 00", json!({"f:spec": {"f:replicas": {}}}))]);

    server.subresource = "status";
    server.reset = FieldSet::of(&["spec"]);
    server.second = 1;
    let parts = json!({"metadata": {"labels": {"st": "st"}}, "spec": {"replicas": 9}, "status": {"ready": false}});
    server.apply("st", parts);
    let of_st = json!({"f:metadata": {"f:labels": {"f:st": {}}}, "f:status": {"f:ready": {}}});
    assert_eq!(server.owners()[1], owner("st Apply status 01", of_st));

    server.write("sp", |new| {
        new["metadata"]["labels"]["u"] = json!("v");
        new["spec"]["replicas"] = json!(10);
        new["status"]["ready"] = json!(true);
    });
    let of_sp = json!({"f:metadata": {"f:labels": {"f:u": {}}}, "f:status": {"f:ready": {}}});
    assert_eq!(server.owners()[2], owner("sp Update status 01", of_sp));
    let status = server.refuses("other", json!({"status": {"ready": false}}));
    let wanted = "conflict with \"sp\" with subresource \"status\" using v1: .status.ready";
    assert!(status.message.ends_with(wanted), "{}", status.message);
}

#[test]
fn conflicts_through_a_subresource_are_told_before_those_of_the_same_manager() {
    let mut server = Server::new();
    server.apply("m", json!({"data": {"a": "1"}}));
    server.subresource = "status";
    server.apply("m", json!({"metadata": {"labels": {"d": "1"}}}));
    server.subresource = "";
    let status = server.refuses("x", json!({"metadata": {"labels": {"d": "2"}}, "data": {"a": "2"}}));
    let wanted = "Apply failed with 2 conflicts: conflicts with \"m\" with subresource \"status\":\n\
                  - .metadata.labels.d\n\
                  conflicts with \"m\":\n\
                  - .data.a";
    assert_eq!(status.message, wanted);
}

#[test]
fn what_cannot_be_applied_is_refused_in_kubernetes_words() {
    let mut server = Server::new();
    server.apply("a", json!({"data": {"k": "1"}}));
    let typed = |what: &str| format!("failed to create typed patch object (/c1; /v1, Kind=Thing): {what}");
    let refused = [
        (json!({"metadata": {"managedFields": []}}), 400, "metadata.managedFields must be nil".to_owned()),
        (json!({"kind": "Secret"}), 400, "invalid object type: /v1, Kind=Secret".to_owned()),
        (json!({"apiVersion": "g/v2"}), 400, "invalid object type: g/v2, Kind=Thing".to_owned()),
        (json!({"bogus": {}}), 500, typed(".bogus: field not declared in schema")),
        (json!({"data": {"k": 6}}), 500, typed(".data.k: expected string, got &value.valueUnstructured{Value:6}")),
        (json!({"data": ["k"]}), 500, typed(".data: expected map, got &{[k]}")),
        (json!({"immutable": "k"}), 500, typed(".immutable: expected boolean, got &{k}")),
        (json!({"spec": {"replicas": "x"}}), 500, typed(".spec.replicas: expected numeric (int or float), got string")),
        (
            json!({"metadata": {"finalizers": ["a.b/c", "a.b/c"]}}),
            500,
            typed(".metadata.finalizers: duplicate entries for key [=\"a.b/c\"]"),
        ),
        (
            json!({"metadata": {"labels": "x", "ownerReferences": ["x"], "finalizers": [["a"]]}}),
            500,
            typed(
                "errors:\n  \
                 .metadata.finalizers: element 0: associative list without keys may have scalar elements only\n  \
                 .metadata.labels: expected map, got &{x}\n  \
                 .metadata.ownerReferences: element 0: associative list with keys may not have non-map elements",
            ),
        ),
    ];
    for (parts, code, message) in refused {
        let status = server.refuses("x", parts);
        assert_eq!((status.code, status.message), (code, message));
    }
}
