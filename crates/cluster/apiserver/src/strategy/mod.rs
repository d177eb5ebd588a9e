//! What built-in kinds do beyond their schema: the defaults that Kubernetes fills in, and the checks it makes. A file
//! per kind, or per family; small kinds are here.
//!
//! Everything is a plain function on untyped JSON that was already checked against the schema, and idempotent.

pub(crate) mod claim;
pub(crate) mod data;
pub(crate) mod deployment;
pub(crate) mod event;
pub(crate) mod fill;
pub(crate) mod metadata;
pub(crate) mod name;
pub(crate) mod not_honoured;
pub(crate) mod pod;
pub(crate) mod rbac;
pub(crate) mod service;
pub(crate) mod webhooks;

use serde_json::{Value, json};

use crate::object;
use crate::status::FieldError;
use fill::{fill, fill_in};

pub(crate) fn nothing_to_default(_: &mut Value) {}

pub(crate) fn nothing_to_tell(_: &Value) -> Vec<String> {
    Vec::new()
}
pub(crate) fn may_change(_: &Value, _: &Value, _: &mut Vec<FieldError>) {}

pub(crate) fn nothing_to_validate(_: &Value, _: &mut Vec<FieldError>) {}

/// A namespace carries its own name as a label, so that selectors can name it.
pub(crate) fn namespace(object: &mut Value) {
    let name = object::name(object).to_owned();
    let labels = object::metadata_mut(object).entry("labels").or_insert(json!({}));
    if !name.is_empty() {
        object::map_mut(labels).insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

/// It is Active until it is deleted, and then held until everything in it is gone.
pub(crate) fn begin_namespace(object: &mut Value) {
    fill_in(object, "spec", "finalizers", json!(["kubernetes"]));
    fill_in(object, "status", "phase", json!("Active"));
}

pub(crate) fn validate_lease(object: &Value, errors: &mut Vec<FieldError>) {
    let least = [("leaseDurationSeconds", 1, "must be greater than 0"), ("leaseTransitions", 0, NOT_NEGATIVE)];
    for (field, least, detail) in least {
        let value = &object["spec"][field];
        if value.as_i64().is_some_and(|number| number < least) {
            errors.push(FieldError::invalid(format!("spec.{field}"), value, detail));
        }
    }
}

pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// `stringData` is a way to write: it becomes `data` and is never stored.
pub(crate) fn secret(object: &mut Value) {
    fill(object, "type", json!("Opaque"));
    let Some(Value::Object(plain)) = object.as_object_mut().and_then(|object| object.remove("stringData")) else {
        return;
    };
    let data = object::map_mut(object::map_mut(object).entry("data").or_insert(json!({})));
    for (key, value) in plain {
        if let Some(text) = value.as_str() {
            data.insert(key, base64(text.as_bytes()).into());
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_secret_is_stored_as_data() {
        let mut secret_object = json!({"stringData": {"password": "ahoy"}, "data": {"kept": "eA=="}});
        secret(&mut secret_object);
        assert_eq!(secret_object, json!({"type": "Opaque", "data": {"password": "YWhveQ==", "kept": "eA=="}}));
    }

    #[test]
    fn a_namespace_is_active_held_by_its_finalizer_and_named_by_a_label() {
        let mut object = json!({"metadata": {"name": "shop"}});
        namespace(&mut object);
        begin_namespace(&mut object);
        assert_eq!(object["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "shop"}));
        assert_eq!(
            (&object["spec"]["finalizers"][0], &object["status"]["phase"]),
            (&json!("kubernetes"), &json!("Active"))
        );
        object["spec"] = json!({});
        namespace(&mut object);
        assert_eq!(object["spec"], json!({}), "a finalizer that is done comes back");
    }
}
