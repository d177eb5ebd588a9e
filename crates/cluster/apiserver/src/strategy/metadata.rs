//! The checks of `metadata`, the same for every kind but for how its name looks.

use serde_json::{Value, json};

use super::name;
use crate::object;
use crate::resource::Resource;
use crate::selector::label_key_problems;
use crate::status::{FieldError, FieldErrorKind};

const LARGEST_ANNOTATIONS: usize = 256 * 1024;

pub(crate) fn validate(object: &Value, resource: &Resource, is_new: bool, errors: &mut Vec<FieldError>) {
    let stem = object::text(object, "/metadata/generateName");
    if is_new {
        if !stem.is_empty() {
            name::check("metadata.generateName", stem, resource.behaviour.name, errors);
        }
        name::check("metadata.name", object::name(object), resource.behaviour.name, errors);
    }
    name::check_labels(object, errors);
    if object::annotations(object).map(|(key, value)| key.len() + value.len()).sum::<usize>() > LARGEST_ANNOTATIONS {
        let detail = format!("Too long: may not be more than {LARGEST_ANNOTATIONS} bytes");
        errors.push(FieldError { kind: FieldErrorKind::TooLong, field: "metadata.annotations".to_owned(), detail });
    }
    owners(object, errors);
    for finalizer in object::finalizers(object) {
        let problems = label_key_problems(finalizer);
        errors.extend(problems.iter().map(|why| FieldError::invalid("metadata.finalizers", &json!(finalizer), why)));
    }
    let standard = ["kubernetes", "foregroundDeletion", "orphan"];
    for (index, finalizer) in object::finalizers(object).enumerate() {
        if !resource.is_custom() && !finalizer.contains('/') && !standard.contains(&finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(format!("metadata.finalizers[{index}]"), &json!(finalizer), why));
        }
    }
}

fn owners(object: &Value, errors: &mut Vec<FieldError>) {
    let at = "metadata.ownerReferences";
    let owners = object::list(object, "/metadata/ownerReferences");
    let mut controller: Option<String> = None;
    for owner in owners {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if object::text(owner, &format!("/{field}")).is_empty() {
                errors.push(FieldError::invalid(format!("{at}.{field}"), &json!(""), why));
            }
        }
        if object::is_true(owner, "/controller") {
            let this = format!("{}/{}", object::kind(owner), object::text(owner, "/name"));
            match &controller {
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    errors.push(FieldError::invalid(at, &json!(owners), &why));
                }
                None => controller = Some(this),
            }
        }
    }
}

/// What of it a write may not change: who it is, when it goes, and new reasons to stay once it goes.
pub(crate) fn changes(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if object::is_being_deleted(old) {
        let mut added: Vec<&str> =
            object::finalizers(new).filter(|name| !object::finalizers(old).any(|old| old == *name)).collect();
        added.sort_unstable();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &why));
        }
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (before, after) = (&old["metadata"][field], &new["metadata"][field]);
        if !after.is_null() && *after != "" && before != after {
            errors.push(FieldError::invalid(format!("metadata.{field}"), after, "field is immutable"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_there_may_hold_what_is_going() {
        let object =
            |finalizers: Value, time: Value| json!({"metadata": {"finalizers": finalizers, "deletionTimestamp": time}});
        let going = object(json!(["a.b/c"]), json!("2026-01-02T03:04:05Z"));
        assert_eq!(changes(&object(json!(["a.b/c"]), Value::Null), &going), []);
        let told = changes(&object(json!(["a.b/d"]), json!("2026-01-02T03:04:06Z")), &going);
        let fields: Vec<&str> = told.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["metadata.finalizers", "metadata.deletionTimestamp"]);
    }

    #[test]
    fn one_owner_controls() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "A", "name": name, "uid": "u", "controller": true});
        let mut errors = Vec::new();
        owners(&json!({"metadata": {"ownerReferences": [owner("a"), owner("b")]}}), &mut errors);
        assert!(errors[0].detail.ends_with("references for A/a and A/b"), "{errors:?}");
    }
}
