//! JSON merge patch (RFC 7396): objects are merged, null removes, everything else is replaced.

use serde_json::{Map, Value};

use super::{as_object, drop_nulls};
use crate::status::{Result, Status};

pub fn merge(object: &Value, patch: &Value) -> Result<Value> {
    if patch.is_null() {
        return Err(Status::bad_request("Invalid JSON Patch"));
    }
    let patch = as_object(patch, "error decoding patch: ")?;
    let mut merged = object.as_object().cloned().unwrap_or_default();
    merge_maps(&mut merged, patch);
    Ok(Value::Object(merged))
}

fn merge_maps(object: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        match (object.get_mut(key), value) {
            (_, Value::Null) => {
                object.remove(key);
            }
            (Some(Value::Object(below)), Value::Object(patch)) => merge_maps(below, patch),
            (_, value) => {
                let mut value = value.clone();
                drop_nulls(&mut value);
                object.insert(key.clone(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_merge_lists_are_replaced_and_null_removes() {
        let object = json!({"a": {"b": 1, "c": [1, 2]}, "d": "x"});
        let patch = json!({"a": {"b": null, "c": [3]}, "d": null, "e": {"f": null, "g": 1}});
        assert_eq!(merge(&object, &patch).unwrap(), json!({"a": {"c": [3]}, "e": {"g": 1}}));
    }

    #[test]
    fn a_patch_that_is_no_object_is_refused_in_kubernetes_words() {
        let words = |patch| merge(&json!({}), &patch).unwrap_err().message;
        let list = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}";
        assert_eq!(words(json!([1])), list);
        assert_eq!(words(Value::Null), "Invalid JSON Patch");
    }
}
