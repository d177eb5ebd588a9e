//! The three patches that change an object in place: JSON patch, JSON merge patch, strategic merge patch.
//!
//! Pure functions from an object and a patch to the patched object. They refuse with Kubernetes' words; whether the
//! result is a valid object is for others to say. The fourth patch, server-side apply, is in [`crate::ownership`].

mod json;
mod merge;
mod strategic;

pub use json::json;
pub use merge::merge;
pub use strategic::strategic;

use serde_json::{Map, Value};

use crate::go_text;
use crate::status::{Result, Status};

/// The deepest object that a patch may make: what serde_json still reads back from the store.
pub const MAX_DEPTH: usize = 127;

/// The patch as a JSON object; `prefix` is what Kubernetes says before the decoder's words.
fn as_object<'a>(patch: &'a Value, prefix: &str) -> Result<&'a Map<String, Value>> {
    let wanted = "map[string]interface {}";
    patch.as_object().ok_or_else(|| Status::bad_request(format!("{prefix}{}", go_text::cannot_decode(patch, wanted))))
}

/// Removes the keys whose value is null, at any depth: in a merge, null means absent; in a built-in kind, always.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
