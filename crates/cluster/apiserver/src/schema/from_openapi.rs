//! A CRD's `openAPIV3Schema` read into the tree.
//!
//! The text comes out of a parsed request, whose depth `serde_json` limits to 128: recursion here is bounded by that.
//! Whether its keywords have the right types was checked before ([`super::decode_check`]).

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Limits, ListType, Rule, Schema, Type, rules, structural};
use crate::object::{fields, is_true, list, text, texts};
use crate::status::FieldError;

impl Schema {
    /// Checks that the schema is structural and compiles its rules. The fields of errors begin at the schema
    /// (`properties[spec].type`): the caller says where it stands.
    pub fn from_openapi(openapi: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = structural::check(openapi);
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut schema = parse(openapi);
        structural::check_defaults(&schema, "", &mut errors);
        rules::compile(&mut schema, "", None, &mut errors);
        if errors.is_empty() { Ok(schema) } else { Err(errors) }
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

    /// Reads what schemas of every origin have: type, fields, items. `below` reads those in them.
    pub(super) fn read_structure(&mut self, openapi: &Value, below: &mut dyn FnMut(&Value) -> Self) {
        if let Some(kind) = Type::named(text(openapi, "/type")) {
            self.kind = kind;
        }
        if is_true(openapi, "/x-kubernetes-int-or-string") {
            self.kind = Type::IntOrString;
        }
        if !text(openapi, "/description").is_empty() {
            self.description = text(openapi, "/description").to_owned();
        }
        self.properties.extend(fields(openapi, "/properties").map(|(name, it)| (name.clone(), Arc::new(below(it)))));
        match openapi.get("additionalProperties") {
            Some(Value::Bool(true)) => {
                self.additional = Some(Arc::new(Self { preserve_unknown: true, ..Self::default() }));
            }
            Some(values @ Value::Object(_)) => self.additional = Some(Arc::new(below(values))),
            _ => {}
        }
        if let Some(items) = openapi.get("items") {
            self.items = Some(Arc::new(below(items)));
        }
        self.required.extend(texts(openapi, "/required"));
    }
}

/// Inside `allOf` and the like.
impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|openapi| parse(&openapi))
    }
}

fn parse(openapi: &Value) -> Schema {
    let rules = list(openapi, "/x-kubernetes-validations");
    let mut schema = Schema {
        nullable: is_true(openapi, "/nullable"),
        default: openapi.get("default").filter(|value| !value.is_null()).cloned(),
        preserve_unknown: is_true(openapi, "/x-kubernetes-preserve-unknown-fields"),
        embedded: is_true(openapi, "/x-kubernetes-embedded-resource"),
        list: match text(openapi, "/x-kubernetes-list-type") {
            "set" => ListType::Set,
            "map" => ListType::Map(texts(openapi, "/x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        },
        atomic_map: text(openapi, "/x-kubernetes-map-type") == "atomic",
        limits: Limits::deserialize(openapi).unwrap_or_default(),
        rules: rules.iter().map(|rule| Rule::deserialize(rule).unwrap_or_default()).collect(),
        ..Schema::default()
    };
    schema.read_structure(openapi, &mut parse);
    schema
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
        assert_eq!((count.limits.minimum.clone(), count.limits.format.as_str()), (Some(1.into()), "int32"));
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
