//! Values that Kubernetes' Go types could not take: for built-in kinds and for every `metadata` these are refused
//! when the request is decoded (400), before any validation. The words are those of Go's JSON decoder.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::Value;

use super::{Schema, Type, builtin, format, join, object_meta};
use crate::status::{Result, Status};

/// Checks an object of a built-in kind.
pub fn decode_check(schema: &Schema, object: &Value, kind: &str, version: &str) -> Result<()> {
    Place { owner: kind, path: String::new() }.check(schema, object).map_err(|why| refusal(kind, version, &why))
}

/// Checks the `metadata` of a custom object; the rest of it is validated, not decoded.
pub fn decode_check_metadata(object: &Value, kind: &str, version: &str) -> Result<()> {
    let Some(metadata) = object.get("metadata") else { return Ok(()) };
    let schema = object_meta();
    Place { owner: "", path: String::new() }.check(&schema, metadata).map_err(|why| refusal(kind, version, &why))
}

fn refusal(kind: &str, version: &str, why: &str) -> Status {
    Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
}

/// Where the decoder is: the Go struct, and the fields that led to it (without indices and keys of maps).
struct Place<'a> {
    owner: &'a str,
    path: String,
}

impl Place<'_> {
    fn check(&self, schema: &Schema, value: &Value) -> std::result::Result<(), String> {
        match (schema.kind, value) {
            (_, Value::Null) => Ok(()),
            (Type::Any, Value::Object(_)) => {
                let expanded = builtin::expand(schema);
                if expanded.kind == Type::Any { Ok(()) } else { self.check(expanded, value) }
            }
            (Type::Any, _) => Ok(()),
            (Type::Object, Value::Object(fields)) => {
                for (field, value) in fields {
                    if let Some(property) = schema.properties.get(field) {
                        let owner = go_struct(schema).unwrap_or(self.owner);
                        Place { owner, path: join(&self.path, field) }.check(property, value)?;
                    } else if let Some(values) = &schema.additional {
                        self.check(values, value)?;
                    }
                }
                Ok(())
            }
            (Type::Array, Value::Array(items)) => match &schema.items {
                Some(of) => items.iter().try_for_each(|item| self.check(of, item)),
                None => Ok(()),
            },
            (Type::String, Value::String(text)) => string(schema, text),
            (Type::Boolean, Value::Bool(_)) | (Type::Number, Value::Number(_)) => Ok(()),
            (Type::Integer, Value::Number(number)) => {
                let narrow = schema.limits.format == "int32";
                let fits = number.as_i64().is_some_and(|number| !narrow || i32::try_from(number).is_ok());
                if fits { Ok(()) } else { Err(self.cannot(&format!("number {number}"), schema)) }
            }
            (Type::IntOrString, _) if schema.limits.format == "quantity" => quantity(value),
            (Type::IntOrString, Value::String(_)) => Ok(()),
            (Type::IntOrString, Value::Number(number)) => {
                let fits = number.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
                if fits { Ok(()) } else { Err(self.cannot(&format!("number {number}"), schema)) }
            }
            (_, Value::Bool(_)) => Err(self.cannot("bool", schema)),
            (_, Value::Number(_)) => Err(self.cannot("number", schema)),
            (_, Value::String(_)) => Err(self.cannot("string", schema)),
            (_, Value::Array(_)) => Err(self.cannot("array", schema)),
            (_, Value::Object(_)) => Err(self.cannot("object", schema)),
        }
    }

    fn cannot(&self, what: &str, schema: &Schema) -> String {
        let wanted = go_type(schema);
        match self.path.as_str() {
            "" => format!("json: cannot unmarshal {what} into Go value of type {wanted}"),
            path => {
                format!("json: cannot unmarshal {what} into Go struct field {}.{path} of type {wanted}", self.owner)
            }
        }
    }
}

/// The Go struct of a named type: `PodSpec`.
fn go_struct(schema: &Schema) -> Option<&str> {
    schema.name.rsplit('.').next().filter(|name| !name.is_empty())
}

fn go_type(schema: &Schema) -> String {
    let of = |schema: &Option<std::sync::Arc<Schema>>| schema.as_deref().map_or("interface {}".to_owned(), go_type);
    match schema.kind {
        Type::Any => "interface {}".to_owned(),
        Type::Object if schema.name.is_empty() => format!("map[string]{}", of(&schema.additional)),
        // The package is the last part but one of the OpenAPI name.
        Type::Object => schema
            .name
            .rmatch_indices('.')
            .nth(1)
            .map_or(schema.name.as_str(), |(dot, _)| &schema.name[dot + 1..])
            .to_owned(),
        Type::Array => format!("[]{}", of(&schema.items)),
        Type::String if schema.limits.format == "byte" => "[]uint8".to_owned(),
        Type::String => "string".to_owned(),
        Type::Integer if schema.limits.format == "int32" => "int32".to_owned(),
        Type::Integer => "int64".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::IntOrString => "int32".to_owned(),
    }
}

fn string(schema: &Schema, text: &str) -> std::result::Result<(), String> {
    match schema.limits.format.as_str() {
        "byte" => STANDARD.decode(text).map(drop).map_err(|error| {
            let offset = match error {
                base64::DecodeError::InvalidByte(offset, _) | base64::DecodeError::InvalidLastSymbol(offset, _) => {
                    offset
                }
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len(),
            };
            format!("illegal base64 data at input byte {offset}")
        }),
        "date-time" if !format::is_date_time(text) => {
            let fraction = if schema.name.ends_with(".MicroTime") { ".000000" } else { "" };
            Err(format!(
                "parsing time {text:?} as \"2006-01-02T15:04:05{fraction}Z07:00\": cannot parse {text:?} as \"2006\""
            ))
        }
        _ => Ok(()),
    }
}

fn quantity(value: &Value) -> std::result::Result<(), String> {
    const PATTERN: &str = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";
    static QUANTITY: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE]?)$")
            .expect("a valid pattern")
    });
    let good = match value {
        Value::Number(_) => true,
        Value::String(text) => QUANTITY.is_match(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    };
    if good { Ok(()) } else { Err(format!("quantities must match the regular expression '{PATTERN}'")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(group: &str, kind: &str, object: Value) -> String {
        let schema = super::super::builtin(group, "v1", kind).unwrap();
        decode_check(&schema, &object, kind, "v1").err().map(|status| status.message).unwrap_or_default()
    }

    #[test]
    fn what_go_could_not_take_is_refused_in_its_words() {
        let field = "json: cannot unmarshal";
        let into = "into Go struct field";
        let container = "Container.spec.template.spec.containers";
        let cases = [
            (
                json!({"spec": {"replicas": "3"}}),
                format!("{field} string {into} DeploymentSpec.spec.replicas of type int32"),
            ),
            (
                json!({"spec": {"replicas": 1.5}}),
                format!("{field} number 1.5 {into} DeploymentSpec.spec.replicas of type int32"),
            ),
            (
                json!({"spec": {"replicas": 3000000000u32}}),
                format!("{field} number 3000000000 {into} DeploymentSpec.spec.replicas of type int32"),
            ),
            (json!({"spec": {"paused": 1}}), format!("{field} number {into} DeploymentSpec.spec.paused of type bool")),
            (json!({"spec": []}), format!("{field} array {into} Deployment.spec of type v1.DeploymentSpec")),
            (
                json!({"spec": {"selector": {"matchLabels": {"a": 1}}}}),
                format!("{field} number {into} LabelSelector.spec.selector.matchLabels of type string"),
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"name": 1}]}}}}),
                format!("{field} number {into} {container}.name of type string"),
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": {}}}}}),
                format!("{field} object {into} PodSpec.spec.template.spec.containers of type []v1.Container"),
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"command": "x"}]}}}}),
                format!("{field} string {into} {container}.command of type []string"),
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"command": [1]}]}}}}),
                format!("{field} number {into} {container}.command of type string"),
            ),
            (
                json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": true}}}}),
                format!(
                    "{field} bool {into} RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32"
                ),
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}}}),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                    .to_owned(),
            ),
            (
                json!({"metadata": {"creationTimestamp": "x"}}),
                "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"".to_owned(),
            ),
            (
                json!({"metadata": {"labels": "x"}}),
                format!("{field} string {into} ObjectMeta.metadata.labels of type map[string]string"),
            ),
            (json!({"metadata": []}), format!("{field} array {into} Deployment.metadata of type v1.ObjectMeta")),
        ];
        for (object, wanted) in cases {
            let wanted = format!("Deployment in version \"v1\" cannot be handled as a Deployment: {wanted}");
            assert_eq!(said("apps", "Deployment", object), wanted);
        }
        let wanted = "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0";
        assert_eq!(said("", "Secret", json!({"data": {"a": "***"}})), wanted);
        let wanted = "Secret in version \"v1\" cannot be handled as a Secret: json: cannot unmarshal number into Go struct field \
                      Secret.data of type []uint8";
        assert_eq!(said("", "Secret", json!({"data": {"a": 1}})), wanted);
    }

    #[test]
    fn a_crds_schema_is_decoded_all_the_way_down() {
        let schema = json!({"properties": {"a": {"exclusiveMinimum": 3}}});
        let object = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let wanted = "json: cannot unmarshal number into Go struct field \
                      JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.exclusiveMinimum of type bool";
        let said = said("apiextensions.k8s.io", "CustomResourceDefinition", object);
        assert!(said.ends_with(wanted), "{said}");
    }

    #[test]
    fn metadata_of_custom_objects_is_decoded_from_itself() {
        let said = |object: Value| decode_check_metadata(&object, "Thing", "v1").err().map(|status| status.message);
        let prefix = "Thing in version \"v1\" cannot be handled as a Thing: json: cannot unmarshal";
        let wanted = format!("{prefix} number into Go struct field ObjectMeta.labels of type string");
        assert_eq!(said(json!({"metadata": {"labels": {"a": 1}}})), Some(wanted));
        assert_eq!(
            said(json!({"metadata": "q"})),
            Some(format!("{prefix} string into Go value of type v1.ObjectMeta"))
        );
        assert_eq!(said(json!({"metadata": {"labels": {"a": "1"}}, "spec": 1})), None);
    }

    #[test]
    fn good_and_null_values_pass() {
        let object = json!({
            "metadata": {"name": "x", "creationTimestamp": null, "managedFields": [{"fieldsV1": {"f:spec": {}}, "time": "2020-01-01T00:00:00Z"}]},
            "spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}, "template": {"spec": {
                "containers": [{"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "1.5Gi", "x": 1.5}}, "stdin": null}]}}},
        });
        assert_eq!(said("apps", "Deployment", object), "");
    }
}
