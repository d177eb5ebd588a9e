//! Reading fields for cells: what is absent reads as its zero, as it does in Kubernetes' own structs.

use serde_json::Value;

use crate::object;

pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, absent: &'a str) -> &'a str {
    match object::text(object, pointer) {
        "" => absent,
        text => text,
    }
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

pub(super) fn is_there(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

/// The status of a condition (`True`, `False`, `Unknown`), if it is there.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object::list(object, "/status/conditions");
    conditions.iter().find(|condition| object::text(condition, "/type") == kind).map(|it| object::text(it, "/status"))
}

/// Texts with commas between them; `absent` if there are none.
pub(super) fn joined(texts: impl IntoIterator<Item = String>, absent: &str) -> Value {
    match texts.into_iter().collect::<Vec<_>>().join(",") {
        none if none.is_empty() => absent.into(),
        joined => joined.into(),
    }
}
