//! Claims, volumes and their classes.

use serde_json::{Value, json};

use super::fill::{fill, fill_in};
use crate::status::FieldError;

pub(crate) fn default(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        fill(spec, "volumeMode", json!("Filesystem"));
    }
    fill_in(object, "status", "phase", json!("Pending"));
}

pub(crate) fn default_volume(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        fill(spec, "volumeMode", json!("Filesystem"));
        fill(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
        if let Some(claim) = spec.get_mut("claimRef") {
            fill(claim, "apiVersion", json!("v1"));
            fill(claim, "kind", json!("PersistentVolumeClaim"));
        }
    }
    fill_in(object, "status", "phase", json!("Pending"));
}

pub(crate) fn default_class(object: &mut Value) {
    fill(object, "reclaimPolicy", json!("Delete"));
    fill(object, "volumeBindingMode", json!("Immediate"));
}

pub(crate) fn validate(object: &Value, errors: &mut Vec<FieldError>) {
    let modes = object.pointer("/spec/accessModes").and_then(Value::as_array);
    if modes.is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if object.pointer("/spec/resources/requests/storage").is_none() {
        errors.push(FieldError::required("spec.resources[storage]", ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_size_and_mode_is_told_both() {
        let mut errors = Vec::new();
        validate(&json!({"spec": {}}), &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let wanted = [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ];
        assert_eq!(texts, wanted);
    }
}
