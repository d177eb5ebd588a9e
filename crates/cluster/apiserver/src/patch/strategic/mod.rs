//! Strategic merge patch: a merge that knows, from the schema, which lists are merged by a key.
//!
//! Maps are merged here, with their directives; lists in `list`, the order of a merged list in `order`. What kubectl
//! sends: null removes a field, `$patch: delete` a list item, `$deleteFromPrimitiveList/x` a scalar,
//! `$setElementOrder/x` the wanted order, `$retainKeys` the only fields that stay.

mod list;
mod order;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::{as_object, drop_nulls};
use crate::go_text;
use crate::schema::{PatchStrategy, Schema};
use crate::status::{Result, Status};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_SCALARS: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// `schema` is that of the object's kind. Custom resources have no strategic merge patch: the caller answers for them.
pub fn strategic(object: &Value, patch: &Value, schema: &Schema) -> Result<Value> {
    if patch.is_null() {
        return Ok(object.clone());
    }
    let original = object.as_object().cloned().unwrap_or_default();
    Ok(Value::Object(merge_maps(original, as_object(patch, "")?, schema)?))
}

/// A patch that Kubernetes itself does not tell from its own failure: code 500, no reason.
fn confused(message: String) -> Status {
    Status { code: 500, reason: "".into(), message, details: Value::Null }
}

fn missing_key(item: &Value, key: &str) -> Status {
    confused(format!("map: {} does not contain declared merge key: {key}", go_text::print(item)))
}

fn unknown_directive(directive: &Value, patch: &Value) -> Status {
    let directive = go_text::print(directive);
    confused(format!("unknown patch type: {directive} in map: {}", go_text::print(patch)))
}

fn wrong_type(wanted: &str, found: &Value) -> Status {
    confused(format!("expected a {wanted}, but received a {}", go_text::type_of(found)))
}

/// The schema of a field, or of a map's values.
fn field<'a>(schema: &'a Schema, name: &str) -> Result<&'a Schema> {
    let found = schema.properties.get(name).or(schema.additional.as_ref());
    found.map(AsRef::as_ref).ok_or_else(|| confused(format!("unable to find api field {name:?}")))
}

fn merge_maps(
    mut original: Map<String, Value>,
    patch: &Map<String, Value>,
    schema: &Schema,
) -> Result<Map<String, Value>> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                let mut whole = patch.clone();
                whole.remove(DIRECTIVE);
                Ok(whole)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, &Value::Object(patch.clone()))),
        };
    }
    retain_keys(&mut original, patch)?;
    let ordered = merge_ordered_lists(&mut original, patch, schema)?;
    for (key, value) in patch {
        if key == RETAIN_KEYS || key.starts_with(SET_ORDER) || ordered.contains(&key.as_str()) {
            continue;
        }
        if key.starts_with(DELETE_SCALARS) {
            let bad_format = || Status::bad_request("invalid patch format of primitive list");
            let name =
                key.strip_prefix(DELETE_SCALARS).and_then(|rest| rest.strip_prefix('/')).ok_or_else(bad_format)?;
            delete_scalars(&mut original, name, value)?;
            continue;
        }
        merge_field(&mut original, key, value, schema)?;
    }
    Ok(original)
}

fn merge_field(original: &mut Map<String, Value>, key: &str, patch: &Value, schema: &Schema) -> Result<()> {
    let merged = match (original.get_mut(key), patch) {
        (_, Value::Null) => None,
        (Some(Value::Object(below)), Value::Object(patch)) => {
            let schema = field(schema, key)?;
            let whole = schema.patch == PatchStrategy::Replace;
            let merged = if whole { patch.clone() } else { merge_maps(std::mem::take(below), patch, schema)? };
            Some(Value::Object(merged))
        }
        (Some(Value::Array(items)), Value::Array(patch)) => {
            let schema = field(schema, key)?;
            Some(Value::Array(list::merge(std::mem::take(items), patch, schema)?))
        }
        (_, value) => without_directives(value),
    };
    match merged {
        Some(mut merged) => {
            drop_nulls(&mut merged);
            original.insert(key.to_owned(), merged);
        }
        None => {
            original.remove(key);
        }
    }
    Ok(())
}

/// The value as it is added where there was none before; `None` if it is itself a directive.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let fields = map.iter().filter_map(|(key, value)| Some((key.clone(), without_directives(value)?)));
            Some(Value::Object(fields.collect()))
        }
        Value::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

fn retain_keys(original: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<()> {
    let Some(retained) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let bad_format = || Status::bad_request("invalid patch format of retainKeys");
    let retained = retained.as_array().ok_or_else(bad_format)?;
    let is_retained = |key: &str| retained.iter().any(|retained| retained.as_str() == Some(key));
    let is_directive = |key: &str| key == RETAIN_KEYS || key.starts_with(DELETE_SCALARS) || key.starts_with(SET_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_directive(key) && !is_retained(key)) {
        return Err(bad_format());
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

fn delete_scalars(original: &mut Map<String, Value>, name: &str, deleted: &Value) -> Result<()> {
    match (original.get_mut(name), deleted) {
        (_, Value::Null) => {
            original.remove(name);
        }
        (Some(Value::Array(items)), Value::Array(deleted)) if !(items.is_empty() && deleted.is_empty()) => {
            list::check_types(items, deleted)?;
            items.retain(|item| !deleted.contains(item));
        }
        // Nothing to delete from.
        (_, _) => {}
    }
    Ok(())
}

/// Merges the lists whose order the patch sets, and returns the names of those that need no more merging.
fn merge_ordered_lists<'a>(
    original: &mut Map<String, Value>,
    patch: &'a Map<String, Value>,
    schema: &Schema,
) -> Result<Vec<&'a str>> {
    let mut done = Vec::new();
    for (key, wanted) in patch.iter().filter(|(key, _)| key.starts_with(SET_ORDER)) {
        let items = |value: &'a Value| value.as_array().ok_or_else(|| wrong_type("[]interface {}", value));
        let wanted = items(wanted)?;
        let bad_format = || Status::bad_request("invalid patch format of setElementOrder list");
        let name = key.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/')).ok_or_else(bad_format)?;
        let live = match original.get(name) {
            Some(Value::Array(items)) => Some(items),
            Some(other) => return Err(wrong_type("[]interface {}", other)),
            None => None,
        };
        let patched = patch.get(name).map(items).transpose()?;
        let schema = field(schema, name)?;
        let merge_key = list::merge_key(schema);
        order::check(patched.map_or(&[], Vec::as_slice), wanted, merge_key)?;
        let merged = match (live, patched) {
            (None, None) => continue,
            (Some(live), None) => live.clone(),
            (None, Some(patched)) => patched.iter().filter_map(without_directives).collect(),
            (Some(live), Some(patched)) => list::merge(live.clone(), patched, schema)?,
        };
        let (live, patched) = (live.map_or(&[][..], Vec::as_slice), patched.map_or(&[][..], Vec::as_slice));
        list::check_types(live, patched)?;
        let live = live_order(live, patched, merge_key);
        let mut ordered = Value::Array(order::arrange(merged, wanted, &live, merge_key)?);
        drop_nulls(&mut ordered);
        original.insert(name.to_owned(), ordered);
        done.push(name);
    }
    Ok(done)
}

/// The live order as Kubernetes has it once the patch is merged: new items stand where deleted ones stood, because it
/// merges into the list that it then takes the order from.
fn live_order(live: &[Value], patch: &[Value], key: Option<&str>) -> Vec<Value> {
    let Some(key) = key else { return live.to_vec() };
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    let is_deleted = |item: &&Value| {
        patch.iter().any(|patch| directive(patch).as_deref() == Some("delete") && patch.get(key) == item.get(key))
    };
    let mut order: Vec<Value> = live.iter().filter(|item| !is_deleted(item)).cloned().collect();
    if patch.iter().any(|patch| directive(patch).as_deref() == Some("replace")) {
        return order;
    }
    let deleted = live.len() - order.len();
    let is_new = |item: &&Value| directive(item).is_none() && !order.iter().any(|live| live.get(key) == item.get(key));
    let added: Vec<Value> = patch.iter().filter(is_new).take(deleted).cloned().collect();
    order.extend(added);
    order
}
