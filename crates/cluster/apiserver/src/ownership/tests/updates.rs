//! Writes that are no applies.

use serde_json::{Value, json};

use super::{Server, containers, owner};

#[test]
fn who_changes_a_field_owns_it_from_then_on() {
    let mut server = Server::new();
    server.write("kubectl-create", |new| new["data"] = json!({"a": "1", "b": "1"}));
    server.second = 1;
    server.write("p", |new| new["data"] = json!({"a": "1", "b": "2", "c": "3"}));
    let wanted = [
        owner("kubectl-create Update 00", json!({"f:data": {".": {}, "f:a": {}}})),
        owner("p Update 01", json!({"f:data": {"f:b": {}, "f:c": {}}})),
    ];
    assert_eq!(server.owners(), wanted);

    let before = server.live.clone();
    server.second = 2;
    server.write("p", |_| {});
    assert_eq!(server.live, before, "a write that changes nothing changes nothing");

    server.write("q", |new| drop(new.as_object_mut().unwrap().remove("data")));
    assert_eq!(server.owners(), []);
    server.write("q", |new| new["metadata"]["labels"] = json!({"x": "y"}));
    assert_eq!(server.owners(), [], "without owners, updates are not tracked");
}

#[test]
fn a_client_may_send_managed_fields_but_not_through_a_subresource() {
    let mut server = Server::new();
    server.write("a", |new| new["data"] = json!({"a": "1"}));
    let rename = |new: &mut Value| new["metadata"]["managedFields"][0]["manager"] = json!("renamed");
    server.write("a", rename);
    assert_eq!(server.owners()[0].0, "renamed Update 00");
    server.write("a", |new| new["metadata"]["managedFields"][0]["operation"] = json!("bogus"));
    assert_eq!(server.owners()[0].0, "renamed Update 00");
    server.subresource = "status";
    server.write("a", |new| new["metadata"]["managedFields"][0]["manager"] = json!("again"));
    assert_eq!(server.owners()[0].0, "renamed Update 00");
}

#[test]
fn the_creator_owns_what_the_kinds_go_type_does_not_have_by_itself() {
    let mut server = Server::new();
    server.write("creator", |new| {
        let ports = json!([{"containerPort": 80, "protocol": "TCP"}]);
        let containers = json!([{"name": "one", "image": "host", "ports": ports, "resources": {}}]);
        new["metadata"] = json!({"name": "c1", "uid": "u", "labels": {"a": "1"}});
        new["spec"] = json!({
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": containers, "securityContext": {}},
            },
        });
        new["status"] = json!({"ready": true});
    });
    let container = json!({
        ".": {},
        "f:name": {},
        "f:image": {},
        "f:ports": {
            ".": {},
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
        },
        "f:resources": {},
    });
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"one\"}": container}, "f:securityContext": {}},
            },
        },
    });
    assert_eq!(server.owners(), [owner("creator Update 00", fields)]);
}

#[test]
fn scaling_takes_the_replicas_at_no_time_and_scaling_to_zero_leaves_them_to_nobody() {
    let mut server = Server::new();
    server.write("creator", |new| new["spec"] = json!({"replicas": 1, "tags": ["a"]}));
    server.subresource = "scale";
    server.write("kubectl", |new| new["spec"]["replicas"] = json!(2));
    assert_eq!(server.owners()[0], owner("kubectl Update scale -", json!({"f:spec": {"f:replicas": {}}})));
    server.write("kubectl", |new| new["spec"]["replicas"] = json!(0));
    let creators = json!({"f:spec": {"f:tags": {".": {}, "v:\"a\"": {}}}});
    assert_eq!(server.owners(), [owner("creator Update 00", creators)]);
}

#[test]
fn the_oldest_updaters_become_one() {
    let mut server = Server::new();
    server.write("m00", |new| new["data"] = json!({"a": "1"}));
    for number in 1..=12 {
        server.second = number / 8;
        server.write(&format!("m{number:02}"), |new| new["data"][format!("k{number:02}")] = json!("1"));
    }
    let owners = server.owners();
    let fields = json!({"f:data": {".": {}, "f:a": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}}});
    assert_eq!(owners[0], owner("ancient-changes Update 00", fields));
    assert_eq!((owners.len(), owners[1].0.as_str()), (10, "m04 Update 00"));
}

#[test]
fn items_that_cannot_be_told_apart_are_owned_together() {
    let mut server = Server::new();
    let double = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    server.write("u", |new| new["spec"] = containers(json!([{"name": "one", "env": double}]))["spec"].clone());
    let env = &server.owners()[0].1["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"one\"}"]["f:env"];
    assert_eq!(env, &json!({".": {}, "k:{\"name\":\"A\"}": {}}));
    server.write("v", |new| new["spec"] = containers(json!([{"name": "one", "env": [double[0]]}]))["spec"].clone());
    let entry = json!({".": {}, "f:name": {}, "f:value": {}});
    let env = &server.owners()[1].1["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"one\"}"]["f:env"];
    assert_eq!(env, &json!({"k:{\"name\":\"A\"}": entry}));
}
