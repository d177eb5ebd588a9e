//! ConfigMaps and Secrets: keys that could be files, and what is immutable stays so.

use serde_json::{Value, json};

use crate::object;
use crate::status::FieldError;

const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

pub(crate) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    for part in ["data", "binaryData"] {
        for (key, _) in object::fields(object, &format!("/{part}")) {
            let field = format!("{part}[{key}]");
            if key.len() > 253 {
                errors.push(FieldError::invalid(&field, &json!(key), "must be no more than 253 characters"));
            }
            if key == "." || key == ".." {
                errors.push(FieldError::invalid(field, &json!(key), &format!("must not be '{key}'")));
            } else if key.starts_with("..") {
                errors.push(FieldError::invalid(field, &json!(key), "must not start with '..'"));
            } else if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            {
                errors.push(FieldError::invalid(field, &json!(key), KEY));
            } else if part == "data" && object["binaryData"].get(key).is_some() {
                errors.push(FieldError::invalid(field, &json!(key), "duplicate of key present in binaryData"));
            }
        }
    }
    if object["type"] == "kubernetes.io/tls" {
        for key in ["tls.crt", "tls.key"].into_iter().filter(|key| object["data"].get(key).is_none()) {
            errors.push(FieldError::required(format!("data[{key}]"), ""));
        }
    }
}

pub(crate) fn changes(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if old["immutable"] != true {
        return;
    }
    for field in ["immutable", "data", "binaryData"].into_iter().filter(|field| new[*field] != old[*field]) {
        errors.push(FieldError::forbidden(field, "field is immutable when `immutable` is set"));
    }
}
