//! One schema tree for built-in kinds and for CRDs: what a field is, how it is defaulted, checked, merged and owned.
//!
//! The tree is made once per kind and shared; everything that looks at an object's fields (pruning, defaulting,
//! validation, the patches, server-side apply, `kubectl explain`) walks it.

mod builtin;
mod decode;
mod default;
mod format;
mod from_openapi;
mod lists;
mod null_values;
mod prune;
mod rules;
mod structural;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

pub use self::builtin::{builtin, object_meta};
pub use self::decode::{decode_check, decode_check_metadata};
pub use self::format::go_duration;
pub use self::null_values::zero_null_values_of_metadata;
pub use self::prune::{strict_decoding_error, unknown_field};

/// What may stand at one place of an object, and below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The OpenAPI name of a built-in type (`io.k8s.api.core.v1.PodSpec`); empty elsewhere.
    pub name: String,
    pub kind: Type,
    pub description: String,
    /// Known fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// The values of a map with free keys.
    pub additional: Option<Arc<Schema>>,
    /// The items of a list.
    pub items: Option<Arc<Schema>>,
    pub required: Vec<String>,
    pub nullable: bool,
    pub default: Option<Value>,
    /// Unknown fields are kept here, not pruned (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// The value is a whole object with `apiVersion`, `kind` and `metadata` (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// How a list is merged and owned by server-side apply.
    pub list: ListType,
    /// The map is owned and replaced as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic_map: bool,
    /// How strategic merge patch treats the field.
    pub patch: PatchStrategy,
    pub limits: Limits,
    /// CEL rules (`x-kubernetes-validations`), in order.
    pub rules: Vec<Rule>,
}

/// The types of JSON, and the two that Kubernetes adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Anything (a schema without a type).
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// `x-kubernetes-int-or-string`; quantities too.
    IntOrString,
}

impl Type {
    const NAMED: [(&str, Self); 6] = [
        ("array", Self::Array),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("object", Self::Object),
        ("string", Self::String),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(named, _)| *named == name).map(|(_, kind)| *kind)
    }

    /// The name in JSON schema; none of those that have none.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map(|(name, _)| *name)
    }
}

/// A field below a path: `spec` and `replicas` make `spec.replicas`.
fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// `x-kubernetes-list-type`, with the keys of a map-like list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// `x-kubernetes-patch-strategy` and `-merge-key`: built-in kinds only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Lists are replaced, objects merged.
    #[default]
    Plain,
    /// A list of objects merged by this key, or of scalars merged as a set (no key).
    Merge { key: Option<String>, retain_keys: bool },
    /// An object of which only the patch's keys remain (`retainKeys`).
    RetainKeys,
    /// Replaced as a whole, objects too.
    Replace,
}

/// What JSON schema says of a value beyond its type.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Limits {
    pub format: String,
    pub pattern: String,
    #[serde(rename = "enum")]
    pub allowed: Vec<Value>,
    pub minimum: Option<Number>,
    pub maximum: Option<Number>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<Number>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    /// Value validation of structural schemas: `allOf`, `anyOf`, `oneOf`, `not`.
    #[serde(skip_serializing)]
    pub all_of: Vec<Schema>,
    #[serde(skip_serializing)]
    pub any_of: Vec<Schema>,
    #[serde(skip_serializing)]
    pub one_of: Vec<Schema>,
    #[serde(skip_serializing)]
    pub not: Option<Box<Schema>>,
}

/// One CEL rule as it was written, and as it is evaluated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: String,
    pub field_path: String,
    pub optional_old_self: bool,
    #[serde(skip)]
    compiled: Option<rules::Compiled>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn an_object_too_deep_for_the_stack_is_refused_by_the_parser() {
        assert!(serde_json::from_str::<Value>(&nested(10_000)).is_err());
    }

    #[test]
    fn the_deepest_object_that_parses_passes_everywhere() {
        let mut object = json!({"spec": serde_json::from_str::<Value>(&nested(126)).unwrap()});
        let openapi = json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-validations": [{"rule": "self == self"}],
        }}});
        let schema = Schema::from_openapi(&openapi).unwrap();
        assert!(schema.prune(&mut object).is_empty());
        schema.apply_defaults(&mut object);
        assert_eq!(schema.validate(&object, None), []);
        assert_eq!(schema.check_rules(&object, None), []);
    }

    #[test]
    fn a_schema_as_deep_as_a_request_can_be_is_read() {
        let mut openapi = json!({"type": "string"});
        for _ in 0..60 {
            openapi = json!({"type": "object", "properties": {"a": openapi}});
        }
        let mut schema = &Schema::from_openapi(&openapi).unwrap();
        let mut depth = 0;
        while let Some(below) = schema.properties.get("a") {
            schema = below;
            depth += 1;
        }
        assert_eq!((depth, schema.kind), (60, Type::String));
    }
}
