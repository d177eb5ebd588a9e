//! Fields that a kind does not have: dropped, and named for strict and warning field validation.
//!
//! Recursion follows the object, whose depth `serde_json` limited to 128 when it was parsed.

use serde_json::Value;

use super::{Schema, builtin, join};
use crate::status::Status;

impl Schema {
    /// Drops unknown fields. Returns their paths in order, such as `spec.el[0].zz`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        prune(self, object, "", &mut unknown);
        unknown
    }

    /// Drops lists and maps that are empty, as built-in kinds do: they know no difference between empty and absent.
    /// A required one stays, and so does an object with fields of its own, which says something by being there.
    pub fn drop_empty(&self, object: &mut Value) {
        match object {
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                items.iter_mut().for_each(|item| schema.drop_empty(item));
            }
            Value::Object(fields) => {
                let schema = builtin::expand(self);
                fields.retain(|field, value| {
                    let Some(known) = schema.properties.get(field) else {
                        schema.additional.iter().for_each(|values| values.drop_empty(value));
                        return true;
                    };
                    known.drop_empty(value);
                    let is_empty = match value {
                        Value::Array(items) => items.is_empty(),
                        Value::Object(fields) => fields.is_empty() && builtin::expand(known).additional.is_some(),
                        _ => false,
                    };
                    !is_empty || schema.required.contains(field)
                });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// How Kubernetes names an unknown field, in a warning and in a strict error.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field \"{path}\"")
}

/// The refusal of strict field validation. `problems` are texts such as [`unknown_field`]'s; repeated fields
/// (`duplicate field "spec.a"`), found when the text was parsed, come first.
pub fn strict_decoding_error(kind: &str, version: &str, problems: &[String]) -> Status {
    let problems = problems.join(", ");
    Status::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {problems}"
    ))
}

fn prune(schema: &Schema, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune(schema, item, &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Object(fields) => {
            let schema = builtin::expand(schema);
            let metadata = schema.embedded.then(builtin::object_meta);
            fields.retain(|field, value| {
                let here = join(path, field);
                if let Some(metadata) = metadata.as_ref().filter(|_| field == "metadata") {
                    prune(metadata, value, &here, unknown);
                    return true;
                }
                if let Some(known) = schema.properties.get(field).or(schema.additional.as_ref()) {
                    prune(known, value, &here, unknown);
                    return true;
                }
                let kept =
                    schema.preserve_unknown || (schema.embedded && matches!(field.as_str(), "apiVersion" | "kind"));
                if !kept {
                    unknown.push(here);
                }
                kept
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_of_a_built_in_kind_go_and_are_named_in_order() {
        let deployment = super::super::builtin("apps", "v1", "Deployment").unwrap();
        let mut object = json!({
            "metadata": {"name": "x", "labels": {"any": "key"}},
            "spec": {"foo": 1, "replicas": 2,
                     "template": {"spec": {"containers": [{"bar": 1}, {"resources": {"zed": true, "limits": {"cpu": 1}}}]}}},
            "zed": 1,
        });
        let unknown = deployment.prune(&mut object);
        let wanted = [
            "spec.foo",
            "spec.template.spec.containers[0].bar",
            "spec.template.spec.containers[1].resources.zed",
            "zed",
        ];
        assert_eq!(unknown, wanted);
        let kept = json!({
            "metadata": {"name": "x", "labels": {"any": "key"}},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{}, {"resources": {"limits": {"cpu": 1}}}]}}},
        });
        assert_eq!(object, kept);
        let problems: Vec<String> = unknown.iter().take(2).map(|path| unknown_field(path)).collect();
        let status = strict_decoding_error("Deployment", "v1", &problems);
        assert_eq!(status.code, 400);
        let wanted = "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: \
                      unknown field \"spec.foo\", unknown field \"spec.template.spec.containers[0].bar\"";
        assert_eq!(status.message, wanted);
    }

    #[test]
    fn empty_lists_and_maps_of_a_built_in_kind_are_absent_ones() {
        let deployment = super::super::builtin("apps", "v1", "Deployment").unwrap();
        let template = |spec: Value| json!({"metadata": {"labels": {"a": ""}}, "spec": spec});
        let mut object = json!({
            "metadata": {"labels": {}, "annotations": {}, "ownerReferences": [], "finalizers": ["x"]},
            "spec": {"selector": {}, "template": template(json!({
                "containers": [], "nodeSelector": {}, "volumes": [{"name": "a", "emptyDir": {}}], "securityContext": {},
            }))},
        });
        deployment.drop_empty(&mut object);
        let kept = json!({
            "metadata": {"finalizers": ["x"]},
            "spec": {"selector": {}, "template": template(json!({
                "containers": [], "volumes": [{"name": "a", "emptyDir": {}}], "securityContext": {},
            }))},
        });
        assert_eq!(object, kept);
    }

    #[test]
    fn what_preserves_unknown_fields_keeps_them_but_prunes_below_known_ones() {
        let schema = Schema::from_openapi(&json!({"type": "object", "properties": {
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }}))
        .unwrap();
        let mut object = json!({"raw": {"x": {"y": 1}, "known": {"a": "", "b": ""}}, "map": {"k": {"a": "", "c": ""}}});
        assert_eq!(schema.prune(&mut object), ["map.k.c", "raw.known.b"]);
        assert_eq!(object, json!({"raw": {"x": {"y": 1}, "known": {"a": ""}}, "map": {"k": {"a": ""}}}));
    }

    #[test]
    fn an_embedded_object_keeps_its_type_and_only_real_metadata() {
        let schema = Schema::from_openapi(&json!({"type": "object", "properties": {
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "properties": {"spec": {"type": "object"}}},
        }}))
        .unwrap();
        let mut object = json!({"emb": {"apiVersion": "v1", "kind": "A", "metadata": {"x": 1, "name": "n"}, "zed": 1}});
        assert_eq!(schema.prune(&mut object), ["emb.metadata.x", "emb.zed"]);
        assert_eq!(object, json!({"emb": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "n"}}}));
    }

    #[test]
    fn a_misspelt_keyword_deep_in_a_crds_schema_is_found() {
        let crd = super::super::builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string", "foo": 1, "default": {"any": 1}}}});
        let mut object = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        assert_eq!(crd.prune(&mut object), ["spec.versions[0].schema.openAPIV3Schema.properties.a.foo"]);
    }

    #[test]
    fn what_has_another_type_than_the_schema_says_is_left_to_validation() {
        let schema = Schema::from_openapi(&json!({"type": "object", "properties": {"a": {"type": "object"}}})).unwrap();
        let mut object = json!({"a": ["x"]});
        assert!(schema.prune(&mut object).is_empty());
        assert_eq!(object, json!({"a": ["x"]}));
    }
}
