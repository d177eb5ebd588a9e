//! A set of fields: what a manager owns, what a write changed. On the wire it is `fieldsV1`.
//!
//! A tree of path elements; a field can be a member without its children being members, and the other way round.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<Element, Node>,
}

/// One field of a set. A node is never empty: it is a member itself, or there are members below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FromIterator<(Element, Node)> for FieldSet {
    /// Empty nodes are left out.
    fn from_iter<I: IntoIterator<Item = (Element, Node)>>(nodes: I) -> Self {
        Self { nodes: nodes.into_iter().filter(|(_, node)| !node.is_empty()).collect() }
    }
}

impl FieldSet {
    /// The set of fields with these dotted paths, such as `metadata.labels`; for names without dots.
    pub fn of(paths: &[&str]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<Element> = path.split('.').map(Element::field).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds the field at `path`, not its parents. The whole object (an empty path) is never owned.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for element in parents {
            set = &mut set.nodes.entry(element.clone()).or_default().below;
        }
        set.nodes.entry(last.clone()).or_default().member = true;
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn has(&self, element: &Element) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        self.nodes.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = (&Element, &Node)> {
        self.nodes.iter()
    }

    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, node) in &other.nodes {
            let mine = union.nodes.entry(element.clone()).or_default();
            mine.member |= node.member;
            mine.below = mine.below.union(&node.below);
        }
        union
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let both = self.nodes.iter().filter_map(|(element, mine)| {
            let other = other.nodes.get(element)?;
            let member = mine.member && other.member;
            Some((element.clone(), Node { member, below: mine.below.intersection(&other.below) }))
        });
        both.collect()
    }

    /// The members that are not members of `other`.
    pub fn difference(&self, other: &Self) -> Self {
        let left = self.nodes.iter().map(|(element, mine)| {
            let node = match other.nodes.get(element) {
                None => mine.clone(),
                Some(other) => {
                    Node { member: mine.member && !other.member, below: mine.below.difference(&other.below) }
                }
            };
            (element.clone(), node)
        });
        left.collect()
    }

    /// The members that neither are members of `other` nor stand below one.
    pub fn without(&self, other: &Self) -> Self {
        let left = self.nodes.iter().filter_map(|(element, mine)| match other.nodes.get(element) {
            None => Some((element.clone(), mine.clone())),
            Some(other) if other.member => None,
            Some(other) => {
                let below = mine.below.without(&other.below);
                Some((element.clone(), Node { member: mine.member, below }))
            }
        });
        left.collect()
    }

    /// All members, at each level before those further below: the order in which Kubernetes tells conflicts.
    pub fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.walk(&mut Vec::new(), &mut paths);
        paths
    }

    fn walk(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            paths.push(path);
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.below.walk(prefix, paths);
            prefix.pop();
        }
    }

    /// Reads `fieldsV1`.
    pub fn parse(fields: &Value) -> std::result::Result<Self, String> {
        let Value::Object(fields) = fields else { return Err("the fields are no object".to_owned()) };
        let mut set = Self::default();
        for (key, value) in fields.iter().filter(|(key, _)| *key != ".") {
            let Some(element) = Element::parse(key)? else { continue };
            let below = Self::parse(value)?;
            let member = value.get(".").is_some() || below.is_empty();
            set.nodes.insert(element, Node { member, below });
        }
        Ok(set)
    }

    /// Writes `fieldsV1`.
    pub fn print(&self) -> Value {
        let fields = self.nodes.iter().map(|(element, node)| {
            let mut below = node.below.print();
            if let (Value::Object(below), true, false) = (&mut below, node.member, node.below.is_empty()) {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (element.print(), below)
        });
        Value::Object(fields.collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_v1_is_read_and_written() {
        let fields = json!({
            "f:metadata": {"f:finalizers": {".": {}, "v:\"x.io/a\\u0026b\"": {}}},
            "f:spec": {
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
                "i:3": {},
            },
        });
        let set = FieldSet::parse(&fields).unwrap();
        assert_eq!(set.print(), fields);
        let paths: Vec<String> = set.paths().iter().map(|path| super::super::element::path_text(path)).collect();
        let wanted = [
            ".metadata.finalizers",
            ".metadata.finalizers[=\"x.io/a&b\"]",
            ".spec[3]",
            ".spec.ports[containerPort=80,protocol=\"TCP\"]",
            ".spec.ports[containerPort=80,protocol=\"TCP\"].name",
        ];
        assert_eq!(paths, wanted);
    }

    #[test]
    fn what_a_later_kubernetes_wrote_is_passed_over_and_garbage_refused() {
        assert!(FieldSet::parse(&json!({"x:new": {}})).unwrap().is_empty());
        for garbage in [json!([]), json!({"bogus": {}}), json!({"k:[]": {}}), json!({"v:{": {}}), json!({"i:x": {}})] {
            assert!(FieldSet::parse(&garbage).is_err(), "{garbage}");
        }
    }

    #[test]
    fn a_parent_and_its_child_are_separate_members() {
        let parent = FieldSet::of(&["a.b"]);
        let child = FieldSet::of(&["a.b.c"]);
        let both = parent.union(&child);
        assert_eq!(both.difference(&parent), child);
        assert_eq!(both.difference(&child), parent);
        assert!(both.without(&parent).is_empty());
        assert_eq!(both.without(&child), parent);
        assert_eq!(both.intersection(&child), child);
        assert!(parent.intersection(&child).is_empty());
    }
}
