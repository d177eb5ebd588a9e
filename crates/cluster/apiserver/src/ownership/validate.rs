//! Whether an applied configuration fits the schema well enough to be merged: known fields, right types, list items
//! that can be told apart. Told in Kubernetes' words; what the values mean is for the schema to check.

use serde_json::Value;

use super::element::Element;
use super::place::{Form, Place};
use crate::go_text;
use crate::schema::Type;

/// All mistakes as one text, empty of them if there is none.
pub(super) fn validate(applied: &Value, place: Place<'_>) -> Result<(), String> {
    let mut mistakes = Vec::new();
    check(applied, place, "", &mut mistakes);
    match mistakes.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn check(value: &Value, place: Place<'_>, path: &str, mistakes: &mut Vec<String>) {
    if let Some(mistake) = wrong_type(value, place) {
        mistakes.push(format!("{path}: {mistake}"));
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let path = format!("{path}{}", Element::field(name));
                match place.declared(name) {
                    Some(place) => check(value, place, &path, mistakes),
                    None => mistakes.push(format!("{path}: field not declared in schema")),
                }
            }
        }
        Value::Array(items) => {
            let form = place.form(value);
            let mut seen = std::collections::BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let element = match form {
                    Form::Leaf | Form::Map => Element::Index(i64::try_from(index).unwrap_or(i64::MAX)),
                    Form::Set | Form::Keyed(_) => match place.element(form, item) {
                        Ok(element) => element,
                        Err(mistake) => return mistakes.push(format!("{path}: element {index}: {mistake}")),
                    },
                };
                let below = format!("{path}{element}");
                if !seen.insert(element.clone()) {
                    mistakes.push(format!("{path}: duplicate entries for key {element}"));
                }
                check(item, place.items(), &below, mistakes);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn wrong_type(value: &Value, place: Place<'_>) -> Option<String> {
    let Place::Known { schema, .. } = place else { return None };
    let found = || format!("&{{{}}}", go_text::print(value));
    match (schema.kind, value) {
        (_, Value::Null) | (Type::Any, _) => None,
        (Type::Object, Value::Object(_)) | (Type::Array, Value::Array(_)) => None,
        (Type::Object, _) => Some(format!("expected map, got {}", found())),
        (Type::Array, _) => Some(format!("expected list, got {}", found())),
        (Type::Integer | Type::Number, Value::Number(_)) => None,
        (Type::Integer | Type::Number, _) => {
            Some(format!("expected numeric (int or float), got {}", go_text::type_of(value)))
        }
        (Type::Boolean, Value::Bool(_)) => None,
        (Type::Boolean, _) => Some(format!("expected boolean, got {}", found())),
        (Type::IntOrString, Value::Bool(_) | Value::Number(_) | Value::String(_)) => None,
        (Type::IntOrString, _) => Some(format!("expected any scalar, got {}", found())),
        (Type::String, Value::String(_)) => None,
        // Kubernetes takes any scalar for a string with a format, such as a time.
        (Type::String, Value::Bool(_) | Value::Number(_)) if !matches!(schema.limits.format.as_str(), "" | "byte") => {
            None
        }
        (Type::String, Value::Bool(_) | Value::Number(_)) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{value}}}"))
        }
        (Type::String, Value::Object(_) | Value::Array(_)) => Some(format!("expected string, got {}", found())),
    }
}
