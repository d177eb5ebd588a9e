//! Reading and writing the parts that every object has, in untyped JSON.
//!
//! Reading never fails: what is absent or of another type reads as absent. What a client sends was checked by the
//! schema before anything here looks at it.

use serde_json::{Map, Value};

pub fn kind(object: &Value) -> &str {
    text(object, "/kind")
}

pub fn api_version(object: &Value) -> &str {
    text(object, "/apiVersion")
}

pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

pub fn is_being_deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "/metadata/finalizers").iter().filter_map(Value::as_str)
}

pub fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    pairs(object, "/metadata/labels")
}

pub fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    pairs(object, "/metadata/annotations")
}

/// The text at a JSON pointer; empty if there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The items of the list at a JSON pointer; none if there is no list.
pub fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of the list at a JSON pointer.
pub fn texts(object: &Value, pointer: &str) -> Vec<String> {
    list(object, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The fields of the object at a JSON pointer.
pub fn fields<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

pub fn is_true(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer) == Some(&Value::Bool(true))
}

fn pairs<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    fields(object, pointer).filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// The object's `metadata`, made if it is not there. An object that is no JSON object becomes one: callers have
/// checked it before.
pub fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_mut(map_mut(object).entry("metadata").or_insert(Value::Null))
}

/// Makes a field of `object` what it is in `other`: absent if it is absent there.
pub fn copy_field(object: &mut Value, other: &Value, field: &str) {
    match other.get(field) {
        Some(value) => map_mut(object).insert(field.to_owned(), value.clone()),
        None => map_mut(object).remove(field),
    };
}

/// The value as a JSON object, replaced by an empty one if it is anything else.
pub fn map_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was made one above"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_absent_or_of_another_type_reads_as_absent() {
        let object = json!({"metadata": {"name": 7, "labels": {"a": "b", "c": 1}, "deletionTimestamp": null}});
        assert_eq!(name(&object), "");
        assert_eq!(labels(&object).collect::<Vec<_>>(), [("a", "b")]);
        assert!(!is_being_deleted(&object));
        assert_eq!(finalizers(&object).count(), 0);
    }

    #[test]
    fn metadata_is_made_where_there_is_none() {
        let mut object = json!({});
        metadata_mut(&mut object).insert("name".into(), "web".into());
        assert_eq!(name(&object), "web");
    }
}
