//! Whether a CRD's schema is structural, and what else Kubernetes refuses in one.
//!
//! Works on the text itself, so that nothing is lost before it is judged. Fields begin at the schema:
//! `properties[spec].type`.

use regex::Regex;
use serde_json::{Value, json};

use super::{Schema, Type};
use crate::status::{FieldError, FieldErrorKind};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Where a schema stands, which decides what it may leave out.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Field,
    Items,
}

pub(super) fn check(openapi: &Value) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new() };
    check.schema(openapi, "", Place::Root);
    check.errors
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn schema(&mut self, openapi: &Value, path: &str, place: Place) {
        let text = |key: &str| openapi.get(key).and_then(Value::as_str).unwrap_or_default();
        self.unsupported(openapi, path);
        self.kind(openapi, path, place);
        self.lists_and_maps(openapi, path);

        let embedded = is_true(openapi, "x-kubernetes-embedded-resource");
        let preserve = is_true(openapi, "x-kubernetes-preserve-unknown-fields");
        if embedded && !preserve && openapi.get("properties").is_none() {
            let what = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            self.required(path, "properties", what);
        }
        if embedded && text("type") != "object" {
            self.invalid(
                path,
                "type",
                &json!(text("type")),
                "must be object if x-kubernetes-embedded-resource is true",
            );
        }
        if place == Place::Root && is_true(openapi, "nullable") {
            self.forbidden(path, "nullable", "nullable cannot be true at the root");
        }
        if openapi.get("properties").is_some()
            && openapi.get("additionalProperties").is_some_and(|it| it != &Value::Bool(false))
        {
            self.forbidden(path, "additionalProperties", "additionalProperties and properties are mutual exclusive");
        }
        for (field, property) in entries(openapi, "properties") {
            let here = join(path, &format!("properties[{field}]"));
            if place == Place::Root && field == "metadata" {
                self.metadata(property, &here);
                continue;
            }
            if (place == Place::Root || embedded)
                && matches!(field.as_str(), "apiVersion" | "kind")
                && property["type"] != "string"
            {
                self.invalid(&here, "type", &property["type"], "must be string");
            }
            self.schema(property, &here, Place::Field);
        }
        if let Some(values @ Value::Object(_)) = openapi.get("additionalProperties") {
            self.schema(values, &join(path, "additionalProperties"), Place::Field);
        }
        match openapi.get("items") {
            Some(items @ Value::Object(_)) => self.schema(items, &join(path, "items"), Place::Items),
            Some(Value::Array(_)) => self.forbidden(path, "items", "items must be a schema object and not an array"),
            _ if text("type") == "array" => self.required(path, "items", "must be specified"),
            _ => {}
        }
        let int_or_string = is_true(openapi, "x-kubernetes-int-or-string");
        self.combinations(openapi, path, int_or_string);
    }

    fn kind(&mut self, openapi: &Value, path: &str, place: Place) {
        let untyped =
            is_true(openapi, "x-kubernetes-int-or-string") || is_true(openapi, "x-kubernetes-preserve-unknown-fields");
        match openapi.get("type").and_then(Value::as_str).unwrap_or_default() {
            "" if place == Place::Root => self.required(path, "type", "must not be empty at the root"),
            "" if untyped => {}
            "" if place == Place::Items => self.required(path, "type", "must not be empty for specified array items"),
            "" => self.required(path, "type", "must not be empty for specified object fields"),
            kind if !TYPES.contains(&kind) => {
                self.errors.push(FieldError::not_supported(join(path, "type"), &json!(kind), &TYPES));
            }
            kind if place == Place::Root && kind != "object" => {
                self.invalid(path, "type", &json!(kind), "must be object at the root");
            }
            _ => {}
        }
    }

    fn unsupported(&mut self, openapi: &Value, path: &str) {
        for keyword in ["$ref", "patternProperties", "definitions", "dependencies", "additionalItems"] {
            if openapi.get(keyword).is_some() {
                self.forbidden(path, keyword, &format!("{keyword} is not supported"));
            }
        }
        if is_true(openapi, "uniqueItems") {
            let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbidden(path, "uniqueItems", why);
        }
        if openapi.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            self.invalid(path, "x-kubernetes-preserve-unknown-fields", &json!(false), "must be true or undefined");
        }
        if let Some(pattern) = openapi.get("pattern").and_then(Value::as_str)
            && let Err(error) = Regex::new(pattern)
        {
            // The last line of the several that the parser draws says what is wrong.
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let why =
                format!("must be a valid regular expression, but isn't: error parsing regexp: {why}: `{pattern}`");
            self.invalid(path, "pattern", &json!(pattern), &why);
        }
    }

    fn lists_and_maps(&mut self, openapi: &Value, path: &str) {
        const LIST: &str = "x-kubernetes-list-type";
        const KEYS: &str = "x-kubernetes-list-map-keys";
        const MAP: &str = "x-kubernetes-map-type";
        let text = |key: &str| openapi.get(key).and_then(Value::as_str).unwrap_or_default();
        let keys: Vec<&str> = openapi[KEYS].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match text(MAP) {
            "" | "atomic" | "granular" => {}
            other => {
                self.errors.push(FieldError::not_supported(join(path, MAP), &json!(other), &["atomic", "granular"]));
            }
        }
        if !text(MAP).is_empty() && text("type") != "object" {
            self.invalid(path, "type", &openapi["type"], "must be object if x-kubernetes-map-type is specified");
        }
        match text(LIST) {
            "" | "atomic" | "set" | "map" => {}
            other => {
                self.errors.push(FieldError::not_supported(join(path, LIST), &json!(other), &["atomic", "set", "map"]));
            }
        }
        if !text(LIST).is_empty() && text("type") != "array" {
            self.invalid(path, "type", &openapi["type"], "must be array if x-kubernetes-list-type is specified");
        }
        if text(LIST) != "map" && !keys.is_empty() {
            self.required(path, LIST, "must be map if x-kubernetes-list-map-keys is non-empty");
        }
        let items = &openapi["items"];
        if text(LIST) == "set" {
            let whole = match items["type"].as_str().unwrap_or_default() {
                "object" => items.get(MAP).is_some_and(|it| it == "atomic"),
                "array" => items.get(LIST).is_none_or(|it| it == "atomic"),
                _ => true,
            };
            if !whole {
                let kind = if items["type"] == "array" { LIST } else { MAP };
                let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.invalid(&join(path, "items"), kind, items.get(kind).unwrap_or(&Value::Null), why);
            }
        }
        if text(LIST) == "map" {
            self.map_keys(items, &keys, &openapi[KEYS], path);
        }
    }

    fn map_keys(&mut self, items: &Value, keys: &[&str], written: &Value, path: &str) {
        const KEYS: &str = "x-kubernetes-list-map-keys";
        if items["type"] != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            return self.invalid(&join(path, "items"), "type", &items["type"], why);
        }
        if keys.is_empty() {
            return self.required(path, KEYS, "must not be empty if x-kubernetes-list-type is map");
        }
        for key in keys {
            let Some(property) = items["properties"].get(key) else {
                self.invalid(path, KEYS, written, "entries must all be names of item properties");
                continue;
            };
            let here = join(path, &format!("items.properties[{key}]"));
            if matches!(property["type"].as_str(), Some("object" | "array")) {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                self.invalid(&here, "type", &property["type"], why);
            }
            let required = items["required"].as_array().is_some_and(|names| names.iter().any(|name| name == key));
            if !required && property.get("default").is_none() {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.required(&here, "default", why);
            }
        }
    }

    /// `metadata` is Kubernetes' own; a CRD may only narrow the names.
    fn metadata(&mut self, openapi: &Value, path: &str) {
        let names = ["name", "generateName"];
        let only_names = entries(openapi, "properties").all(|(field, _)| names.contains(&field.as_str()));
        let plain = openapi
            .as_object()
            .into_iter()
            .flatten()
            .all(|(key, _)| matches!(key.as_str(), "type" | "properties" | "description"));
        if !only_names || !plain {
            let why =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.errors.push(FieldError::forbidden(path, why));
        }
        for (field, property) in entries(openapi, "properties") {
            if property.get("default").is_some() {
                self.forbidden(
                    &join(path, &format!("properties[{field}]")),
                    "default",
                    "must not be set in top-level metadata",
                );
            }
        }
        if openapi["type"] != "object" {
            self.invalid(path, "type", &openapi["type"], "must be object");
        }
    }

    /// Inside `allOf` and the like only values are limited: structure stands outside.
    fn combinations(&mut self, openapi: &Value, path: &str, int_or_string: bool) {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (index, branch) in openapi[keyword].as_array().into_iter().flatten().enumerate() {
                let here = join(path, &format!("{keyword}[{index}]"));
                // The usual way of writing int-or-string repeats its two types in an anyOf.
                self.branch(branch, &here, int_or_string && keyword != "oneOf");
            }
        }
        if let Some(not) = openapi.get("not") {
            self.branch(not, &join(path, "not"), false);
        }
    }

    fn branch(&mut self, openapi: &Value, path: &str, may_have_type: bool) {
        for (field, property) in entries(openapi, "properties") {
            self.branch(property, &join(path, &format!("properties[{field}]")), false);
        }
        if let Some(items @ Value::Object(_)) = openapi.get("items") {
            self.branch(items, &join(path, "items"), false);
        }
        for keyword in ["default"] {
            if openapi.get(keyword).is_some() {
                self.forbidden(path, keyword, "must be undefined to be structural");
            }
        }
        for keyword in ["additionalProperties", "description", "title", "type", "x-kubernetes-validations"] {
            if openapi.get(keyword).is_some() && !(keyword == "type" && may_have_type) {
                self.forbidden(path, keyword, "must be empty to be structural");
            }
        }
        for keyword in [
            "nullable",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ] {
            if is_true(openapi, keyword) {
                self.forbidden(path, keyword, "must be false to be structural");
            }
        }
        self.combinations(openapi, path, may_have_type);
    }

    fn required(&mut self, path: &str, key: &str, what: &str) {
        self.errors.push(FieldError::required(join(path, key), what));
    }

    fn forbidden(&mut self, path: &str, key: &str, why: &str) {
        self.errors.push(FieldError::forbidden(join(path, key), why));
    }

    fn invalid(&mut self, path: &str, key: &str, value: &Value, why: &str) {
        self.errors.push(FieldError::invalid(join(path, key), value, why));
    }
}

/// Defaults must themselves be what the schema asks for.
pub(super) fn check_defaults(schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk_defaults(schema, "", &mut errors);
    errors
}

fn walk_defaults(schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = &schema.default {
        let here = join(path, "default");
        let mut pruned = default.clone();
        if !schema.prune(&mut pruned).is_empty() {
            errors.push(FieldError::invalid(here.as_str(), default, "must not have unknown fields"));
        } else {
            schema.apply_defaults(&mut pruned);
            errors.extend(schema.validate(&pruned, None).into_iter().map(|error| under(error, &here)));
        }
    }
    for (field, property) in &schema.properties {
        walk_defaults(property, &join(path, &format!("properties[{field}]")), errors);
    }
    if let Some(items) = &schema.items {
        walk_defaults(items, &join(path, "items"), errors);
    }
    if let Some(values) = schema.additional.as_ref().filter(|values| values.kind != Type::Any) {
        walk_defaults(values, &join(path, "additionalProperties"), errors);
    }
}

fn under(error: FieldError, path: &str) -> FieldError {
    let FieldError { kind, field, detail } = error;
    let field = match (kind, field.as_str()) {
        (_, "" | "<nil>") => path.to_owned(),
        (FieldErrorKind::Duplicate, index) if index.starts_with('[') => format!("{path}{index}"),
        (_, field) => join(path, field),
    };
    FieldError { kind, field, detail }
}

fn is_true(openapi: &Value, key: &str) -> bool {
    openapi.get(key) == Some(&Value::Bool(true))
}

fn entries<'a>(openapi: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    openapi.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn join(path: &str, key: &str) -> String {
    super::prune::join(path, key)
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
