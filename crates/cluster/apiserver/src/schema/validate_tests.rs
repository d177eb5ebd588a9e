//! Expectations observed on Kubernetes 1.35 with a CRD of this schema.

use serde_json::json;

use super::*;

fn schema() -> Schema {
    Schema::from_openapi(&json!({"type": "object", "required": ["spec"], "properties": {"spec": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
            "replicas": {"type": "integer", "minimum": 1, "maximum": 20, "multipleOf": 1},
            "big": {"type": "integer", "format": "int64"},
            "excl": {"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": true},
            "half": {"type": "number", "multipleOf": 0.5},
            "mode": {"type": "string", "enum": ["b", "a"]},
            "num": {"type": "integer", "enum": [1, 2]},
            "flag": {"type": "boolean"},
            "when": {"type": "string", "format": "date-time"},
            "weird": {"type": "string", "format": "weird"},
            "ios": {"x-kubernetes-int-or-string": true},
            "nul": {"type": "string", "nullable": true},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "integer"}}},
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "args": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            "uniq": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "proto"],
                "items": {"type": "object", "required": ["port"], "properties": {
                    "port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"}, "v": {"type": "string"}}},
            },
            "m": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "integer"}},
            "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "any": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "all": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "allOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "nott": {"type": "object", "properties": {"a": {"type": "string"}}, "not": {"required": ["a"]}},
        },
    }}}))
    .unwrap()
}

/// What is said of a spec that has a good name besides.
fn said(mut spec: Value) -> Vec<String> {
    if let Some(fields) = spec.as_object_mut() {
        fields.entry("name").or_insert(json!("ab"));
    }
    let schema = schema();
    let mut object = json!({"spec": spec});
    schema.apply_defaults(&mut object);
    schema.validate(&object, None).iter().map(FieldError::to_string).collect()
}

#[test]
fn a_wrong_type_is_named_with_the_right_one() {
    let cases = [
        (
            json!({"replicas": "x"}),
            r#"spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string""#,
        ),
        (
            json!({"flag": "x"}),
            r#"spec.flag: Invalid value: "string": spec.flag in body must be of type boolean: "string""#,
        ),
        (
            json!({"args": "x"}),
            r#"spec.args: Invalid value: "string": spec.args in body must be of type array: "string""#,
        ),
        (
            json!({"args": ["a", 1]}),
            r#"spec.args[1]: Invalid value: "integer": spec.args[1] in body must be of type string: "integer""#,
        ),
        (
            json!({"args": ["a", null]}),
            r#"spec.args[1]: Invalid value: "null": spec.args[1] in body must be of type string: "null""#,
        ),
        (
            json!({"m": {"a.b": "x"}}),
            r#"spec.m.a.b: Invalid value: "string": spec.m.a.b in body must be of type integer: "string""#,
        ),
        (
            json!({"ios": true}),
            r#"spec.ios: Invalid value: "boolean": spec.ios in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({"ios": 1.5}),
            r#"spec.ios: Invalid value: "number": spec.ios in body must be of type integer,string: "number""#,
        ),
        (
            json!({"big": 3e22}),
            r#"spec.big: Invalid value: "number": spec.big in body must be of type integer: "number""#,
        ),
        (
            json!({"raw": {"a": "x", "z": {}}}),
            r#"spec.raw.a: Invalid value: "string": spec.raw.a in body must be of type integer: "string""#,
        ),
        (json!([]), r#"spec: Invalid value: "array": spec in body must be of type object: "array""#),
        (json!({"when": "x"}), r#"spec.when: Invalid value: "x": spec.when in body must be of type date-time: "x""#),
    ];
    for (spec, wanted) in cases {
        assert_eq!(said(spec), [wanted]);
    }
}

#[test]
fn limits_are_told_in_kubernetes_words() {
    let cases = [
        (json!({"name": "a"}), r#"spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long"#),
        (json!({"name": "abcdef"}), "spec.name: Too long: may not be more than 5 bytes"),
        (json!({"name": "AB"}), "spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'"),
        (
            json!({"replicas": 0}),
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
        ),
        (
            json!({"replicas": 21}),
            "spec.replicas: Invalid value: 21: spec.replicas in body should be less than or equal to 20",
        ),
        (json!({"excl": 1}), "spec.excl: Invalid value: 1: spec.excl in body should be greater than 1"),
        (json!({"excl": 5}), "spec.excl: Invalid value: 5: spec.excl in body should be less than 5"),
        (json!({"half": 1.3}), "spec.half: Invalid value: 1.3: spec.half in body should be a multiple of 0.5"),
        (json!({"mode": "x"}), r#"spec.mode: Unsupported value: "x": supported values: "b", "a""#),
        (json!({"num": 5}), r#"spec.num: Unsupported value: 5: supported values: "1", "2""#),
        (json!({"args": []}), "spec.args: Invalid value: 0: spec.args in body should have at least 1 items"),
        (json!({"args": ["a", "b", "c"]}), "spec.args: Too many: 3: must have at most 2 items"),
        (json!({"m": {}}), "spec.m: Invalid value: 0: spec.m in body should have at least 1 properties"),
        (json!({"m": {"a": 1, "b": 2, "c": 3}}), "spec.m: Too many: 3: must have at most 2 items"),
        (json!({"uniq": ["a", "a"]}), r#"spec.uniq[1]: Duplicate value: "a""#),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "proto": "TCP", "v": "x"}]}),
            r#"spec.ports[1]: Duplicate value: {"port":1,"proto":"TCP"}"#,
        ),
    ];
    for (spec, wanted) in cases {
        assert_eq!(said(spec), [wanted]);
    }
}

#[test]
fn several_things_can_be_wrong_with_one_value() {
    let wanted = [
        r#"spec.replicas: Invalid value: "number": spec.replicas in body must be of type integer: "number""#,
        "spec.replicas: Invalid value: 1.5: spec.replicas in body should be a multiple of 1",
    ];
    assert_eq!(said(json!({"replicas": 1.5})), wanted);
    let spec = json!({"el": 1, "flag": "q", "name": 1});
    assert_eq!(said(spec).len(), 2);
}

#[test]
fn what_is_required_is_missed() {
    let schema = schema();
    let of = |object| schema.validate(&object, None).iter().map(FieldError::to_string).collect::<Vec<_>>();
    assert_eq!(of(json!({})), ["spec: Required value"]);
    assert_eq!(of(json!({"spec": {}})), ["spec.name: Required value"]);
    assert_eq!(said(json!({"ports": [{"v": "x"}]})), ["spec.ports[0].port: Required value"]);
    assert_eq!(said(json!({"emb": {}})), ["spec.emb.apiVersion: Required value", "spec.emb.kind: Required value"]);
}

#[test]
fn alternatives_are_told_with_what_is_missing_for_the_nearest() {
    let none =
        r#"<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid"#;
    assert_eq!(said(json!({"one": {}})), [none, "spec.one.a: Required value"]);
    let two = r#"<nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives"#;
    assert_eq!(said(json!({"one": {"a": "", "b": ""}})), [two]);
    let any = r#"<nil>: Invalid value: "": "spec.any" must validate at least one schema (anyOf)"#;
    assert_eq!(said(json!({"any": {}})), [any, "spec.any.a: Required value"]);
    let all = r#"<nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf). None validated"#;
    assert_eq!(said(json!({"all": {}})), ["spec.all.a: Required value", "spec.all.b: Required value", all]);
    let not = r#"<nil>: Invalid value: "": "spec.nott" must not validate the schema (not)"#;
    assert_eq!(said(json!({"nott": {"a": "x"}})), [not]);
    assert!(said(json!({"one": {"a": ""}, "any": {"b": ""}, "all": {"a": "", "b": ""}, "nott": {}})).is_empty());
}

#[test]
fn what_fits_is_not_complained_about() {
    let spec = json!({
        "replicas": 3.0, "excl": 1.5, "mode": "a", "num": 2, "flag": true, "when": "2020-01-01T00:00:00Z", "weird": "x",
        "ios": "10%", "nul": null, "raw": {"z": 1}, "args": ["a"], "uniq": ["a", "b"], "m": {"a": 1},
        "emb": {"apiVersion": "v1", "kind": "A"}, "ports": [{"port": 1}, {"port": 1, "proto": "UDP"}],
    });
    assert_eq!(said(spec), Vec::<String>::new());
}

#[test]
fn what_an_update_leaves_alone_is_not_checked_again() {
    let schema = schema();
    let old = json!({"spec": {"name": "TOO LONG", "uniq": ["a", "a"], "ports": [{"port": 1, "proto": "TCP", "v": 5}]}});
    let mut new = old.clone();
    new["spec"]["flag"] = json!(true);
    new["spec"]["ports"] = json!([{"port": 2, "proto": "TCP"}, {"port": 1, "proto": "TCP", "v": 5}]);
    assert_eq!(schema.validate(&new, Some(&old)), []);
    new["spec"]["name"] = json!("ALSO");
    assert_eq!(schema.validate(&new, Some(&old)).len(), 1);
    // Of a text only the first that is wrong is told.
    assert_eq!(schema.validate(&old, None).len(), 3);
}

#[test]
fn snapshots_are_held_against_their_schema_but_metadata_is_not() {
    let schema = super::super::builtin("snapshot.storage.k8s.io", "v1", "VolumeSnapshot").unwrap();
    let mut object = json!({"metadata": {"ownerReferences": [{"kind": "A"}]}, "spec": {"source": {}}});
    assert_eq!(schema.validate(&object, None), []);
    object["spec"] = json!({"volumeSnapshotClassName": 1});
    let said: Vec<String> = schema.validate(&object, None).iter().map(FieldError::to_string).collect();
    let wanted = [
        "spec.source: Required value",
        r#"spec.volumeSnapshotClassName: Invalid value: "integer": spec.volumeSnapshotClassName in body must be of type string: "integer""#,
    ];
    assert_eq!(said, wanted);
}
