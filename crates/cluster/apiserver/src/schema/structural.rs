//! Whether a CRD's schema is structural, and what else Kubernetes refuses in one.
//!
//! Works on the text itself, so that nothing is lost before it is judged. Fields begin at the schema:
//! `properties[spec].type`.

use regex::Regex;
use serde_json::{Value, json};

use super::{Schema, Type, join};
use crate::object::{fields, list, texts};
use crate::status::FieldError;

const LIST: &str = "x-kubernetes-list-type";
const KEYS: &str = "x-kubernetes-list-map-keys";
const MAP: &str = "x-kubernetes-map-type";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Where a schema stands, which decides what it may leave out.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Field,
    Items,
}

pub(super) fn check(openapi: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_schema(openapi, "", Place::Root, &mut errors);
    errors
}

fn check_schema(openapi: &Value, path: &str, place: Place, errors: &mut Vec<FieldError>) {
    let is = |key: &str| openapi[key] == true;
    let text = |key: &str| openapi[key].as_str().unwrap_or_default();
    let (kind, items, root, list_type) = (text("type"), &openapi["items"], place == Place::Root, text(LIST));
    let (keys, has_properties) = (texts(openapi, &format!("/{KEYS}")), openapi.get("properties").is_some());
    check_supported(openapi, path, errors);

    let is_untyped = kind.is_empty() && (root || !is(INT_OR_STRING) && !is(PRESERVE));
    let where_untyped = match place {
        Place::Root => "must not be empty at the root",
        Place::Field => "must not be empty for specified object fields",
        Place::Items => "must not be empty for specified array items",
    };
    let no_properties = is(EMBEDDED) && !is(PRESERVE) && !has_properties;
    let required = [
        (is_untyped, "type", where_untyped),
        (kind == "array" && items.is_null(), "items", "must be specified"),
        (list_type != "map" && !keys.is_empty(), LIST, "must be map if x-kubernetes-list-map-keys is non-empty"),
        (list_type == "map" && keys.is_empty(), KEYS, "must not be empty if x-kubernetes-list-type is map"),
        (
            no_properties,
            "properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ),
    ];
    let missing = required.into_iter().filter(|(wrong, ..)| *wrong);
    errors.extend(missing.map(|(_, key, why)| FieldError::required(join(path, key), why)));

    let other = |wanted: &str| kind != wanted;
    let invalid = [
        (root && Type::named(kind).is_some() && other("object"), "type", "must be object at the root"),
        (is(EMBEDDED) && other("object"), "type", "must be object if x-kubernetes-embedded-resource is true"),
        (!text(MAP).is_empty() && other("object"), "type", "must be object if x-kubernetes-map-type is specified"),
        (!list_type.is_empty() && other("array"), "type", "must be array if x-kubernetes-list-type is specified"),
        (openapi[PRESERVE] == false, PRESERVE, "must be true or undefined"),
    ];
    let wrong = invalid.into_iter().filter(|(wrong, ..)| *wrong);
    errors.extend(wrong.map(|(_, key, why)| FieldError::invalid(join(path, key), &openapi[key], why)));

    let both = has_properties && openapi.get("additionalProperties").is_some_and(|values| values != false);
    let forbidden = [
        (root && is("nullable"), "nullable", "nullable cannot be true at the root"),
        (both, "additionalProperties", "additionalProperties and properties are mutual exclusive"),
        (items.is_array(), "items", "items must be a schema object and not an array"),
    ];
    let wrong = forbidden.into_iter().filter(|(wrong, ..)| *wrong);
    errors.extend(wrong.map(|(_, key, why)| FieldError::forbidden(join(path, key), why)));

    match list_type {
        "set" => check_set_items(items, &join(path, "items"), errors),
        "map" if !keys.is_empty() => check_map_items(items, &keys, path, errors),
        _ => {}
    }
    for (field, property) in fields(openapi, "/properties") {
        let here = join(path, &format!("properties[{field}]"));
        if root && field == "metadata" {
            check_metadata(property, &here, errors);
            continue;
        }
        let names_type = (root || is(EMBEDDED)) && matches!(field.as_str(), "apiVersion" | "kind");
        if names_type && property["type"] != "string" {
            errors.push(FieldError::invalid(join(&here, "type"), &property["type"], "must be string"));
        }
        check_schema(property, &here, Place::Field, errors);
    }
    if let Some(values @ Value::Object(_)) = openapi.get("additionalProperties") {
        check_schema(values, &join(path, "additionalProperties"), Place::Field, errors);
    }
    if items.is_object() {
        check_schema(items, &join(path, "items"), Place::Items, errors);
    }
    check_branches(openapi, path, is(INT_OR_STRING), errors);
}

/// Keywords and values of keywords that Kubernetes does not know.
fn check_supported(openapi: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for keyword in ["$ref", "patternProperties", "definitions", "dependencies", "additionalItems"] {
        if openapi.get(keyword).is_some() {
            errors.push(FieldError::forbidden(join(path, keyword), &format!("{keyword} is not supported")));
        }
    }
    if openapi["uniqueItems"] == true {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(join(path, "uniqueItems"), why));
    }
    let types = Type::NAMED.map(|(name, _)| name);
    let choices: [(&str, &[&str]); 3] =
        [("type", &types), (MAP, &["atomic", "granular"]), (LIST, &["atomic", "set", "map"])];
    for (key, supported) in choices {
        let chosen = openapi[key].as_str().unwrap_or_default();
        if !chosen.is_empty() && !supported.contains(&chosen) {
            errors.push(FieldError::not_supported(join(path, key), &json!(chosen), supported));
        }
    }
    if let Some(pattern) = openapi["pattern"].as_str()
        && let Err(error) = Regex::new(pattern)
    {
        // The last line of the several that the parser draws says what is wrong.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let why = format!("must be a valid regular expression, but isn't: error parsing regexp: {why}: `{pattern}`");
        errors.push(FieldError::invalid(join(path, "pattern"), &json!(pattern), &why));
    }
}

fn check_set_items(items: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let key = if items["type"] == "array" { LIST } else { MAP };
    let whole = match items["type"].as_str() {
        Some("object") => items[MAP] == "atomic",
        Some("array") => items[LIST].is_null() || items[LIST] == "atomic",
        _ => true,
    };
    if !whole {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(FieldError::invalid(join(path, key), &items[key], why));
    }
}

fn check_map_items(items: &Value, keys: &[String], path: &str, errors: &mut Vec<FieldError>) {
    if items["type"] != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.push(FieldError::invalid(join(path, "items.type"), &items["type"], why));
    }
    for key in keys {
        let Some(property) = items["properties"].get(key) else {
            let why = "entries must all be names of item properties";
            errors.push(FieldError::invalid(join(path, KEYS), &json!(keys), why));
            continue;
        };
        let here = join(path, &format!("items.properties[{key}]"));
        if property["type"] == "object" || property["type"] == "array" {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(join(&here, "type"), &property["type"], why));
        }
        if !texts(items, "/required").contains(key) && property.get("default").is_none() {
            let why =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(join(&here, "default"), why));
        }
    }
}

/// `metadata` is Kubernetes' own; a CRD may only narrow the names.
fn check_metadata(openapi: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let only = |pointer: &str, known: &[&str]| fields(openapi, pointer).all(|(key, _)| known.contains(&key.as_str()));
    if !only("", &["type", "properties", "description"]) || !only("/properties", &["name", "generateName"]) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(path, why));
    }
    for (field, _) in fields(openapi, "/properties").filter(|(_, property)| property.get("default").is_some()) {
        let here = join(path, &format!("properties[{field}].default"));
        errors.push(FieldError::forbidden(here, "must not be set in top-level metadata"));
    }
    if openapi["type"] != "object" {
        errors.push(FieldError::invalid(join(path, "type"), &openapi["type"], "must be object"));
    }
}

fn check_branches(openapi: &Value, path: &str, int_or_string: bool, errors: &mut Vec<FieldError>) {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, branch) in list(openapi, &format!("/{keyword}")).iter().enumerate() {
            let here = join(path, &format!("{keyword}[{index}]"));
            // The usual way of writing int-or-string repeats its two types in an anyOf.
            check_branch(branch, &here, int_or_string && keyword != "oneOf", errors);
        }
    }
    if let Some(not) = openapi.get("not") {
        check_branch(not, &join(path, "not"), false, errors);
    }
}

/// Inside `allOf` and the like only values are limited: structure stands outside.
fn check_branch(openapi: &Value, path: &str, may_have_type: bool, errors: &mut Vec<FieldError>) {
    for (field, property) in fields(openapi, "/properties") {
        check_branch(property, &join(path, &format!("properties[{field}]")), false, errors);
    }
    if openapi["items"].is_object() {
        check_branch(&openapi["items"], &join(path, "items"), false, errors);
    }
    let empty = ["additionalProperties", "description", "title", "type", "x-kubernetes-validations"];
    for (keyword, value) in fields(openapi, "") {
        let why = match keyword.as_str() {
            "default" => "must be undefined to be structural",
            "type" if may_have_type => continue,
            keyword if empty.contains(&keyword) => "must be empty to be structural",
            "nullable" | PRESERVE | EMBEDDED | INT_OR_STRING if value == true => "must be false to be structural",
            _ => continue,
        };
        errors.push(FieldError::forbidden(join(path, keyword), why));
    }
    check_branches(openapi, path, may_have_type, errors);
}

/// Defaults must themselves be what the schema asks for.
pub(super) fn check_defaults(schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = &schema.default {
        let here = join(path, "default");
        let mut pruned = default.clone();
        if !schema.prune(&mut pruned).is_empty() {
            errors.push(FieldError::invalid(here.as_str(), default, "must not have unknown fields"));
        } else {
            schema.apply_defaults(&mut pruned);
            errors.extend(schema.validate(&pruned, None).into_iter().map(|error| match error.field.as_str() {
                "" | "<nil>" => FieldError { field: here.clone(), ..error },
                index if index.starts_with('[') => FieldError { field: format!("{here}{index}"), ..error },
                field => FieldError { field: join(&here, field), ..error },
            }));
        }
    }
    for (field, property) in &schema.properties {
        check_defaults(property, &join(path, &format!("properties[{field}]")), errors);
    }
    if let Some(items) = &schema.items {
        check_defaults(items, &join(path, "items"), errors);
    }
    if let Some(values) = &schema.additional {
        check_defaults(values, &join(path, "additionalProperties"), errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Kubernetes 1.35 says of a schema whose one field `a` is this.
    fn said(field: Value) -> Vec<String> {
        refusals(json!({"type": "object", "properties": {"a": field}}))
    }

    fn refusals(schema: Value) -> Vec<String> {
        let errors = Schema::from_openapi(&schema).err().unwrap_or_default();
        errors.iter().map(FieldError::to_string).collect()
    }

    #[test]
    fn what_is_not_structural_is_refused_in_kubernetes_words() {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let text = json!({"type": "string"});
        let cases = [
            (json!({"description": "x"}), "type: Required value: must not be empty for specified object fields"),
            (
                json!({"type": "foo"}),
                r#"type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            ),
            (json!({"type": "array"}), "items: Required value: must be specified"),
            (
                json!({"type": "object", "properties": {"x": text}, "additionalProperties": text}),
                "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ),
            (
                json!({"type": "array", "uniqueItems": true, "items": text}),
                "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ),
            (json!({"type": "string", "$ref": "#/x"}), "$ref: Forbidden: $ref is not supported"),
            (
                json!({"type": "object", "patternProperties": {}}),
                "patternProperties: Forbidden: patternProperties is not supported",
            ),
            (
                json!({"type": "array", "items": [text]}),
                "items: Forbidden: items must be a schema object and not an array",
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
                "x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
            ),
            (
                json!({"type": "object", "x-kubernetes-embedded-resource": true}),
                "properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without \
                 x-kubernetes-preserve-unknown-fields",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "items": object(json!({"k": text}))}),
                "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["z"],
                       "items": object(json!({"k": text}))}),
                r#"x-kubernetes-list-map-keys: Invalid value: ["z"]: entries must all be names of item properties"#,
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                       "items": object(json!({"k": text}))}),
                "items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must \
                 have a default or be a required property",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": text}),
                r#"items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "foo", "items": text}),
                r#"x-kubernetes-list-type: Unsupported value: "foo": supported values: "atomic", "set", "map""#,
            ),
            (
                json!({"type": "string", "x-kubernetes-list-type": "set"}),
                r#"type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#,
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "set", "items": object(json!({"k": text}))}),
                "items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
            ),
            (
                json!({"type": "object", "properties": {"x": text}, "allOf": [{"properties": {"x": {"default": "q"}}}]}),
                "allOf[0].properties[x].default: Forbidden: must be undefined to be structural",
            ),
            (
                json!({"type": "string", "allOf": [{"description": "x", "maxLength": 3}]}),
                "allOf[0].description: Forbidden: must be empty to be structural",
            ),
        ];
        for (field, wanted) in cases {
            assert_eq!(said(field), [format!("properties[a].{wanted}")]);
        }
    }

    #[test]
    fn the_root_is_an_object_that_is_there() {
        assert_eq!(refusals(json!({})), ["type: Required value: must not be empty at the root"]);
        let wanted = r#"type: Invalid value: "string": must be object at the root"#;
        assert_eq!(refusals(json!({"type": "string"})), [wanted]);
        let wanted = "nullable: Forbidden: nullable cannot be true at the root";
        assert_eq!(refusals(json!({"type": "object", "nullable": true})), [wanted]);
        let wanted = "properties[metadata]: Forbidden: must not specify anything other than name and generateName, \
                      but metadata is implicitly specified";
        let metadata = json!({"type": "object", "properties": {"labels": {"type": "object"}}});
        assert_eq!(refusals(json!({"type": "object", "properties": {"metadata": metadata}})), [wanted]);
        let wanted = r#"properties[apiVersion].type: Invalid value: "integer": must be string"#;
        assert_eq!(refusals(json!({"type": "object", "properties": {"apiVersion": {"type": "integer"}}})), [wanted]);
    }

    #[test]
    fn a_default_must_fit_its_own_schema() {
        let wanted = r#"properties[a].default: Invalid value: "integer":  in body must be of type string: "integer""#;
        assert_eq!(said(json!({"type": "string", "default": 1})), [wanted]);
        let wanted = r#"properties[a].default: Unsupported value: "b": supported values: "a""#;
        assert_eq!(said(json!({"type": "string", "enum": ["a"], "default": "b"})), [wanted]);
        let object = json!({"type": "object", "properties": {"x": {"type": "string"}}, "default": {"y": 1}});
        assert_eq!(said(object), [r#"properties[a].default: Invalid value: {"y":1}: must not have unknown fields"#]);
        let object =
            json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "default": {}});
        assert_eq!(said(object), ["properties[a].default.x: Required value"]);
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        let said = said(json!({"type": "string", "pattern": "["}));
        let begins = "properties[a].pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: ";
        assert!(said[0].starts_with(begins), "{said:?}");
    }

    #[test]
    fn common_good_schemas_pass() {
        let good = [
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+$"}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object", "additionalProperties": true}),
            json!({"type": "string", "default": null, "nullable": true}),
            json!({"type": "object", "properties": {"x": {"type": "string"}}, "anyOf": [{"properties": {"y": {"pattern": "a"}}}]}),
        ];
        for field in good {
            assert_eq!(said(field), Vec::<String>::new());
        }
    }
}
