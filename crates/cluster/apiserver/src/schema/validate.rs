//! Objects of CRDs held against their schema, with Kubernetes' words.
//!
//! A value that an update does not change is not checked again, as in Kubernetes: a schema that became stricter
//! does not lock what is stored. Recursion follows the object, whose depth was limited to 128 when it was parsed.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::{Limits, ListType, Schema, Type, format, join};
use crate::status::{FieldError, FieldErrorKind};

impl Schema {
    /// All that is wrong with a value, which an update may have changed from `old`. CEL rules are another matter
    /// ([`Schema::check_rules`]).
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        check(self, value, old, "", &mut errors);
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
        let (wanted, found) = (schema.kind.name().unwrap_or("integer,string"), json_type(value));
        let detail = format!("Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\"");
        errors.push(FieldError { kind: FieldErrorKind::TypeInvalid, field: path.to_owned(), detail });
    }
    let limits = &schema.limits;
    if !limits.allowed.is_empty() && !limits.allowed.contains(value) {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let allowed: Vec<String> = limits.allowed.iter().map(text).collect();
        errors.push(FieldError::not_supported(path, value, &allowed.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    match value {
        Value::Object(fields) => object(schema, fields, old, path, errors),
        Value::Array(items) => array(schema, items, old, path, errors),
        Value::String(text) => string(schema, text, value, path, errors),
        Value::Number(number) => numeric(limits, number, value, path, errors),
        Value::Bool(_) | Value::Null => {}
    }
}

fn object(schema: &Schema, fields: &Map<String, Value>, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let embedded: &[&str] = if schema.embedded { &["apiVersion", "kind"] } else { &[] };
    let required = schema.required.iter().map(String::as_str).chain(embedded.iter().copied());
    for field in required.filter(|field| !fields.contains_key(*field)) {
        errors.push(FieldError::required(join(path, field), ""));
    }
    let Limits { min_properties, max_properties, .. } = schema.limits;
    count(fields.len(), min_properties, max_properties, "properties", path, errors);
    for (field, value) in fields {
        if let Some(schema) = schema.properties.get(field).or(schema.additional.as_ref()) {
            check(schema, value, old.and_then(|old| old.get(field)), &join(path, field), errors);
        }
    }
}

fn array(schema: &Schema, items: &[Value], old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    count(items.len(), schema.limits.min_items, schema.limits.max_items, "items", path, errors);
    // Sets and map-like lists hold nothing twice; what they do is told once.
    let (mut seen, mut told) = (HashSet::new(), HashSet::new());
    for (index, item) in items.iter().enumerate() {
        let here = format!("{path}[{index}]");
        if let Some(of) = &schema.items {
            check(of, item, old_item(schema, item, old), &here, errors);
        }
        let identity = match &schema.list {
            ListType::Atomic => continue,
            ListType::Set => item.clone(),
            ListType::Map(keys) => key_of(item, keys),
        };
        if !seen.insert(identity.to_string()) && told.insert(identity.to_string()) {
            errors.push(FieldError::duplicate(here, &identity));
        }
    }
}

/// How many there may be in an object or a list.
fn count(found: usize, least: Option<i64>, most: Option<i64>, of: &str, path: &str, errors: &mut Vec<FieldError>) {
    let found = i64::try_from(found).unwrap_or(i64::MAX);
    if let Some(least) = least.filter(|least| found < *least) {
        let why = format!("{path} in body should have at least {least} {of}");
        errors.push(FieldError::invalid(path, &found.into(), &why));
    }
    if let Some(most) = most.filter(|most| found > *most) {
        let detail = format!("Too many: {found}: must have at most {most} items");
        errors.push(FieldError { kind: FieldErrorKind::TooMany, field: path.to_owned(), detail });
    }
}

fn string(schema: &Schema, text: &str, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Limits { min_length, max_length, pattern, format, .. } = &schema.limits;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    // Of these only the first is told.
    if let Some(most) = max_length.filter(|most| length > *most) {
        let detail = format!("Too long: may not be more than {most} bytes");
        errors.push(FieldError { kind: FieldErrorKind::TooLong, field: path.to_owned(), detail });
    } else if let Some(least) = min_length.filter(|least| length < *least) {
        errors.push(FieldError::invalid(path, value, &format!("{path} in body should be at least {least} chars long")));
    } else if !pattern.is_empty() && !matches_pattern(pattern, text) {
        errors.push(FieldError::invalid(path, value, &format!("{path} in body should match '{pattern}'")));
    }
    if schema.kind == Type::String && !format::matches(format, text) {
        let detail = format!("Invalid value: {value}: {path} in body must be of type {format}: {value}");
        errors.push(FieldError { kind: FieldErrorKind::TypeInvalid, field: path.to_owned(), detail });
    }
}

fn numeric(limits: &Limits, number: &Number, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let [least, most, factor] =
        [&limits.minimum, &limits.maximum, &limits.multiple_of].map(|limit| limit.as_ref().and_then(Number::as_f64));
    let number = number.as_f64().unwrap_or(f64::NAN);
    let mut refuse =
        |what: String| errors.push(FieldError::invalid(path, value, &format!("{path} in body should be {what}")));
    match least {
        Some(least) if limits.exclusive_minimum && number <= least => refuse(format!("greater than {least}")),
        Some(least) if number < least => refuse(format!("greater than or equal to {least}")),
        _ => {}
    }
    match most {
        Some(most) if limits.exclusive_maximum && number >= most => refuse(format!("less than {most}")),
        Some(most) if number > most => refuse(format!("less than or equal to {most}")),
        _ => {}
    }
    if let Some(factor) = factor.filter(|factor| *factor > 0.0 && (number / factor).fract() != 0.0) {
        refuse(format!("a multiple of {factor}"));
    }
}

/// `allOf`, `anyOf`, `oneOf`, `not`. Kubernetes reports these at no field at all.
fn combinations(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let limits = &schema.limits;
    let attempt = |schema: &Schema| {
        let mut errors = Vec::new();
        check(schema, value, old, path, &mut errors);
        errors
    };
    let attempts = |schemas: &[Schema]| schemas.iter().map(attempt).collect::<Vec<_>>();
    let nowhere = |what: &str| FieldError::invalid("<nil>", &"".into(), &format!("\"{path}\" must {what}"));
    // The errors of the alternative that is nearest to being met.
    let nearest = |attempts: Vec<Vec<FieldError>>| attempts.into_iter().min_by_key(Vec::len).unwrap_or_default();

    if limits.not.as_ref().is_some_and(|not| attempt(not).is_empty()) {
        errors.push(nowhere("not validate the schema (not)"));
    }
    let any = attempts(&limits.any_of);
    if !any.is_empty() && any.iter().all(|errors| !errors.is_empty()) {
        errors.push(nowhere("validate at least one schema (anyOf)"));
        errors.extend(nearest(any));
    }
    let one = attempts(&limits.one_of);
    match one.iter().filter(|errors| errors.is_empty()).count() {
        0 if !one.is_empty() => {
            errors.push(nowhere("validate one and only one schema (oneOf). Found none valid"));
            errors.extend(nearest(one));
        }
        0 | 1 => {}
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
