//! What a write changed: the fields that are new, different or gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use super::field_set::FieldSet;
use super::place::{Form, Place};

#[derive(Debug, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Comparison {
    pub(super) fn of(old: &Value, new: &Value, place: Place<'_>) -> Self {
        let mut walk = Walk { comparison: Self::default(), path: Vec::new() };
        walk.compare(Some(old), Some(new), place);
        walk.comparison
    }

    /// Without the changes in `fields` and below.
    pub(super) fn without(self, fields: &FieldSet) -> Self {
        Self {
            removed: self.removed.without(fields),
            modified: self.modified.without(fields),
            added: self.added.without(fields),
        }
    }

    pub(super) fn written(&self) -> FieldSet {
        self.modified.union(&self.added)
    }
}

struct Walk {
    comparison: Comparison,
    path: Vec<Element>,
}

impl Walk {
    fn compare(&mut self, old: Option<&Value>, new: Option<&Value>, place: Place<'_>) {
        let is_leaf = match (old.map(|old| place.form(old)), new.map(|new| place.form(new))) {
            (None, None) => return,
            (Some(form), None) | (None, Some(form)) => self.compare_as(form, old, new, place),
            (Some(before), Some(after)) if before == after => self.compare_as(after, old, new, place),
            // A value of another type: gone as what it was, new as what it is.
            (Some(before), Some(after)) => {
                self.compare_as(before, old, new, place);
                self.compare_as(after, old, new, place)
            }
        };
        match (old, new) {
            (None, _) if !is_leaf => self.comparison.added.insert(&self.path),
            (_, None) if !is_leaf => self.comparison.removed.insert(&self.path),
            (_, _) => {}
        }
    }

    /// Whether the place turned out to be a leaf, and so was recorded already.
    fn compare_as(&mut self, form: Form<'_>, old: Option<&Value>, new: Option<&Value>, place: Place<'_>) -> bool {
        match form {
            Form::Leaf => self.leaf(old, new),
            Form::Map => {
                let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                if before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty) {
                    return self.leaf(old, new);
                }
                self.maps(before, after, place);
                false
            }
            Form::Set | Form::Keyed(_) => {
                let (before, after) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                if before.is_none_or(Vec::is_empty) && after.is_none_or(Vec::is_empty) {
                    return self.leaf(old, new);
                }
                self.lists(form, before, after, place);
                false
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (None, _) => self.comparison.added.insert(&self.path),
            (_, None) => self.comparison.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => self.comparison.modified.insert(&self.path),
            (Some(_), Some(_)) => {}
        }
        true
    }

    fn maps(&mut self, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>, place: Place<'_>) {
        let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
        for name in names {
            let (before, after) = (old.and_then(|map| map.get(name)), new.and_then(|map| map.get(name)));
            self.path.push(Element::field(name));
            self.compare(before, after, place.field(name));
            self.path.pop();
        }
    }

    fn lists(&mut self, form: Form<'_>, old: Option<&Vec<Value>>, new: Option<&Vec<Value>>, place: Place<'_>) {
        let mut items: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        let known = |item| Some((place.element(form, item).ok()?, item));
        for (element, item) in old.into_iter().flatten().filter_map(known) {
            items.entry(element).or_default().0.push(item);
        }
        for (element, item) in new.into_iter().flatten().filter_map(known) {
            items.entry(element).or_default().1.push(item);
        }
        for (element, (before, after)) in items {
            self.path.push(element);
            match (before.as_slice(), after.as_slice()) {
                ([] | [_], [] | [_]) => self.compare(before.first().copied(), after.first().copied(), place.items()),
                // Items that cannot be told apart are owned together.
                ([_, _, ..], [_, _, ..]) if before != after => self.comparison.modified.insert(&self.path),
                ([_, _, ..], [_, _, ..]) => {}
                ([_, _, ..], _) => {
                    if let Some(after) = after.first() {
                        self.compare(None, Some(after), place.items());
                    }
                    self.comparison.removed.insert(&self.path);
                }
                (_, [_, _, ..]) => {
                    if let Some(before) = before.first() {
                        self.compare(Some(before), None, place.items());
                    }
                    self.comparison.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

/// Whether two values are the same: a whole number is, however it is written.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() != other.is_f64() => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let matches = |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(matches)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_number_is_the_same_however_it_is_written() {
        assert!(same(&json!([{"minimum": 1.0}]), &json!([{"minimum": 1}])));
        assert!(!same(&json!({"minimum": 1.5}), &json!({"minimum": 1})));
        assert!(!same(&json!([1]), &json!([1, 1])) && !same(&json!({"a": 1}), &json!({"b": 1})));
        assert!(!same(&json!(1), &json!("1")));
    }
}
