//! Expectations observed on Kubernetes 1.35.

use serde_json::{Value, json};

use super::*;

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["color"], "properties": {
            "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            "replicas": {"type": "integer"}, "l": {"type": "object"},
        }, "x-kubernetes-validations": [{"rule": "self.replicas < 5", "message": "too many"}]},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    }})
}

fn version(name: &str, storage: bool, more: Value) -> Value {
    let mut version =
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema()}});
    version.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    version
}

fn crd(versions: Value, more: Value) -> Value {
    let names = json!({"plural": "things", "kind": "Thing"});
    let mut spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"metadata": {"name": "things.example.com"}, "spec": spec})
}

fn with_version(more: Value) -> Value {
    crd(json!([version("v1", true, more)]), json!({}))
}

fn said(crd: &Value) -> Vec<String> {
    let errors = Definition::from_crd(crd).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_definition_says_what_is_served() {
    let more = json!({
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                         "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        "additionalPrinterColumns": [{"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1}],
        "selectableFields": [{"jsonPath": ".spec.color"}],
    });
    let versions = json!([version("v1", true, more), version("v1alpha1", false, json!({"served": false}))]);
    let names = json!({"plural": "things", "kind": "Thing", "shortNames": ["th"], "categories": ["all"]});
    let definition = Definition::from_crd(&crd(versions, json!({"names": names}))).unwrap();
    assert!(definition.namespaced);
    assert_eq!((definition.names.singular.as_str(), definition.names.list_kind.as_str()), ("thing", "ThingList"));
    assert_eq!(definition.names.short_names, ["th"]);
    assert_eq!(definition.served().map(|version| version.name.as_str()).collect::<Vec<_>>(), ["v1"]);
    let v1 = definition.storage();
    assert!(v1.has_status);
    let scale = v1.scale.as_ref().unwrap();
    assert_eq!((scale.replicas.as_str(), scale.status_replicas.as_str()), ("/spec/replicas", "/status/replicas"));
    assert_eq!(scale.selector.as_deref(), Some("/status/selector"));
    assert_eq!((v1.columns[0].json_path.as_str(), v1.columns[0].priority), (".spec.color", 1));
    assert_eq!(v1.selectable_fields, ["spec.color"]);
    assert!(v1.schema.properties["metadata"].properties.contains_key("labels"));
    assert!(!definition.versions[1].has_status);
}

#[test]
fn an_object_is_held_against_schema_and_rules() {
    let definition = Definition::from_crd(&with_version(json!({}))).unwrap();
    let version = definition.storage();
    let said = |spec: Value| {
        let mut object =
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec});
        assert!(version.schema.prune(&mut object).is_empty());
        version.schema.apply_defaults(&mut object);
        version.validate(&object, None, false).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(said(json!({"replicas": 1})), Vec::<String>::new());
    assert_eq!(said(json!({"replicas": 9})), ["spec: Invalid value: too many"]);
    let wanted = [
        "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the \
         existing errors to complete validation",
    ];
    assert_eq!(said(json!({"color": "green", "replicas": 9})), wanted);
}

#[test]
fn a_definition_may_narrow_the_name() {
    let mut crd = with_version(json!({}));
    let name = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}});
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = name;
    let definition = Definition::from_crd(&crd).unwrap();
    let object = json!({"metadata": {"name": "long", "labels": {"a": "b"}}, "spec": {"color": "red", "replicas": 1}});
    let errors = definition.storage().validate(&object, None, false);
    assert_eq!(errors[0].to_string(), "metadata.name: Too long: may not be more than 3 bytes");
}

#[test]
fn names_are_checked() {
    let cases = [
        (
            json!({"group": "x"}),
            "metadata.name: Invalid value: \"things.example.com\": must be spec.names.plural+\".\"+spec.group",
        ),
        (
            json!({"scope": "Foo"}),
            "spec.scope: Unsupported value: \"Foo\": supported values: \"Cluster\", \"Namespaced\"",
        ),
        (json!({"scope": null}), "spec.scope: Required value"),
        (json!({"names": {"plural": "things"}}), "spec.names.singular: Required value"),
        (
            json!({"names": {"plural": "things", "kind": "Thing", "listKind": "Thing"}}),
            "spec.names.listKind: Invalid value: \"Thing\": kind and listKind may not be the same",
        ),
        (
            json!({"conversion": {"strategy": "Foo"}}),
            "spec.conversion.strategy: Unsupported value: \"Foo\": supported values: \"None\", \"Webhook\"",
        ),
        (
            json!({"preserveUnknownFields": true}),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to \
             true in spec.versions[*].schema instead",
        ),
    ];
    for (spec, wanted) in cases {
        let said = said(&crd(json!([version("v1", true, json!({}))]), spec));
        assert_eq!(said[0], wanted);
    }
    let said =
        said(&crd(json!([version("V_1", true, json!({}))]), json!({"names": {"plural": "things", "kind": "bad_"}})));
    let starts = |prefix: &str| said.iter().any(|said| said.starts_with(prefix));
    assert!(starts("spec.versions[0].name: Invalid value: \"V_1\": a DNS-1035 label must consist of"), "{said:?}");
    assert!(starts(
        "spec.names.kind: Invalid value: \"bad_\": may have mixed case, but should otherwise match: a DNS-1035"
    ));
}

#[test]
fn what_is_not_served_is_refused() {
    let crd = crd(json!([version("v1", true, json!({}))]), json!({"conversion": {"strategy": "Webhook"}}));
    assert_eq!(
        said(&crd),
        ["spec.conversion.strategy: Forbidden: conversion by webhook is not served by this cluster"]
    );
}

#[test]
fn kubernetes_own_groups_need_an_approval() {
    let mut crd = crd(json!([version("v1", true, json!({}))]), json!({"group": "foo.k8s.io"}));
    crd["metadata"]["name"] = json!("things.foo.k8s.io");
    let wanted = "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \
                  \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
    assert_eq!(said(&crd), [wanted]);
    crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a test"});
    assert_eq!(said(&crd), Vec::<String>::new());
}

#[test]
fn exactly_one_version_is_stored() {
    let refused = ["spec.versions: Invalid value: [\"v1\"]: must have exactly one version marked as storage version"];
    assert_eq!(said(&crd(json!([version("v1", false, json!({}))]), json!({}))), refused);
    let two = json!([version("v1", true, json!({})), version("v2", true, json!({}))]);
    assert!(said(&crd(two, json!({})))[0].ends_with("must have exactly one version marked as storage version"));
    let twice = json!([version("v1", true, json!({})), version("v1", false, json!({}))]);
    assert!(said(&crd(twice, json!({})))[0].ends_with("must contain unique version names"));
}

#[test]
fn what_all_versions_share_is_named_by_its_old_place() {
    let bad = json!({"schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}});
    let wanted = "properties[a].type: Required value: must not be empty for specified object fields";
    let shared = said(&with_version(bad.clone()));
    assert_eq!(shared, [format!("spec.validation.openAPIV3Schema.{wanted}")]);
    let versions = json!([version("v1", true, json!({})), version("v2", false, bad)]);
    assert_eq!(said(&crd(versions, json!({}))), [format!("spec.versions[1].schema.openAPIV3Schema.{wanted}")]);
    let none = said(&with_version(json!({"schema": {}})));
    assert_eq!(none, ["spec.versions[0].schema.openAPIV3Schema: Required value"]);
}

#[test]
fn subresources_columns_and_selectable_fields_are_checked() {
    let scale = |scale: Value| json!({"subresources": {"scale": scale}});
    let column = |column: Value| json!({"additionalPrinterColumns": [column]});
    let selectable = |paths: &[&str]| json!({"selectableFields": paths.iter().map(|path| json!({"jsonPath": path})).collect::<Vec<_>>()});
    let invalid =
        |path: &str, why: &str| format!("spec.selectableFields[0].jsonPath: Invalid value: \"{path}\": {why}");
    let types = "must be one of boolean,date,integer,number,string";
    let cases = [
        (
            scale(json!({"specReplicasPath": ".foo", "statusReplicasPath": ".status.replicas"})),
            vec!["spec.subresources.scale.specReplicasPath: Invalid value: \".foo\": should be a json path under .spec".to_owned()],
        ),
        (
            scale(json!({"specReplicasPath": ".spec.replicas"})),
            vec!["spec.subresources.scale.statusReplicasPath: Required value".to_owned()],
        ),
        (
            column(json!({"name": "A", "type": "foo", "jsonPath": "spec.a"})),
            vec![
                format!("spec.additionalPrinterColumns[0].type: Invalid value: \"foo\": {types}"),
                "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.a\": must be a simple json path starting with ."
                    .to_owned(),
            ],
        ),
        (
            column(json!({"name": "A"})),
            vec![
                format!("spec.additionalPrinterColumns[0].type: Required value: {types}"),
                "spec.additionalPrinterColumns[0].JSONPath: Required value".to_owned(),
            ],
        ),
        (selectable(&[".spec.zz"]), vec![invalid(".spec.zz", "is an invalid path: does not refer to a valid field")]),
        (
            selectable(&[".spec.l"]),
            vec![invalid(
                ".spec.l",
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            )],
        ),
        (selectable(&["spec.color"]), vec![invalid("spec.color", "is an invalid path: expected [ or . but got: spec")]),
        (selectable(&[".spec.color[0]"]), vec![invalid(".spec.color[0]", "is an invalid path: array notation is not allowed")]),
        (
            selectable(&[".spec.color", ".spec.color"]),
            vec!["spec.selectableFields[1].jsonPath: Duplicate value: \".spec.color\"".to_owned()],
        ),
        (
            json!({"deprecationWarning": "x"}),
            vec!["spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for deprecated versions".to_owned()],
        ),
    ];
    for (more, wanted) in cases {
        assert_eq!(said(&with_version(more)), wanted);
    }
}

#[test]
fn a_deprecated_version_warns() {
    let definition = Definition::from_crd(&with_version(json!({"deprecated": true}))).unwrap();
    assert_eq!(definition.storage().deprecation.as_deref(), Some("example.com/v1 Thing is deprecated"));
    let own = json!({"deprecated": true, "deprecationWarning": "use v2"});
    assert_eq!(Definition::from_crd(&with_version(own)).unwrap().storage().deprecation.as_deref(), Some("use v2"));
}

#[test]
fn an_unknown_format_is_warned_of() {
    let mut crd = with_version(json!({}));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["f"] =
        json!({"type": "string", "format": "weird"});
    assert_eq!(Definition::from_crd(&crd).unwrap().warnings, ["unrecognized format \"weird\""]);
}

#[test]
fn what_kubernetes_fills_is_filled() {
    let mut crd = with_version(json!({}));
    default_crd(&mut crd);
    let names = json!({"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"});
    assert_eq!(crd["spec"]["names"], names);
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
}

#[test]
fn a_new_definition_is_established() {
    let definition = Definition::from_crd(&with_version(json!({}))).unwrap();
    let status = definition.status(&Value::Null, &[&definition], "2026-01-01T00:00:00Z");
    let wanted = json!({
        "acceptedNames": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
        "conditions": [
            {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "no conflicts found", "reason": "NoConflicts",
             "status": "True", "type": "NamesAccepted"},
            {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "the initial names have been accepted",
             "reason": "InitialNamesAccepted", "status": "True", "type": "Established"},
        ],
        "storedVersions": ["v1"],
    });
    assert_eq!(status, wanted);
    let again = definition.status(&status, &[], "2027-01-01T00:00:00Z");
    assert_eq!(again, wanted);
}

#[test]
fn a_kind_that_another_definition_of_the_group_has_is_not_accepted() {
    let first = Definition::from_crd(&with_version(json!({}))).unwrap();
    let mut crd = crd(
        json!([version("v1", true, json!({}))]),
        json!({"names": {"plural": "others", "kind": "Thing", "singular": "other"}}),
    );
    crd["metadata"]["name"] = json!("others.example.com");
    let second = Definition::from_crd(&crd).unwrap();
    let status = second.status(&Value::Null, &[&first, &second], "2026-01-01T00:00:00Z");
    assert_eq!(status["conditions"][0]["reason"], "ListKindConflict");
    assert_eq!(status["conditions"][0]["message"], "\"ThingList\" is already in use");
    assert_eq!(status["conditions"][1]["status"], "False");
    assert_eq!(status["conditions"][1]["reason"], "NotAccepted");
    assert_eq!(status["acceptedNames"], json!({"plural": "others", "singular": "other", "kind": ""}));
    // Who was first keeps its names.
    let kept =
        first.status(&first.status(&Value::Null, &[], "2026-01-01T00:00:00Z"), &[&second], "2026-01-01T00:00:00Z");
    assert_eq!(kept["conditions"][0]["status"], "True");
}

#[test]
fn a_version_that_objects_are_stored_in_may_not_go() {
    let mut crd = with_version(json!({}));
    crd["status"] = json!({"storedVersions": ["v0", "v1"]});
    let said: Vec<String> = Definition::from_crd(&crd).unwrap_err().iter().map(ToString::to_string).collect();
    let wanted = "status.storedVersions[0]: Invalid value: \"v0\": missing from spec.versions; v0 was previously a storage version, and \
                  must remain in spec.versions until a storage migration ensures no data remains persisted in v0 and removes v0 from \
                  status.storedVersions";
    assert_eq!(said, [wanted]);
}
