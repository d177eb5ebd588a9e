//! The defaults that a CRD's schema declares.
//!
//! As in Kubernetes: a field that is absent gets its default, so does one that is null and may not be; a null that
//! may not be and has no default is dropped. Null items of lists are left to validation.

use serde_json::Value;

use super::Schema;

impl Schema {
    pub fn apply_defaults(&self, value: &mut Value) {
        match value {
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    if let Some(default) = schema.default.as_ref().filter(|_| schema.refuses_null(item)) {
                        *item = default.clone();
                    }
                    schema.apply_defaults(item);
                }
            }
            Value::Object(fields) => {
                for (field, schema) in &self.properties {
                    let wanting = fields.get(field).is_none_or(|value| schema.refuses_null(value));
                    if let Some(default) = schema.default.as_ref().filter(|_| wanting) {
                        fields.insert(field.clone(), default.clone());
                    }
                }
                fields.retain(|field, value| {
                    let Some(schema) = self.properties.get(field).or(self.additional.as_ref()) else { return true };
                    if schema.refuses_null(value) {
                        let Some(default) = &schema.default else { return false };
                        *value = default.clone();
                    }
                    schema.apply_defaults(value);
                    true
                });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn refuses_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn defaulted(mut value: Value) -> Value {
        let schema = Schema::from_openapi(&json!({"type": "object", "properties": {
            "d": {"type": "object", "default": {}, "properties": {
                "x": {"type": "integer", "default": 3}, "y": {"type": "string"}}},
            "no": {"type": "object", "properties": {"x": {"type": "integer", "default": 3}}},
            "nul": {"type": "string", "nullable": true, "default": "q"},
            "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "default": 7}},
        }}))
        .unwrap();
        schema.apply_defaults(&mut value);
        value
    }

    #[test]
    fn an_absent_field_gets_its_default_and_what_is_inside_it() {
        assert_eq!(defaulted(json!({})), json!({"d": {"x": 3}, "nul": "q"}));
    }

    #[test]
    fn a_field_below_an_absent_object_without_default_is_not_made() {
        assert_eq!(defaulted(json!({"no": {}}))["no"], json!({"x": 3}));
        assert_eq!(defaulted(json!({}))["no"], Value::Null);
    }

    #[test]
    fn a_null_stays_where_it_may_be_and_goes_where_it_may_not() {
        let value = defaulted(json!({"d": null, "nul": null, "flag": null}));
        assert_eq!(value, json!({"d": {"x": 3}, "nul": null}));
    }

    #[test]
    fn items_and_entries_are_defaulted_too() {
        let value = defaulted(json!({"list": [{}, {"p": "UDP"}], "map": {"a": null, "b": 1}}));
        assert_eq!(value["list"], json!([{"p": "TCP"}, {"p": "UDP"}]));
        assert_eq!(value["map"], json!({"a": 7, "b": 1}));
    }
}
