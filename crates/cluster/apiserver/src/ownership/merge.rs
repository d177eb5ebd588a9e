//! Merging an applied configuration into the live object, and taking fields out of an object.
//!
//! Merged lists keep the applied order for what is applied, and the places of the other items as well as they can.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use super::field_set::FieldSet;
use super::place::{Form, Place};

pub(super) fn merge(live: &Value, applied: &Value, place: Place<'_>) -> Value {
    let form = place.form(applied);
    if form != place.form(live) {
        return applied.clone();
    }
    match form {
        Form::Leaf => applied.clone(),
        Form::Map => match (live.as_object(), applied.as_object()) {
            // Both empty: the applied one, so that null and {} stay what they are.
            (live, applied_map) if live.is_none_or(Map::is_empty) && applied_map.is_none_or(Map::is_empty) => {
                applied.clone()
            }
            (live, applied) => Value::Object(merge_maps(live, applied, place)),
        },
        Form::Set | Form::Keyed(_) => {
            let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
            let (live, applied_items) = (items(live), items(applied));
            if live.is_empty() && applied_items.is_empty() {
                return applied.clone();
            }
            Value::Array(merge_lists(&live, &applied_items, form, place))
        }
    }
}

fn merge_maps(
    live: Option<&Map<String, Value>>,
    applied: Option<&Map<String, Value>>,
    place: Place<'_>,
) -> Map<String, Value> {
    let mut merged = live.cloned().unwrap_or_default();
    for (name, value) in applied.into_iter().flatten() {
        let value = match merged.get(name) {
            Some(live) => merge(live, value, place.field(name)),
            None => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

fn merge_lists(live: &[Value], applied: &[Value], form: Form<'_>, place: Place<'_>) -> Vec<Value> {
    let elements = |items: &[Value]| -> Vec<(Element, Value)> {
        items.iter().filter_map(|item| Some((place.element(form, item).ok()?, item.clone()))).collect()
    };
    let (live, applied) = (elements(live), elements(applied));
    let is_applied: BTreeSet<&Element> = applied.iter().map(|(element, _)| element).collect();
    let mut live_items: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in &live {
        // Of doubles none is merged: the applied item replaces them.
        live_items.entry(element).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let merge_item = |element: &Element, item: &Value| match live_items.get(element) {
        Some(Some(live)) => merge(live, item, place.items()),
        Some(None) | None => item.clone(),
    };

    // The applied items that are live too, in the applied order: they are the posts between which the rest stands.
    let mut posts = applied.iter().map(|(element, _)| element).filter(|element| live_items.contains_key(element));
    let mut next_post = posts.next();
    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let (mut left, mut right) = (live.as_slice(), applied.as_slice());
    while !(left.is_empty() && right.is_empty()) {
        if let ([(mine, _), rest @ ..], [(theirs, item), more @ ..]) = (left, right) {
            if mine == theirs {
                done.insert(theirs);
                merged.push(merge_item(theirs, item));
                next_post = posts.next();
                (left, right) = (rest, more);
                continue;
            }
            if is_applied.contains(mine) && next_post.is_some_and(|post| post != mine) {
                left = rest;
                continue;
            }
        }
        if let [(mine, item), rest @ ..] = left {
            if !is_applied.contains(mine) {
                merged.push(item.clone());
                left = rest;
                continue;
            }
            if done.contains(mine) {
                left = rest;
            }
        }
        if let [(theirs, item), more @ ..] = right {
            done.insert(theirs);
            merged.push(merge_item(theirs, item));
            right = more;
            if next_post == Some(theirs) {
                next_post = posts.next();
            }
        }
    }
    merged
}

/// The value without the members of `set`. What loses all that was in it becomes null, as in Kubernetes.
pub(super) fn remove(value: &Value, set: &FieldSet, place: Place<'_>) -> Value {
    let form = place.form(value);
    match (form, value) {
        (Form::Map, Value::Object(map)) => {
            let kept = map.iter().filter_map(|(name, value)| {
                let element = Element::field(name);
                Some((name.clone(), remove_at(&element, value, set, place.field(name))?))
            });
            let kept: Map<String, Value> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        (Form::Set | Form::Keyed(_), Value::Array(items)) => {
            let kept = items.iter().filter_map(|item| {
                let element = place.element(form, item).ok()?;
                remove_at(&element, item, set, place.items())
            });
            let kept: Vec<Value> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (_, Value::Object(_) | Value::Array(_)) => Value::Null,
        (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => value.clone(),
    }
}

fn remove_at(element: &Element, value: &Value, set: &FieldSet, place: Place<'_>) -> Option<Value> {
    if set.has(element) {
        return None;
    }
    Some(set.below(element).map_or_else(|| value.clone(), |below| remove(value, below, place)))
}
