//! Expectations are what Kubernetes 1.35 answered to the same patches of a Deployment.

use std::sync::Arc;

use serde_json::{Value, json};

use super::strategic;
use crate::schema::{PatchStrategy, Schema, Type};

fn object(properties: &[(&str, Schema)]) -> Schema {
    let properties = properties.iter().map(|(name, schema)| ((*name).to_owned(), Arc::new(schema.clone()))).collect();
    Schema { kind: Type::Object, properties, ..Schema::default() }
}

fn list(items: Schema, patch: PatchStrategy) -> Schema {
    Schema { kind: Type::Array, items: Some(Arc::new(items)), patch, ..Schema::default() }
}

fn of_kind(kind: Type) -> Schema {
    Schema { kind, ..Schema::default() }
}

/// Something of the shape of a pod template.
fn schema() -> Schema {
    let by = |key: &str| PatchStrategy::Merge { key: Some(key.to_owned()), retain_keys: false };
    let set = PatchStrategy::Merge { key: None, retain_keys: false };
    let text = of_kind(Type::String);
    let ports = list(object(&[("containerPort", of_kind(Type::Integer)), ("name", text.clone())]), by("containerPort"));
    let container = object(&[("name", text.clone()), ("image", text.clone()), ("ports", ports)]);
    let labels = Schema { additional: Some(Arc::new(text.clone())), ..of_kind(Type::Object) };
    let strategy = Schema { patch: PatchStrategy::RetainKeys, ..object(&[("type", text.clone())]) };
    object(&[
        ("labels", labels),
        ("finalizers", list(text.clone(), set)),
        ("containers", list(container.clone(), by("name"))),
        ("args", list(text, PatchStrategy::Plain)),
        ("strategy", strategy),
        ("whole", Schema { patch: PatchStrategy::Replace, ..container }),
    ])
}

fn live() -> Value {
    json!({
        "labels": {"a": "1", "x": ""},
        "containers": [
            {"name": "one", "image": "host", "ports": [{"containerPort": 80, "name": "web"}]},
            {"name": "two", "image": "host"},
        ],
        "args": ["a", "b"],
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    })
}

fn patched(patch: Value) -> Value {
    strategic(&live(), &patch, &schema()).unwrap()
}

fn names(object: &Value) -> Vec<&str> {
    object["containers"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

fn refused(patch: Value) -> (u16, String) {
    let status = strategic(&live(), &patch, &schema()).unwrap_err();
    (status.code, status.message)
}

#[test]
fn a_list_item_is_merged_by_its_key_and_a_new_one_comes_after_it() {
    let result = patched(json!({"containers": [{"name": "one", "image": "b"}, {"name": "three", "image": "c"}]}));
    assert_eq!(names(&result), ["one", "three", "two"]);
    assert_eq!(result["containers"][0]["ports"], live()["containers"][0]["ports"]);
    assert_eq!(result["containers"][0]["image"], "b");
}

#[test]
fn an_item_deeper_down_is_merged_by_its_own_key() {
    let result = patched(json!({"containers": [{"name": "one", "ports": [{"containerPort": 81}]}]}));
    let ports = json!([{"containerPort": 81}, {"containerPort": 80, "name": "web"}]);
    assert_eq!(result["containers"][0]["ports"], ports);
    assert_eq!(result["containers"][0]["image"], "host");
}

#[test]
fn a_list_item_is_deleted_and_a_list_replaced_by_directive() {
    let result = patched(json!({"containers": [{"name": "one", "$patch": "delete"}]}));
    assert_eq!(names(&result), ["two"]);
    let result = patched(json!({"containers": [{"$patch": "replace"}, {"name": "only", "image": "o"}]}));
    assert_eq!(result["containers"], json!([{"name": "only", "image": "o"}]));
}

#[test]
fn the_wanted_order_is_kept() {
    let two_first = json!({"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}]});
    assert_eq!(names(&patched(two_first)), ["two", "one"]);
    let order = json!([{"name": "two"}, {"name": "zero"}, {"name": "one"}]);
    let between = json!({"$setElementOrder/containers": order, "containers": [{"name": "zero", "image": "z"}]});
    assert_eq!(names(&patched(between)), ["two", "zero", "one"]);
}

#[test]
fn a_new_item_stands_where_a_deleted_one_stood() {
    let object = json!({"containers": [{"name": "a"}, {"name": "d"}, {"name": "e"}]});
    let patch = json!({
        "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
        "containers": [{"name": "c"}, {"name": "d", "$patch": "delete"}],
    });
    assert_eq!(names(&strategic(&object, &patch, &schema()).unwrap()), ["e", "c", "a"]);
}

#[test]
fn what_kubectl_sends_to_remove_an_item_and_a_field() {
    let patch = json!({
        "labels": {"x": null},
        "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
        "$setElementOrder/containers": [{"name": "two"}],
        "containers": [{"name": "one", "$patch": "delete"}, {"name": "two", "image": "new"}],
    });
    let wanted = json!({
        "labels": {"a": "1"},
        "containers": [{"name": "two", "image": "new"}],
        "args": ["a", "b"],
        "strategy": {"type": "Recreate"},
    });
    assert_eq!(patched(patch), wanted);
}

#[test]
fn scalars_merge_as_a_set_and_are_deleted_by_a_parallel_list() {
    let finalizers = |live: Value, patch: Value| {
        strategic(&json!({"finalizers": live}), &patch, &schema()).unwrap()["finalizers"].clone()
    };
    let merged = finalizers(json!(["x/a", "x/b"]), json!({"finalizers": ["x/c", "x/a"]}));
    assert_eq!(merged, json!(["x/c", "x/a", "x/b"]));
    let deleted = finalizers(merged, json!({"$deleteFromPrimitiveList/finalizers": ["x/b"]}));
    assert_eq!(deleted, json!(["x/c", "x/a"]));
    let all = json!({
        "$deleteFromPrimitiveList/finalizers": ["x/c"],
        "$setElementOrder/finalizers": ["x/d", "x/a"],
        "finalizers": ["x/d"],
    });
    assert_eq!(finalizers(deleted, all), json!(["x/d", "x/a"]));
}

#[test]
fn a_list_without_strategy_is_replaced() {
    assert_eq!(patched(json!({"args": ["c"]}))["args"], json!(["c"]));
}

#[test]
fn maps_are_replaced_or_emptied_by_directive_or_by_strategy() {
    assert_eq!(patched(json!({"labels": {"$patch": "replace", "q": "r"}}))["labels"], json!({"q": "r"}));
    assert_eq!(patched(json!({"labels": {"$patch": "delete", "q": "r"}}))["labels"], json!({}));
    let object = json!({"whole": {"name": "a", "image": "b"}});
    let result = strategic(&object, &json!({"whole": {"name": "c"}}), &schema()).unwrap();
    assert_eq!(result, json!({"whole": {"name": "c"}}));
}

#[test]
fn null_removes_also_what_was_never_there() {
    assert_eq!(patched(json!({"labels": {"x": null, "no": null, "y": "1"}}))["labels"], json!({"a": "1", "y": "1"}));
    let result = patched(json!({"finalizers": null, "new": {"a": null, "b": 1}}));
    assert_eq!((result.get("finalizers"), &result["new"]), (None, &json!({"b": 1})));
}

#[test]
fn mistakes_are_told_as_kubernetes_tells_them() {
    let first = |item: Value| json!({"containers": [item]});
    let told = [
        (first(json!({"image": "x"})), 500, "map: map[image:x] does not contain declared merge key: name"),
        (first(json!({"$patch": "delete"})), 500, "map: map[$patch:delete] does not contain declared merge key: name"),
        (
            first(json!({"$patch": "bogus", "name": "one"})),
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:one]",
        ),
        (first(json!({"$patch": "merge", "name": "one"})), 500, "merging lists cannot yet be specified in the patch"),
        (json!({"labels": {"$patch": "merge"}}), 500, "unknown patch type: merge in map: map[$patch:merge]"),
        (json!({"$retainKeys": "x"}), 400, "invalid patch format of retainKeys"),
        (json!({"$retainKeys": ["args"], "labels": {}}), 400, "invalid patch format of retainKeys"),
        (json!({"$deleteFromPrimitiveList": ["x"]}), 400, "invalid patch format of primitive list"),
        (json!({"$setElementOrder": ["x"]}), 400, "invalid patch format of setElementOrder list"),
        (json!({"$setElementOrder/containers": "x"}), 500, "expected a []interface {}, but received a string"),
        (
            json!({"$setElementOrder/containers": [{"name": "one"}], "containers": [{"name": "zz", "image": "x"}]}),
            500,
            "The order in patch list:\n[map[image:x name:zz]]\n doesn't match $setElementOrder list:\n[map[name:one]]\n",
        ),
        (json!([1]), 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ];
    for (patch, code, message) in told {
        assert_eq!(refused(patch), (code, message.to_owned()));
    }
    let (code, message) = refused(json!({"containers": ["a"]}));
    assert_eq!(code, 500);
    assert!(message.starts_with("list element types are not identical: [[map[image:host "), "{message}");
    assert!(message.ends_with("] [a]]"), "{message}");
}
