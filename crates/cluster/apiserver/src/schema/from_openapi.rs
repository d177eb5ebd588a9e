//! A CRD's `openAPIV3Schema` read into the tree.
//!
//! The text comes out of a parsed request, whose depth `serde_json` limits to 128: recursion here is bounded by that.

use std::sync::Arc;

use serde_json::Value;

use super::{Limits, ListType, Rule, Rules, Schema, Type, structural};
use crate::status::FieldError;

impl Schema {
    /// Checks that the schema is structural and its rules compile, then reads it. The fields of errors begin at the
    /// schema (`properties[spec].type`): the caller says where it stands.
    pub fn from_openapi(openapi: &Value) -> Result<Self, Vec<FieldError>> {
        Self::with_rules(openapi).map(|(schema, _)| schema)
    }

    /// The same with the compiled rules, which take the longest.
    pub fn with_rules(openapi: &Value) -> Result<(Self, Rules), Vec<FieldError>> {
        let errors = structural::check(openapi);
        if !errors.is_empty() {
            return Err(errors);
        }
        let schema = parse(openapi);
        let mut errors = structural::check_defaults(&schema);
        match Rules::compile(&schema) {
            Ok(rules) if errors.is_empty() => Ok((schema, rules)),
            Ok(_) => Err(errors),
            Err(wrong) => {
                errors.extend(wrong);
                Err(errors)
            }
        }
    }

    /// The same object with Kubernetes' own fields at its root, whatever the schema said of them.
    pub fn with_object_meta(&self, object_meta: &Arc<Schema>) -> Self {
        let mut schema = self.clone();
        let text = Arc::new(Schema { kind: Type::String, ..Self::default() });
        for field in ["apiVersion", "kind"] {
            schema.properties.entry(field.to_owned()).or_insert_with(|| text.clone());
        }
        schema.properties.insert("metadata".to_owned(), object_meta.clone());
        schema
    }
}

fn parse(openapi: &Value) -> Schema {
    let child = |key: &str| openapi.get(key).map(|value| Arc::new(parse(value)));
    Schema {
        name: String::new(),
        kind: kind(openapi),
        description: text(openapi, "description"),
        properties: entries(openapi, "properties")
            .map(|(name, value)| (name.clone(), Arc::new(parse(value))))
            .collect(),
        additional: match openapi.get("additionalProperties") {
            Some(Value::Bool(true)) => Some(Arc::new(Schema { preserve_unknown: true, ..Schema::default() })),
            Some(Value::Object(_)) => child("additionalProperties"),
            _ => None,
        },
        items: child("items"),
        required: texts(openapi, "required"),
        nullable: flag(openapi, "nullable"),
        default: openapi.get("default").filter(|value| !value.is_null()).cloned(),
        preserve_unknown: flag(openapi, "x-kubernetes-preserve-unknown-fields"),
        embedded: flag(openapi, "x-kubernetes-embedded-resource"),
        list: match text(openapi, "x-kubernetes-list-type").as_str() {
            "set" => ListType::Set,
            "map" => ListType::Map(texts(openapi, "x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        },
        atomic_map: text(openapi, "x-kubernetes-map-type") == "atomic",
        patch: super::PatchStrategy::Plain,
        limits: limits(openapi),
        rules: items(openapi, "x-kubernetes-validations").map(rule).collect(),
    }
}

fn kind(openapi: &Value) -> Type {
    if flag(openapi, "x-kubernetes-int-or-string") {
        return Type::IntOrString;
    }
    match text(openapi, "type").as_str() {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        _ => Type::Any,
    }
}

fn limits(openapi: &Value) -> Limits {
    let number = |key: &str| openapi.get(key).and_then(Value::as_f64);
    let count = |key: &str| openapi.get(key).and_then(Value::as_u64);
    Limits {
        format: text(openapi, "format"),
        pattern: Some(text(openapi, "pattern")).filter(|pattern| !pattern.is_empty()),
        allowed: items(openapi, "enum").cloned().collect(),
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag(openapi, "exclusiveMinimum"),
        exclusive_maximum: flag(openapi, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag(openapi, "uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        all_of: items(openapi, "allOf").map(parse).collect(),
        any_of: items(openapi, "anyOf").map(parse).collect(),
        one_of: items(openapi, "oneOf").map(parse).collect(),
        not: openapi.get("not").map(|value| Box::new(parse(value))),
    }
}

fn rule(openapi: &Value) -> Rule {
    Rule {
        rule: text(openapi, "rule"),
        message: text(openapi, "message"),
        message_expression: text(openapi, "messageExpression"),
        reason: text(openapi, "reason"),
        field_path: text(openapi, "fieldPath"),
        optional_old_self: flag(openapi, "optionalOldSelf"),
    }
}

fn text(openapi: &Value, key: &str) -> String {
    openapi.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn flag(openapi: &Value, key: &str) -> bool {
    openapi.get(key) == Some(&Value::Bool(true))
}

fn items<'a>(openapi: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    openapi.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn entries<'a>(openapi: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    openapi.get(key).and_then(Value::as_object).into_iter().flatten()
}

fn texts(openapi: &Value, key: &str) -> Vec<String> {
    items(openapi, key).filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_keyword_finds_its_place() {
        let schema = Schema::from_openapi(&json!({
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {"type": "object", "description": "what is wanted", "properties": {
                    "size": {"x-kubernetes-int-or-string": true},
                    "mode": {"type": "string", "enum": ["a", "b"], "default": "a", "pattern": "^.$", "maxLength": 1},
                    "count": {"type": "integer", "format": "int32", "minimum": 1, "exclusiveMinimum": true, "nullable": true},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
                    "free": {"type": "object", "additionalProperties": true},
                    "closed": {"type": "object", "additionalProperties": false},
                    "ports": {
                        "type": "array", "maxItems": 9,
                        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                        "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}},
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true},
                }},
            },
        }))
        .unwrap();
        let spec = &schema.properties["spec"];
        assert_eq!((schema.kind, schema.required.as_slice()), (Type::Object, ["spec".to_owned()].as_slice()));
        assert_eq!(spec.description, "what is wanted");
        assert_eq!(spec.properties["size"].kind, Type::IntOrString);
        let mode = &spec.properties["mode"];
        assert_eq!(
            (mode.default.clone(), mode.limits.allowed.len(), mode.limits.max_length),
            (Some(json!("a")), 2, Some(1))
        );
        let count = &spec.properties["count"];
        assert!(count.nullable && count.limits.exclusive_minimum);
        assert_eq!((count.limits.minimum, count.limits.format.as_str()), (Some(1.0), "int32"));
        assert_eq!(spec.properties["labels"].additional.as_ref().unwrap().kind, Type::String);
        assert!(spec.properties["labels"].atomic_map);
        assert!(spec.properties["free"].additional.as_ref().unwrap().preserve_unknown);
        assert_eq!(spec.properties["closed"].additional, None);
        assert_eq!(spec.properties["ports"].list, ListType::Map(vec!["port".into()]));
        assert_eq!(spec.properties["tags"].list, ListType::Set);
        assert!(spec.properties["raw"].embedded && spec.properties["raw"].preserve_unknown);
    }

    #[test]
    fn the_root_gets_kubernetes_own_fields() {
        let schema = Schema::from_openapi(&json!({"type": "object"})).unwrap();
        let schema = schema.with_object_meta(&super::super::object_meta());
        assert_eq!(schema.properties.keys().collect::<Vec<_>>(), ["apiVersion", "kind", "metadata"]);
        assert!(schema.properties["metadata"].properties.contains_key("finalizers"));
    }
}
