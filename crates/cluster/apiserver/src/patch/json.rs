//! JSON patch (RFC 6902), with the leniencies of the library that Kubernetes uses.
//!
//! They are: an absent key reads as null (so `replace` adds it and `copy` copies null), negative indices count from
//! the end, an absent `value` is null. Whatever does not apply is refused with one and the same sentence.

use serde_json::{Map, Value, json};

use super::MAX_DEPTH;
use crate::go_text;
use crate::status::{FieldError, Result, Status};

const MAX_OPERATIONS: usize = 10_000;
/// What all `copy` operations of a patch may add, in bytes of JSON: copies of copies double.
const MAX_COPIED: usize = 3 * 1024 * 1024;

pub fn json(object: &Value, patch: &Value) -> Result<Value> {
    let operations = decode(patch)?;
    if operations.len() > MAX_OPERATIONS {
        let found = operations.len();
        let words = "The allowed maximum operations in a JSON patch is";
        return Err(Status::too_large(format!("{words} {MAX_OPERATIONS}, got {found}")));
    }
    let mut patching = Patching { document: object.clone(), copied: 0 };
    for operation in operations {
        patching.apply(operation)?;
    }
    Ok(patching.document)
}

fn decode(patch: &Value) -> Result<Vec<&Map<String, Value>>> {
    let refuse = |words: String| Status::bad_request(format!("error decoding patch: {words}"));
    if patch.is_null() {
        return Ok(Vec::new());
    }
    let wanted = "[]handlers.jsonPatchOp";
    let operations = patch.as_array().ok_or_else(|| refuse(go_text::cannot_decode(patch, wanted)))?;
    let decoded = operations.iter().map(|operation| {
        let wanted = "handlers.jsonPatchOp";
        operation.as_object().ok_or_else(|| refuse(go_text::cannot_decode(operation, wanted)))
    });
    decoded.collect()
}

/// What Kubernetes answers to every operation that does not apply: it keeps the reason to itself.
fn does_not_apply() -> Status {
    let message = "the server rejected our request due to an error in our request".to_owned();
    Status { code: 422, reason: "Invalid".into(), message, details: json!({}) }
}

struct Patching {
    document: Value,
    copied: usize,
}

impl Patching {
    fn apply(&mut self, operation: &Map<String, Value>) -> Result<()> {
        let text = |field| operation.get(field).and_then(Value::as_str).ok_or_else(does_not_apply);
        let value = || operation.get("value").cloned().unwrap_or(Value::Null);
        match text("op")? {
            "add" => self.add(text("path")?, value()),
            "remove" => self.place(text("path")?)?.remove().map(drop),
            "replace" => self.replace(text("path")?, value()),
            "move" => {
                let moved = self.place(text("from")?)?.remove()?;
                self.add(text("path")?, moved)
            }
            "copy" => {
                let copy = self.place(text("from")?)?.get()?;
                self.copied += copy.to_string().len();
                if self.copied > MAX_COPIED {
                    return Err(does_not_apply());
                }
                self.add(text("path")?, copy)
            }
            "test" if self.read(text("path")?)? == value() => Ok(()),
            _ => Err(does_not_apply()),
        }
    }

    fn read(&mut self, path: &str) -> Result<Value> {
        if path.is_empty() { Ok(self.document.clone()) } else { self.place(path)?.get() }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<()> {
        check_depth(path, &value)?;
        self.place(path)?.add(value)
    }

    fn replace(&mut self, path: &str, value: Value) -> Result<()> {
        check_depth(path, &value)?;
        match (path, value) {
            ("", Value::Object(whole)) => {
                self.document = Value::Object(whole);
                Ok(())
            }
            ("", _) => Err(does_not_apply()),
            (path, value) => self.place(path)?.set(value),
        }
    }

    /// The container that the last token of `path` points into.
    fn place(&mut self, path: &str) -> Result<Place<'_>> {
        let mut tokens: Vec<String> = path.split('/').skip(1).map(decode_token).collect();
        let key = tokens.pop().ok_or_else(does_not_apply)?;
        let mut container = &mut self.document;
        for token in &tokens {
            container = match container {
                Value::Object(map) => map.get_mut(token),
                Value::Array(items) => index(token, items.len()).and_then(|index| items.get_mut(index)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            }
            .ok_or_else(does_not_apply)?;
        }
        match container {
            Value::Object(map) => Ok(Place::Field(map, key)),
            Value::Array(items) => Ok(Place::Item(items, key)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(does_not_apply()),
        }
    }
}

enum Place<'a> {
    Field(&'a mut Map<String, Value>, String),
    Item(&'a mut Vec<Value>, String),
}

impl Place<'_> {
    fn get(self) -> Result<Value> {
        match self {
            Self::Field(map, key) => Ok(map.get(&key).cloned().unwrap_or(Value::Null)),
            Self::Item(items, key) => {
                let found = index(&key, items.len()).and_then(|index| items.get(index));
                found.cloned().ok_or_else(does_not_apply)
            }
        }
    }

    fn set(self, value: Value) -> Result<()> {
        match self {
            Self::Field(map, key) => {
                map.insert(key, value);
            }
            Self::Item(items, key) => {
                let found = index(&key, items.len()).and_then(|index| items.get_mut(index));
                *found.ok_or_else(does_not_apply)? = value;
            }
        }
        Ok(())
    }

    fn add(self, value: Value) -> Result<()> {
        match self {
            Self::Field(map, key) => {
                map.insert(key, value);
            }
            Self::Item(items, key) if key == "-" => items.push(value),
            Self::Item(items, key) => {
                // One more place than there are items: an item may be added after the last.
                let place = index(&key, items.len() + 1).ok_or_else(does_not_apply)?;
                items.insert(place, value);
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Value> {
        match self {
            Self::Field(map, key) => map.remove(&key).ok_or_else(does_not_apply),
            Self::Item(items, key) => {
                index(&key, items.len()).map(|index| items.remove(index)).ok_or_else(does_not_apply)
            }
        }
    }
}

/// An index within `places`; negative ones count from the end.
fn index(token: &str, places: usize) -> Option<usize> {
    let index: isize = token.parse().ok()?;
    let index = if index < 0 { places.checked_add_signed(index)? } else { index.unsigned_abs() };
    (index < places).then_some(index)
}

fn decode_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn check_depth(path: &str, value: &Value) -> Result<()> {
    if path.matches('/').count() + depth(value) <= MAX_DEPTH {
        return Ok(());
    }
    let error = FieldError::invalid("patch", &Value::from(path), "exceeded max depth");
    Err(Status::invalid("", "", "", &[error]))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(patch: Value) -> Value {
        let object = json!({"a": {"b": "c"}, "list": [1, 2], "s/l~a": 1});
        json(&object, &patch).unwrap()
    }

    #[test]
    fn each_operation_does_its_work() {
        assert_eq!(patched(json!([{"op": "add", "path": "/list/1", "value": 9}]))["list"], json!([1, 9, 2]));
        assert_eq!(patched(json!([{"op": "add", "path": "/list/-", "value": 9}]))["list"], json!([1, 2, 9]));
        assert_eq!(patched(json!([{"op": "add", "path": "/list/-1", "value": 9}]))["list"], json!([1, 2, 9]));
        assert_eq!(patched(json!([{"op": "remove", "path": "/list/-1"}]))["list"], json!([1]));
        assert_eq!(patched(json!([{"op": "replace", "path": "/s~1l~0a", "value": 2}]))["s/l~a"], json!(2));
        assert_eq!(patched(json!([{"op": "move", "from": "/a/b", "path": "/d"}]))["d"], json!("c"));
        assert_eq!(patched(json!([{"op": "copy", "from": "/a", "path": "/a/b"}]))["a"], json!({"b": {"b": "c"}}));
        assert_eq!(patched(json!([{"op": "test", "path": "/list", "value": [1, 2]}]))["list"], json!([1, 2]));
        assert_eq!(patched(json!([{"op": "replace", "path": "", "value": {}}])), json!({}));
    }

    #[test]
    fn what_is_absent_reads_as_null() {
        assert_eq!(patched(json!([{"op": "replace", "path": "/a/new", "value": 1}]))["a"]["new"], json!(1));
        assert_eq!(patched(json!([{"op": "copy", "from": "/a/no", "path": "/x"}]))["x"], Value::Null);
        assert_eq!(patched(json!([{"op": "add", "path": "/x"}]))["x"], Value::Null);
        patched(json!([{"op": "test", "path": "/a/no", "value": null}]));
    }

    #[test]
    fn what_does_not_apply_is_refused_with_kubernetes_one_sentence() {
        let refused = [
            json!({"op": "bogus", "path": "/a"}),
            json!({"path": "/a"}),
            json!({"op": "add", "value": 1}),
            json!({"op": "add", "path": "a", "value": 1}),
            json!({"op": "add", "path": "", "value": {}}),
            json!({"op": "add", "path": "/no/thing", "value": 1}),
            json!({"op": "add", "path": "/list/9", "value": 1}),
            json!({"op": "add", "path": "/list/x", "value": 1}),
            json!({"op": "remove", "path": "/a/no"}),
            json!({"op": "remove", "path": "/list/2"}),
            json!({"op": "replace", "path": "/list/2", "value": 1}),
            json!({"op": "replace", "path": "", "value": 3}),
            json!({"op": "move", "from": "/a/no", "path": "/x"}),
            json!({"op": "copy", "from": "/no/thing", "path": "/x"}),
            json!({"op": "test", "path": "/a/b", "value": "x"}),
        ];
        for operation in refused {
            let status = json(&json!({"a": {"b": "c"}, "list": [1, 2]}), &json!([operation])).unwrap_err();
            assert_eq!((status.code, &*status.reason, &status.details), (422, "Invalid", &json!({})), "{operation}");
            assert_eq!(status.message, "the server rejected our request due to an error in our request");
        }
    }

    #[test]
    fn a_patch_of_the_wrong_shape_is_refused_in_kubernetes_words() {
        let words = |patch| json(&json!({}), &patch).unwrap_err().message;
        let says = |what| format!("error decoding patch: json: cannot unmarshal {what}");
        assert_eq!(words(json!({})), says("object into Go value of type []handlers.jsonPatchOp"));
        assert_eq!(words(json!([1])), says("number into Go value of type handlers.jsonPatchOp"));
    }

    #[test]
    fn operations_copies_and_depth_are_capped() {
        let many = vec![json!({"op": "test", "path": "/a", "value": null}); 10_001];
        let status = json(&json!({}), &json!(many)).unwrap_err();
        assert_eq!(status.message, "The allowed maximum operations in a JSON patch is 10000, got 10001");
        assert_eq!(status.code, 413);

        let doubling = vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 30];
        assert_eq!(json(&json!({"a": ["0123456789"]}), &json!(doubling)).unwrap_err().code, 422);

        let deeper = vec![
            json!({"op": "move", "from": "/a", "path": "/b"}),
            json!({"op": "add", "path": "/a", "value": {}}),
            json!({"op": "move", "from": "/b", "path": "/a/a"}),
        ];
        let deeper: Vec<Value> = deeper.into_iter().cycle().take(3 * 200).collect();
        assert!(json(&json!({"a": {}}), &json!(deeper)).unwrap_err().message.ends_with("exceeded max depth"));
    }

    #[test]
    fn the_deepest_object_a_patch_makes_can_be_read_again() {
        let path = "/a".repeat(MAX_DEPTH - 1);
        let text = format!("{}{}{}", "{\"a\":".repeat(MAX_DEPTH - 1), "{}", "}".repeat(MAX_DEPTH - 1));
        let object: Value = serde_json::from_str(&text).unwrap();
        let wider = json(&object, &json!([{"op": "add", "path": format!("{path}/b"), "value": 1}])).unwrap();
        assert!(serde_json::from_str::<Value>(&wider.to_string()).is_ok());
        let deeper = json(&object, &json!([{"op": "add", "path": format!("{path}/b"), "value": {}}]));
        assert!(deeper.unwrap_err().message.ends_with("exceeded max depth"));
    }
}
