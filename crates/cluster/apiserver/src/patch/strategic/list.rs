//! Merging a list: of objects by their merge key, of scalars as a set; other lists are replaced.

use serde_json::Value;

use super::{DIRECTIVE, confused, merge_maps, missing_key, order, unknown_directive};
use crate::go_text;
use crate::schema::{PatchStrategy, Schema};
use crate::status::{Result, Status};

/// The key that the list's objects are merged by, if they are.
pub(super) fn merge_key(schema: &Schema) -> Option<&str> {
    match &schema.patch {
        PatchStrategy::Merge { key, retain_keys: _ } => key.as_deref(),
        PatchStrategy::Plain | PatchStrategy::RetainKeys | PatchStrategy::Replace => None,
    }
}

pub(super) fn merge(live: Vec<Value>, patch: &[Value], schema: &Schema) -> Result<Vec<Value>> {
    if !matches!(schema.patch, PatchStrategy::Merge { .. }) {
        return Ok(patch.to_vec());
    }
    let key = merge_key(schema);
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    check_types(&live, patch)?;
    let of_objects = live.iter().chain(patch).any(Value::is_object);
    match key {
        Some(key) if of_objects => merge_objects(live, patch, key, schema),
        None if of_objects => Err(confused("cannot merge lists without merge key".to_owned())),
        _ => {
            let mut both: Vec<Value> = Vec::new();
            for item in live.iter().chain(patch) {
                if !both.contains(item) {
                    both.push(item.clone());
                }
            }
            order::arrange(both, patch, &live, None)
        }
    }
}

fn merge_objects(live: Vec<Value>, patch: &[Value], key: &str, schema: &Schema) -> Result<Vec<Value>> {
    let (live, patch) = obey_directives(live, patch, key)?;
    let items = schema.items.as_deref().ok_or_else(|| confused("the list's items have no schema".to_owned()))?;
    let mut merged = live.clone();
    for item in &patch {
        let id = item.get(key).ok_or_else(|| missing_key(item, key))?;
        let found = merged.iter_mut().find(|live| live.get(key) == Some(id));
        match (found, item) {
            (Some(Value::Object(found)), Value::Object(item)) => {
                *found = merge_maps(std::mem::take(found), item, items)?;
            }
            _ => merged.push(item.clone()),
        }
    }
    order::arrange(merged, &patch, &live, Some(key))
}

/// Carries out `$patch` of the patch's items; what is left to merge is returned beside the live list.
fn obey_directives(mut live: Vec<Value>, patch: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::new();
    let mut replace = false;
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item.clone());
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let id = item.get(key).ok_or_else(|| missing_key(item, key))?;
                live.retain(|live| live.get(key) != Some(id));
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(confused("merging lists cannot yet be specified in the patch".to_owned())),
            _ => return Err(unknown_directive(directive, item)),
        }
    }
    if replace { Ok((plain, Vec::new())) } else { Ok((live, plain)) }
}

/// The items of both lists must be of one type, and no lists themselves.
pub(super) fn check_types(live: &[Value], patch: &[Value]) -> Result<()> {
    let mut types = live.iter().chain(patch).map(go_text::type_of);
    let Some(first) = types.next() else {
        return Err(confused("no elements in any of the given slices".to_owned()));
    };
    if first == go_text::type_of(&Value::Array(Vec::new())) {
        let message = "lists of lists are not supported".to_owned();
        return Err(Status { code: 422, reason: "Invalid".into(), message, details: Value::Null });
    }
    if types.all(|other| other == first) {
        return Ok(());
    }
    let lists = format!("[{} {}]", go_text::print_list(live), go_text::print_list(patch));
    Err(confused(format!("list element types are not identical: {lists}")))
}
