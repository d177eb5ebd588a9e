//! Filling defaults into untyped JSON.

use serde_json::Value;

/// Sets a field that is absent or null.
pub(crate) fn fill(object: &mut Value, field: &str, default: Value) {
    if let Some(map) = object.as_object_mut() {
        let value = map.entry(field).or_insert(Value::Null);
        if value.is_null() {
            *value = default;
        }
    }
}

/// Sets a field of an object's part (`status`, say), which is made if it is absent or null.
pub(crate) fn fill_in(object: &mut Value, part: &str, field: &str, default: Value) {
    fill(object, part, serde_json::json!({}));
    if let Some(part) = object.get_mut(part) {
        fill(part, field, default);
    }
}

/// Sets everything that is absent, at any depth.
pub(crate) fn fill_all(object: &mut Value, defaults: &Value) {
    for (field, default) in defaults.as_object().into_iter().flatten() {
        match object.get_mut(field) {
            Some(present) => fill_all(present, default),
            None => fill(object, field, default.clone()),
        }
    }
}

/// The items of the list at a pointer; none if there is no list.
pub(crate) fn each<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}
