//! Reading fields for cells: what is absent reads as its zero, as it does in Kubernetes' own structs.

use jiff::Timestamp;
use serde_json::Value;

use crate::object;
use crate::time;

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn texts<'a>(object: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(object, pointer).iter().filter_map(Value::as_str).collect()
}

pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, absent: &'a str) -> &'a str {
    match object::text(object, pointer) {
        "" => absent,
        text => text,
    }
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

pub(super) fn flag(object: &Value, pointer: &str, absent: bool) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or(absent)
}

/// How many keys a map has.
pub(super) fn size(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

pub(super) fn is_there(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

pub(super) fn age(object: &Value, now: Timestamp) -> String {
    time::age(object::text(object, "/metadata/creationTimestamp"), now)
}

/// The status of a condition (`True`, `False`, `Unknown`), if it is there.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = list(object, "/status/conditions");
    conditions.iter().find(|condition| object::text(condition, "/type") == kind).map(|it| object::text(it, "/status"))
}
