//! The fields that an object sets: what its applier owns. And, of a set, the named fields on the way to its members.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::Element;
use super::field_set::{FieldSet, Node};
use super::place::{Form, Place};

pub(super) fn fields_of(value: &Value, place: Place<'_>) -> FieldSet {
    node_of(value, place).below
}

fn node_of(value: &Value, place: Place<'_>) -> Node {
    let form = place.form(value);
    match (form, value) {
        (Form::Leaf, _) => Node { member: true, below: FieldSet::default() },
        (Form::Map, Value::Object(map)) => {
            let nodes = map.iter().map(|(name, value)| {
                let mut node = node_of(value, place.field(name));
                let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                // A named field is there because of what is in it; a free key is itself somebody's.
                node.member |= is_empty || !place.names(name);
                (Element::field(name), node)
            });
            Node { member: false, below: nodes.collect() }
        }
        (Form::Set | Form::Keyed(_), Value::Array(items)) => {
            let mut nodes: BTreeMap<Element, Node> = BTreeMap::new();
            for item in items {
                let Ok(element) = place.element(form, item) else { continue };
                let node = Node { member: true, below: node_of(item, place.items()).below };
                // Items that cannot be told apart are owned together.
                nodes.entry(element).and_modify(|node| node.below = FieldSet::default()).or_insert(node);
            }
            Node { member: false, below: nodes.into_iter().collect() }
        }
        (Form::Map | Form::Set | Form::Keyed(_), _) => Node::default(),
    }
}

/// The set with every named field that has members below it as a member too: an object is removed with its last
/// field, while a map with free keys is a member only where somebody says so.
pub(super) fn with_named_parents(set: &FieldSet, place: Place<'_>) -> FieldSet {
    let nodes = set.nodes().map(|(element, node)| {
        let (is_named, child) = match element {
            Element::Field(name) => (place.names(name), place.field(name)),
            Element::Key(_) => (false, place.items()),
            Element::Value(_) | Element::Index(_) => (false, Place::Unknown),
        };
        let member = node.member || (is_named && !node.below.is_empty());
        (element.clone(), Node { member, below: with_named_parents(&node.below, child) })
    });
    nodes.collect()
}
