//! Null as the value of a key in a map: Kubernetes' Go types take it as the zero value of the map's type, so the key stays.
//!
//! A field that is null is another matter: it is as if it were absent.

use serde_json::{Map, Value, json};

use super::{Schema, Type, builtin, object_meta};

impl Schema {
    /// Replaces null values in the maps of a built-in kind by the zero value of their type: `annotations: {a: null}` is
    /// `annotations: {a: ""}`.
    pub fn zero_null_values(&self, object: &mut Value) {
        match object {
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                items.iter_mut().for_each(|item| schema.zero_null_values(item));
            }
            Value::Object(fields) => self.zero_in(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn zero_in(&self, fields: &mut Map<String, Value>) {
        let schema = builtin::expand(self);
        for (field, value) in fields {
            match (schema.properties.get(field), &schema.additional) {
                (Some(known), _) => known.zero_null_values(value),
                (None, Some(values)) if value.is_null() => *value = values.zero(),
                (None, Some(values)) => values.zero_null_values(value),
                (None, None) => {}
            }
        }
    }

    /// Null where the zero value is a struct, a list or a map: those are dropped.
    fn zero(&self) -> Value {
        match self.kind {
            Type::String => json!(""),
            Type::Boolean => json!(false),
            Type::Integer | Type::Number => json!(0),
            Type::IntOrString if self.limits.format == "quantity" => json!("0"),
            Type::IntOrString => json!(0),
            Type::Any | Type::Object | Type::Array => Value::Null,
        }
    }
}

/// The same in the `metadata` of a custom object.
pub fn zero_null_values_of_metadata(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata") {
        object_meta().zero_null_values(metadata);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_in_a_map_is_the_zero_value_and_a_null_field_stays() {
        let schema = builtin::builtin("apps", "v1", "Deployment").unwrap();
        let mut object = json!({
            "metadata": {"annotations": {"a": null, "b": "c"}, "labels": null},
            "spec": {"replicas": null, "template": {"spec": {"nodeSelector": {"disk": null}, "containers": [
                {"name": "a", "resources": {"limits": {"cpu": null}}}]}}},
        });
        schema.zero_null_values(&mut object);
        let wanted = json!({
            "metadata": {"annotations": {"a": "", "b": "c"}, "labels": null},
            "spec": {"replicas": null, "template": {"spec": {"nodeSelector": {"disk": ""}, "containers": [
                {"name": "a", "resources": {"limits": {"cpu": "0"}}}]}}},
        });
        assert_eq!(object, wanted);
    }

    #[test]
    fn only_metadata_of_a_custom_object_is_typed() {
        let mut object = json!({"metadata": {"annotations": {"a": null}}, "spec": {"map": {"a": null}}});
        zero_null_values_of_metadata(&mut object);
        assert_eq!(object, json!({"metadata": {"annotations": {"a": ""}}, "spec": {"map": {"a": null}}}));
    }
}
