//! How large an object is: whether it nests too deeply to be read again from the disk, and what it takes in memory.

use serde_json::{Map, Value};

/// Maps and lists within each other that serde_json reads back. Clients' bodies pass the same limit; patches can make
/// deeper objects.
pub const DEEPEST: usize = 127;

/// The nodes of a map have room for eleven entries, however few there are.
const MAP_NODE: usize = 11 * (size_of::<String>() + size_of::<Value>());

pub(super) fn is_too_deep(object: &Value) -> bool {
    nests_below(object, DEEPEST)
}

fn nests_below(value: &Value, levels: usize) -> bool {
    let mut inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    levels == 0 || inner.any(|value| nests_below(value, levels - 1))
}

/// Bytes in memory, roughly.
pub(super) fn weigh(value: &Value) -> usize {
    let inside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weigh).sum(),
        Value::Object(map) => weigh_map(map),
    };
    size_of::<Value>() + inside
}

fn weigh_map(map: &Map<String, Value>) -> usize {
    let entries: usize = map.iter().map(|(key, value)| key.len() + weigh(value)).sum();
    map.len().div_ceil(11) * MAP_NODE + entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (1..levels).fold(Value::Object(Map::new()), |inner, _| Value::Array(vec![inner]))
    }

    #[test]
    fn an_object_is_too_deep_exactly_when_its_text_cannot_be_read() {
        for levels in [1, DEEPEST, DEEPEST + 1, DEEPEST + 2] {
            let object = nested(levels);
            let readable = serde_json::from_str::<Value>(&object.to_string()).is_ok();
            assert_eq!(is_too_deep(&object), !readable, "{levels} levels");
        }
    }
}
