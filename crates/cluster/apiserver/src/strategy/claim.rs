//! Claims, volumes and their classes.

use serde_json::{Value, json};

use super::fill::{fill, fill_in};
use crate::object;
use crate::status::FieldError;

pub(crate) fn default(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec") {
        fill(spec, "volumeMode", json!("Filesystem"));
    }
}

/// Held as long as a pod uses it.
pub(crate) fn begin(object: &mut Value) {
    let protection = "kubernetes.io/pvc-protection";
    if !object::finalizers(object).any(|finalizer| finalizer == protection) {
        let finalizers = object::metadata_mut(object).entry("finalizers").or_insert(json!([]));
        finalizers.as_array_mut().into_iter().for_each(|list| list.push(protection.into()));
    }
    fill_in(object, "status", "phase", json!("Pending"));
}

/// Bound to a volume once, and then only larger.
pub(crate) fn changes(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let fixed = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        if old["status"]["phase"] == "Bound" {
            object::map_mut(&mut spec["resources"]).remove("requests");
            object::map_mut(&mut spec).remove("volumeAttributesClassName");
        }
        // Set once: by who binds it, and for a claim without a class by who knows the default one.
        for field in ["volumeName", "storageClassName"].into_iter().filter(|field| old["spec"].get(field).is_none()) {
            object::map_mut(&mut spec).remove(field);
        }
        spec
    };
    if fixed(new) != fixed(old) {
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
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
}

pub(crate) fn begin_volume(object: &mut Value) {
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
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in modes.into_iter().flatten().filter(|mode| !mode.as_str().is_some_and(|mode| known.contains(&mode))) {
        errors.push(FieldError::not_supported("spec.accessModes", mode, &known));
    }
    match object.pointer("/spec/resources/requests/storage") {
        None => errors.push(FieldError::required("spec.resources[storage]", "")),
        Some(size) if *size == 0 || *size == "0" => {
            errors.push(FieldError::invalid("spec.resources[storage]", &json!("0"), "must be greater than zero"));
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_bound_and_given_a_class_once() {
        let told = |new: Value, old: Value| {
            let mut errors = Vec::new();
            changes(&json!({ "spec": new }), &json!({ "spec": old }), &mut errors);
            errors.len()
        };
        let bound = json!({"volumeName": "a", "storageClassName": "local"});
        assert_eq!(told(bound.clone(), json!({})), 0);
        assert_eq!(told(json!({"volumeName": "b", "storageClassName": "local"}), bound.clone()), 1);
        assert_eq!(told(json!({"volumeName": "a", "storageClassName": "other"}), bound), 1);
    }

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
