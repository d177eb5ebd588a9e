//! The order of a merged list: what the patch orders stands in the patch's order, the rest of the live items keep
//! their places among them as well as they can.

use std::cmp::Ordering;

use serde_json::Value;

use super::{DIRECTIVE, confused, missing_key, wrong_type};
use crate::go_text;
use crate::status::Result;

/// What tells one item from another: its merge key, or itself in a list of scalars.
fn identity<'a>(item: &'a Value, key: Option<&str>) -> &'a Value {
    key.map_or(item, |key| item.get(key).unwrap_or(&Value::Null))
}

fn position(list: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    list.iter().position(|other| identity(other, key) == identity(item, key))
}

fn check_keys(list: &[Value], key: &str) -> Result<()> {
    for item in list {
        if !item.is_object() {
            return Err(wrong_type("map[string]interface {}", item));
        }
        item.get(key).ok_or_else(|| missing_key(item, key))?;
    }
    Ok(())
}

/// Puts `merged` in order: items of `wanted` in its order, the others in that of `live`, interleaved by it.
pub(super) fn arrange(merged: Vec<Value>, wanted: &[Value], live: &[Value], key: Option<&str>) -> Result<Vec<Value>> {
    if let Some(key) = key {
        check_keys(&merged, key)?;
        check_keys(wanted, key)?;
        check_keys(live, key)?;
    }
    let (mut patched, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| position(wanted, item, key).is_some());
    patched.sort_by_key(|item| position(wanted, item, key));
    others.sort_by_key(|item| position(live, item, key));

    let comes_first = |other: &Value, patched: &Value| match (position(live, other, key), position(live, patched, key))
    {
        (Some(other), Some(patched)) => other.cmp(&patched) == Ordering::Less,
        (_, _) => false,
    };
    let mut arranged = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in patched {
        while let Some(other) = others.next_if(|other| comes_first(other, &item)) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others);
    Ok(arranged)
}

/// The patch's items, those to delete aside, must stand in the order list, and in its order.
pub(super) fn check(patch: &[Value], wanted: &[Value], key: Option<&str>) -> Result<()> {
    if patch.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    let is_deleted = |item: &Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    let mut left = wanted;
    for item in patch.iter().filter(|item| !is_deleted(item)) {
        let is_directive = item.get(DIRECTIVE).is_some();
        if let (Some(key), false) = (key, is_directive) {
            check_keys(std::slice::from_ref(item), key)?;
        }
        let found = left.iter().position(|wanted| is_directive || identity(wanted, key) == identity(item, key));
        match found {
            Some(_) if is_directive => {}
            Some(index) => left = &left[index + 1..],
            None => {
                let (patch, wanted) = (go_text::print_list(patch), go_text::print_list(wanted));
                let order = "doesn't match $setElementOrder list";
                return Err(confused(format!("The order in patch list:\n{patch}\n {order}:\n{wanted}\n")));
            }
        }
    }
    Ok(())
}
