//! Objects of CRDs held against their schema, with Kubernetes' words.
//!
//! A value that an update does not change is not checked again, as in Kubernetes: a schema that became stricter
//! does not lock what is stored. Recursion follows the object, whose depth was limited to 128 when it was parsed.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Map, Value};

use super::prune::join;
use super::{ListType, Schema, Type, format};
use crate::status::{FieldError, FieldErrorKind};

impl Schema {
    /// All that is wrong with a value, which an update may have changed from `old`. CEL rules are another matter
    /// ([`super::Rules`]).
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        check(self, value, old, "", &mut errors);
        duplicates(self, value, old, "", &mut errors);
        errors
    }
}

fn check(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    // Kubernetes' own types (metadata) are decoded, not validated.
    if old == Some(value) || (value.is_null() && schema.nullable) || !schema.name.is_empty() {
        return;
    }
    combinations(schema, value, old, path, errors);
    if !has_type(schema.kind, value) {
        let (wanted, found) = (type_name(schema.kind), json_type(value));
        let detail = format!("Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\"");
        errors.push(FieldError { kind: FieldErrorKind::TypeInvalid, field: path.to_owned(), detail });
    }
    let limits = &schema.limits;
    if !limits.allowed.is_empty() && !limits.allowed.contains(value) {
        let allowed: Vec<String> = limits.allowed.iter().map(plain_text).collect();
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        errors.push(FieldError::not_supported(path, value, &allowed));
    }
    match value {
        Value::Object(fields) => object(schema, fields, old, path, errors),
        Value::Array(items) => array(schema, items, old, path, errors),
        Value::String(text) => string(schema, text, value, path, errors),
        Value::Number(number) => numeric(schema, number.as_f64().unwrap_or(f64::NAN), value, path, errors),
        Value::Bool(_) | Value::Null => {}
    }
}

fn object(schema: &Schema, fields: &Map<String, Value>, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let embedded: &[&str] = if schema.embedded { &["apiVersion", "kind"] } else { &[] };
    let required = schema.required.iter().map(String::as_str).chain(embedded.iter().copied());
    for field in required.filter(|field| !fields.contains_key(*field)) {
        errors.push(FieldError::required(join(path, field), ""));
    }
    let count = fields.len() as u64;
    if let Some(least) = schema.limits.min_properties.filter(|least| count < *least) {
        errors.push(FieldError::invalid(
            path,
            &count.into(),
            &format!("{path} in body should have at least {least} properties"),
        ));
    }
    if let Some(most) = schema.limits.max_properties.filter(|most| count > *most) {
        errors.push(too_many(path, count, most));
    }
    for (field, value) in fields {
        if let Some(schema) = schema.properties.get(field).or(schema.additional.as_ref()) {
            check(schema, value, old.and_then(|old| old.get(field)), &join(path, field), errors);
        }
    }
}

fn array(schema: &Schema, items: &[Value], old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let count = items.len() as u64;
    if let Some(least) = schema.limits.min_items.filter(|least| count < *least) {
        errors.push(FieldError::invalid(
            path,
            &count.into(),
            &format!("{path} in body should have at least {least} items"),
        ));
    }
    if let Some(most) = schema.limits.max_items.filter(|most| count > *most) {
        errors.push(too_many(path, count, most));
    }
    let Some(of) = &schema.items else { return };
    for (index, item) in items.iter().enumerate() {
        check(of, item, old_item(schema, item, old), &format!("{path}[{index}]"), errors);
    }
}

fn string(schema: &Schema, text: &str, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let limits = &schema.limits;
    let length = text.chars().count() as u64;
    if let Some(least) = limits.min_length.filter(|least| length < *least) {
        errors.push(FieldError::invalid(path, value, &format!("{path} in body should be at least {least} chars long")));
    }
    if let Some(most) = limits.max_length.filter(|most| length > *most) {
        let detail = format!("Too long: may not be more than {most} bytes");
        errors.push(FieldError { kind: FieldErrorKind::TooLong, field: path.to_owned(), detail });
    }
    if let Some(pattern) = limits.pattern.as_deref().filter(|pattern| !matches_pattern(pattern, text)) {
        errors.push(FieldError::invalid(path, value, &format!("{path} in body should match '{pattern}'")));
    }
    if schema.kind == Type::String && !format::matches(&limits.format, text) {
        let format = &limits.format;
        let detail = format!("Invalid value: {value}: {path} in body must be of type {format}: {value}");
        errors.push(FieldError { kind: FieldErrorKind::TypeInvalid, field: path.to_owned(), detail });
    }
}

fn numeric(schema: &Schema, number: f64, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let limits = &schema.limits;
    let mut refuse =
        |what: String| errors.push(FieldError::invalid(path, value, &format!("{path} in body should be {what}")));
    if let Some(least) = limits.minimum {
        match limits.exclusive_minimum {
            true if number <= least => refuse(format!("greater than {least}")),
            false if number < least => refuse(format!("greater than or equal to {least}")),
            _ => {}
        }
    }
    if let Some(most) = limits.maximum {
        match limits.exclusive_maximum {
            true if number >= most => refuse(format!("less than {most}")),
            false if number > most => refuse(format!("less than or equal to {most}")),
            _ => {}
        }
    }
    if let Some(factor) = limits.multiple_of.filter(|factor| *factor > 0.0 && (number / factor).fract() != 0.0) {
        refuse(format!("a multiple of {factor}"));
    }
}

/// `allOf`, `anyOf`, `oneOf`, `not`. Kubernetes reports these at no field at all.
fn combinations(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let limits = &schema.limits;
    let attempts = |schemas: &[Schema]| -> Vec<Vec<FieldError>> {
        let attempt = |schema: &Schema| {
            let mut errors = Vec::new();
            check(schema, value, old, path, &mut errors);
            errors
        };
        schemas.iter().map(attempt).collect()
    };
    let nowhere = |what: &str| FieldError::invalid("<nil>", &"".into(), &format!("\"{path}\" must {what}"));

    if let Some(not) = &limits.not
        && attempts(std::slice::from_ref(&**not))[0].is_empty()
    {
        errors.push(nowhere("not validate the schema (not)"));
    }
    let any = attempts(&limits.any_of);
    if !any.is_empty() && any.iter().all(|errors| !errors.is_empty()) {
        errors.push(nowhere("validate at least one schema (anyOf)"));
        errors.extend(nearest(any));
    }
    let one = attempts(&limits.one_of);
    match one.iter().filter(|errors| errors.is_empty()).count() {
        1 => {}
        0 if one.is_empty() => {}
        0 => {
            errors.push(nowhere("validate one and only one schema (oneOf). Found none valid"));
            errors.extend(nearest(one));
        }
        many => {
            errors.push(nowhere(&format!("validate one and only one schema (oneOf). Found {many} valid alternatives")))
        }
    }
    let all = attempts(&limits.all_of);
    let failed = all.iter().filter(|errors| !errors.is_empty()).count();
    if failed > 0 {
        let none = if failed == all.len() { ". None validated" } else { "" };
        errors.extend(all.into_iter().flatten());
        errors.push(nowhere(&format!("validate all the schemas (allOf){none}")));
    }
}

/// The errors of the alternative that is nearest to being met.
fn nearest(attempts: Vec<Vec<FieldError>>) -> Vec<FieldError> {
    attempts.into_iter().min_by_key(Vec::len).unwrap_or_default()
}

/// Sets and map-like lists hold nothing twice. An update that does not touch such a list is not held against it.
fn duplicates(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    if old == Some(value) || !schema.name.is_empty() {
        return;
    }
    match value {
        Value::Array(items) => {
            let identity = |item: &Value| match &schema.list {
                ListType::Atomic => None,
                ListType::Set => Some(item.clone()),
                ListType::Map(keys) => Some(key_of(item, keys)),
            };
            let mut seen: HashMap<String, bool> = HashMap::new();
            for (index, item) in items.iter().enumerate() {
                let here = format!("{path}[{index}]");
                if let Some(identity) = identity(item) {
                    match seen.get_mut(&identity.to_string()) {
                        None => drop(seen.insert(identity.to_string(), false)),
                        Some(reported @ false) => {
                            *reported = true;
                            errors.push(FieldError::duplicate(here.as_str(), &identity));
                        }
                        Some(true) => {}
                    }
                }
                if let Some(of) = &schema.items {
                    duplicates(of, item, old_item(schema, item, old), &here, errors);
                }
            }
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                let old = old.and_then(|old| old.get(field));
                if let Some(schema) = schema.properties.get(field) {
                    duplicates(schema, value, old, &join(path, field), errors);
                } else if let Some(schema) = &schema.additional {
                    duplicates(schema, value, old, &format!("{path}[{field}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The keys of an item in a map-like list, by which it is known.
fn key_of(item: &Value, keys: &[String]) -> Value {
    keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect::<Map<_, _>>().into()
}

/// What an item was before the update: known in map-like lists only.
pub(super) fn old_item<'a>(list: &Schema, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let ListType::Map(keys) = &list.list else { return None };
    let key = key_of(item, keys);
    old?.as_array()?.iter().find(|old| key_of(old, keys) == key)
}

fn has_type(kind: Type, value: &Value) -> bool {
    match kind {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Boolean => value.is_boolean(),
        Type::Number => value.is_number(),
        Type::Integer => is_integer(value),
        Type::IntOrString => is_integer(value) || value.is_string(),
    }
}

/// `1.0` is an integer too; what does not fit 64 bits is not.
fn is_integer(value: &Value) -> bool {
    value.is_i64()
        || value.is_u64()
        || value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() < 9e18)
}

fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::Any => "any",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Boolean => "boolean",
        Type::Number => "number",
        Type::Integer => "integer",
        Type::IntOrString => "integer,string",
    }
}

/// The JSON schema type of a value.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn too_many(path: &str, count: u64, most: u64) -> FieldError {
    let detail = format!("Too many: {count}: must have at most {most} items");
    FieldError { kind: FieldErrorKind::TooMany, field: path.to_owned(), detail }
}

/// Patterns are compiled once: they come from schemas that were accepted, so there are few.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let regex = {
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok()).clone()
    };
    regex.is_none_or(|regex| regex.is_match(text))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
