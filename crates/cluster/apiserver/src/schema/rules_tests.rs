//! Expectations observed on Kubernetes 1.35 with CRDs of these schemas.

use serde_json::json;

use super::*;

fn schema(spec: Value) -> Schema {
    Schema::from_openapi(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

fn said(schema: &Schema, spec: Value, old: Option<Value>) -> Vec<String> {
    let old = old.map(|spec| json!({"spec": spec}));
    schema.check_rules(&json!({"spec": spec}), old.as_ref()).iter().map(FieldError::to_string).collect()
}

/// What is said of a rule on an object with one integer field `x`.
fn refused(rule: Value) -> Vec<String> {
    let spec = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "x-kubernetes-validations": [rule]});
    let errors = Schema::from_openapi(&json!({"type": "object", "properties": {"a": spec}})).err().unwrap_or_default();
    errors.iter().map(FieldError::to_string).collect()
}

fn replicas() -> Schema {
    schema(json!({
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"}, "name": {"type": "string"}, "args": {"type": "array", "items": {"type": "string"}},
            "m": {"type": "object", "additionalProperties": {"type": "integer",
                  "x-kubernetes-validations": [{"rule": "self < 5", "message": "small"}]}},
        },
        "x-kubernetes-validations": [
            {"rule": "!has(self.replicas) || self.replicas < 10", "message": "too many"},
            {"rule": "!has(self.replicas) || self.replicas != 7"},
            {"rule": "!has(self.replicas) || self.replicas != 8", "messageExpression": "'eight is ' + self.name",
             "reason": "FieldValueForbidden", "fieldPath": ".replicas"},
            {"rule": "!has(self.replicas) || self.replicas != 6", "message": "dup", "reason": "FieldValueDuplicate", "fieldPath": ".replicas"},
            {"rule": "!has(self.replicas) || self.replicas != 5", "message": "req", "reason": "FieldValueRequired"},
            {"rule": "!has(self.replicas) || self.replicas != 4 || self.args[3] == 'x'"},
        ],
    }))
}

#[test]
fn a_broken_rule_is_told_by_its_message_expression_message_or_text() {
    let schema = replicas();
    let cases = [
        (json!({"replicas": 21}), "spec: Invalid value: too many"),
        (json!({"replicas": 7}), "spec: Invalid value: failed rule: !has(self.replicas) || self.replicas != 7"),
        (json!({"replicas": 8, "name": "ab"}), "spec.replicas: Forbidden: eight is ab"),
        (json!({"replicas": 6}), "spec.replicas: Duplicate value"),
        (json!({"replicas": 5}), "spec: Required value: req"),
        (
            json!({"replicas": 4}),
            "spec: Invalid value: \"object\": no such key: args evaluating rule: !has(self.replicas) || self.replicas != 4 || self.args[3] == 'x'",
        ),
        (json!({"m": {"q": 9}}), "spec.m[q]: Invalid value: 9: small"),
    ];
    for (spec, wanted) in cases {
        assert_eq!(said(&schema, spec, None), [wanted]);
    }
    assert_eq!(said(&schema, json!({"replicas": 3, "m": {"q": 4}}), None), Vec::<String>::new());
}

#[test]
fn a_message_expression_that_fails_gives_way_to_the_rule() {
    let wanted = "spec.replicas: Forbidden: failed rule: !has(self.replicas) || self.replicas != 8";
    assert_eq!(said(&replicas(), json!({"replicas": 8}), None), [wanted]);
}

#[test]
fn a_transition_rule_runs_only_where_there_was_a_value() {
    let frozen =
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]});
    let schema = schema(json!({"type": "object", "properties": {
        "imm": frozen,
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"], "items": {
            "type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}, "v": frozen}}},
    }}));
    assert_eq!(said(&schema, json!({"imm": "x"}), None), Vec::<String>::new());
    assert_eq!(said(&schema, json!({"imm": "x"}), Some(json!({}))), Vec::<String>::new());
    let wanted = "spec.imm: Invalid value: \"y\": is immutable";
    assert_eq!(said(&schema, json!({"imm": "y"}), Some(json!({"imm": "x"}))), [wanted]);
    // Items are compared by their keys, wherever they stand.
    let old = json!({"ports": [{"port": 1, "v": "a"}, {"port": 2, "v": "b"}]});
    let new = json!({"ports": [{"port": 2, "v": "c"}, {"port": 1, "v": "a"}, {"port": 3, "v": "z"}]});
    assert_eq!(said(&schema, new, Some(old)), ["spec.ports[0].v: Invalid value: \"c\": is immutable"]);
}

#[test]
fn an_optional_old_value_is_asked_for() {
    let schema =
        schema(json!({"type": "object", "properties": {"x": {"type": "integer"}}, "x-kubernetes-validations": [
            {"rule": "!oldSelf.hasValue() || self.x >= oldSelf.value().x", "message": "grows", "optionalOldSelf": true},
        ]}));
    assert_eq!(said(&schema, json!({"x": 1}), None), Vec::<String>::new());
    assert_eq!(said(&schema, json!({"x": 1}), Some(json!({"x": 2}))), ["spec: Invalid value: grows"]);
}

#[test]
fn optional_fields_are_absent_or_carried_through() {
    let deep = json!({"type": "object", "properties": {"b": {"type": "integer"}, "m": {"type": "object", "additionalProperties": {"type": "integer"}}}});
    let schema = schema(
        json!({"type": "object", "properties": {"x": {"type": "integer"}, "a": deep}, "x-kubernetes-validations": [
            {"rule": "self.?x.orValue(9) > 3", "message": "x"},
            {"rule": "self.?a.b.orValue(9) > 3", "message": "ab"},
            {"rule": "self.?a.?m[?'k'].orValue(9) > 3", "message": "amk"},
            {"rule": "!self.?x.hasValue() || self.x != 4", "message": "four"},
            {"rule": "oldSelf.?x.orValue(0) <= self.?x.orValue(0)", "message": "grows", "optionalOldSelf": true},
            {"rule": "oldSelf.a.b.orValue(0) <= self.?a.b.orValue(9)", "message": "grows too", "optionalOldSelf": true},
        ]}),
    );
    let none: [&str; 0] = [];
    assert_eq!(said(&schema, json!({}), None), none);
    assert_eq!(said(&schema, json!({"a": {}}), None), none);
    assert_eq!(said(&schema, json!({"x": 5, "a": {"b": 5, "m": {"k": 5}}}), None), none);
    let all = ["spec: Invalid value: x", "spec: Invalid value: ab", "spec: Invalid value: amk"];
    assert_eq!(said(&schema, json!({"x": 1, "a": {"b": 1, "m": {"k": 1}}}), None), all);
    assert_eq!(said(&schema, json!({"x": 4}), None), ["spec: Invalid value: four"]);
    let old = json!({"x": 8, "a": {"b": 8}});
    assert_eq!(
        said(&schema, json!({"x": 7, "a": {"b": 7}}), Some(old)),
        ["spec: Invalid value: grows", "spec: Invalid value: grows too"]
    );
}

#[test]
fn a_rule_that_a_value_broke_before_does_not_stop_an_update_elsewhere() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 5"}]}, "b": {"type": "string"},
    }}));
    let old = json!({"a": 9, "b": "x"});
    assert_eq!(said(&schema, json!({"a": 9, "b": "y"}), Some(old.clone())), Vec::<String>::new());
    assert_eq!(said(&schema, json!({"a": 8, "b": "y"}), Some(old)).len(), 1);
}

#[test]
fn rules_see_values_by_their_schema() {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "until": {"type": "string", "format": "date-time"}, "timeout": {"type": "string", "format": "duration"},
            "ratio": {"type": "number"}, "namespace": {"type": "string"}, "a-b": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            "size": {"x-kubernetes-int-or-string": true},
        },
        "x-kubernetes-validations": [
            {"rule": "self.until > timestamp('2024-01-01T00:00:00Z')"},
            {"rule": "self.timeout <= duration('1h')"},
            {"rule": "self.ratio == 2.0"},
            {"rule": "self.__namespace__ == 'x' && self.a__dash__b == 'y'"},
            {"rule": "self.labels['a-b'] == 'v' && self.labels.all(k, k.startsWith('a'))"},
            {"rule": "self.list.exists(item, item.n == 2) && size(self.list) == 2"},
            {"rule": "self.list.map(item, item.n).sum() == 3"},
            {"rule": "quantity(self.size).isGreaterThan(quantity('1Mi'))"},
            {"rule": "type(self.size) == string ? self.size.matches('^[0-9]+Gi$') : self.size > 0"},
            {"rule": "self.list.all(i, self.list.exists_one(j, i.n == j.n))"},
        ],
    }));
    let spec = json!({
        "until": "2025-01-01T00:00:00Z", "timeout": "30m", "ratio": 2, "namespace": "x", "a-b": "y", "size": "1Gi",
        "labels": {"a-b": "v"}, "list": [{"n": 1}, {"n": 2}],
    });
    assert_eq!(said(&schema, spec, None), Vec::<String>::new());
}

#[test]
fn a_rule_that_does_not_compile_is_refused_with_its_place() {
    let wanted = "properties[a].x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"self.y \\u003e 1\",\"Message\":\"\",\
                  \"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: \
                  ERROR: <input>:1:5: undefined field 'y'\n | self.y > 1\n | ....^";
    assert_eq!(refused(json!({"rule": "self.y > 1"})), [wanted]);
    let said = refused(json!({"rule": "foo > 1"}));
    let wanted =
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo > 1\n | ^";
    assert!(said[0].ends_with(wanted), "{said:?}");
    let said = refused(json!({"rule": "self.x >"}));
    assert!(
        said[0].contains("compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>'"),
        "{said:?}"
    );
    assert!(refused(json!({"rule": "self.x"}))[0].ends_with("cel expression must evaluate to a bool"));
    assert_eq!(refused(json!({"rule": "has(self.x)"})), [""; 0]);
    let said = refused(json!({"rule": "self.x > 1", "messageExpression": "self.x"}));
    assert!(said[0].ends_with("messageExpression must evaluate to a string"), "{said:?}");
    let said = refused(json!({"rule": "self.x > 1", "messageExpression": "("}));
    assert!(said[0].contains("messageExpression compilation failed: ERROR:"), "{said:?}");
    let said = refused(json!({"rule": "foo(self.x)"}));
    let wanted = "compilation failed: ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n | foo(self.x)\n | ...^";
    assert!(said[0].ends_with(wanted), "{said:?}");
}

#[test]
fn what_stands_beside_a_rule_is_checked_too() {
    let at = "properties[a].x-kubernetes-validations[0]";
    let cases = [
        (
            json!({"rule": "self.x > 1", "reason": "Foo"}),
            "reason: Unsupported value: \"Foo\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \
             \"FieldValueInvalid\", \"FieldValueRequired\"",
        ),
        (json!({"rule": "self.x > 1", "fieldPath": ".y"}), "fieldPath: Invalid value: \".y\": must be a valid path"),
        (json!({"rule": ""}), "rule: Required value: rule is not specified"),
        (
            json!({"rule": "self.x > 1", "message": "a\nb"}),
            "message: Invalid value: \"a\\nb\": must not contain line breaks",
        ),
        (
            json!({"rule": "self.x > 1\n && self.x < 5"}),
            "message: Required value: message must be specified if rule contains line breaks",
        ),
    ];
    for (rule, wanted) in cases {
        assert_eq!(refused(rule), [format!("{at}.{wanted}")]);
    }
}

#[test]
fn items_without_identity_have_no_old_value() {
    let openapi = json!({"type": "object", "properties": {"a": {"type": "array", "items": {
        "type": "string", "x-kubernetes-validations": [{"rule": "self==oldSelf"}]}}}});
    let said: Vec<String> = Schema::from_openapi(&openapi).unwrap_err().iter().map(FieldError::to_string).collect();
    let wanted = "properties[a].items.x-kubernetes-validations[0].rule: Invalid value: \"self==oldSelf\": \
                  oldSelf cannot be used on the uncorrelatable portion of the schema within properties[a]";
    assert_eq!(said, [wanted]);
}

#[test]
fn monstrous_rules_are_refused_or_run_but_never_crash() {
    let deep = format!("{}true{}", "(".repeat(1500), ")".repeat(1500));
    let long = format!("self.x > 0 && {}", vec!["1 == 1"; 400].join(" && "));
    let sum = format!("{} > 0", vec!["1"; 1000].join("+"));
    let not = format!("{}true", "!".repeat(3000));
    let selects = format!("self{} == 1", "['a']".repeat(700));
    for rule in [deep, long, sum, not, selects, "x".repeat(100_000)] {
        let spec = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "x-kubernetes-validations": [{"rule": rule}]});
        if let Ok(schema) = Schema::from_openapi(&json!({"type": "object", "properties": {"spec": spec}})) {
            said(&schema, json!({"x": 1}), None);
        }
    }
}
