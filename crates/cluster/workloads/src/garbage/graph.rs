//! Who owns whom, over all kinds, and what is to be done with an object whose owners went or go. Pure.

use std::collections::{HashMap, HashSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::ApiResource;

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// An object as the graph knows it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) resource: ApiResource,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) owners: Vec<OwnerReference>,
    goes: bool,
    finalizers: Vec<String>,
}

impl Node {
    pub(super) fn new(resource: &ApiResource, meta: &ObjectMeta) -> Self {
        Self {
            resource: resource.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
            owners: meta.owner_references.clone().unwrap_or_default(),
            goes: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
        }
    }

    fn goes_with(&self, finalizer: &str) -> bool {
        self.goes && self.finalizers.iter().any(|other| other == finalizer)
    }

    /// It goes once those that depend on it are gone.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.goes_with(FOREGROUND)
    }

    /// It goes once those that depend on it have let go.
    pub(super) fn orphans_dependents(&self) -> bool {
        self.goes_with(ORPHAN)
    }
}

#[derive(Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    dependents: HashMap<String, HashSet<String>>,
}

impl Graph {
    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<(String, Node)> {
        let uids = self.dependents.get(uid).into_iter().flatten();
        uids.filter_map(|uid| Some((uid.clone(), self.nodes.get(uid)?.clone()))).collect()
    }

    /// Takes in a new or changed object; the uids that need a look now.
    pub(super) fn put(&mut self, uid: &str, node: Node) -> Vec<String> {
        let before = self.nodes.insert(uid.to_owned(), node.clone());
        for owner in before.iter().flat_map(|before| &before.owners) {
            self.let_go(&owner.uid, uid);
        }
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.to_owned());
        }
        let mut wake = Vec::new();
        let was = |holds: fn(&Node) -> bool| before.as_ref().is_some_and(holds);
        if node.orphans_dependents() && !was(Node::orphans_dependents) {
            wake.push(uid.to_owned());
        }
        if node.waits_for_dependents() && !was(Node::waits_for_dependents) {
            wake.push(uid.to_owned());
            wake.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        }
        // An owner that is not known may be gone already, or its watch may lag: a look tells.
        let owners_changed = before.as_ref().is_none_or(|before| before.owners != node.owners);
        let doubtful = |owner: &OwnerReference| self.nodes.get(&owner.uid).is_none_or(Node::waits_for_dependents);
        if owners_changed && node.owners.iter().any(doubtful) {
            wake.push(uid.to_owned());
        }
        // Owners that wait may wait no longer, if this one stopped blocking them.
        wake.extend(self.waiting_owners(before.iter().flat_map(|before| &before.owners)));
        wake
    }

    /// Takes out an object that is gone; the uids that need a look now: those it owned, and owners that waited for it.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<String> {
        let node = self.nodes.remove(uid);
        let owners: Vec<OwnerReference> = node.into_iter().flat_map(|node| node.owners).collect();
        for owner in &owners {
            self.let_go(&owner.uid, uid);
        }
        let mut wake: Vec<String> = self.dependents.get(uid).into_iter().flatten().cloned().collect();
        wake.extend(self.waiting_owners(owners.iter()));
        wake
    }

    /// Takes out what a complete list of a kind no longer has; the uids that need a look now.
    pub(super) fn keep(&mut self, kind: &ApiResource, listed: &HashSet<String>) -> Vec<String> {
        let gone = self.nodes.iter().filter(|(uid, node)| node.resource == *kind && !listed.contains(*uid));
        let gone: Vec<String> = gone.map(|(uid, _)| uid.clone()).collect();
        gone.iter().flat_map(|uid| self.remove(uid)).collect()
    }

    fn waiting_owners<'a>(&self, owners: impl Iterator<Item = &'a OwnerReference>) -> Vec<String> {
        let waits = |owner: &&OwnerReference| self.nodes.get(&owner.uid).is_some_and(Node::waits_for_dependents);
        owners.filter(waits).map(|owner| owner.uid.clone()).collect()
    }

    fn let_go(&mut self, owner: &str, uid: &str) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(uid);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}

/// How an owner stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Standing {
    Solid,
    Gone,
    WaitsForDependents,
}

#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Keep,
    /// Some owners are gone, but not all: forget these (their uids).
    LetGo(Vec<String>),
    /// Delete it in the foreground, for it has dependents of its own. `unblock`: one of them waits too, which may be a
    /// circle, so it must not block its owners any more.
    DeleteInForeground {
        unblock: bool,
    },
    Delete,
}

/// What is to be done with an object, given each of its owners' standing and those that depend on it.
pub(super) fn judge(owners: &[(String, Standing)], dependents: &[(String, Node)]) -> Verdict {
    let count = |standing| owners.iter().filter(|(_, other)| *other == standing).count();
    if owners.is_empty() || count(Standing::Solid) == owners.len() {
        return Verdict::Keep;
    }
    if count(Standing::Solid) > 0 {
        let going = owners.iter().filter(|(_, standing)| *standing != Standing::Solid);
        return Verdict::LetGo(going.map(|(uid, _)| uid.clone()).collect());
    }
    if count(Standing::WaitsForDependents) > 0 && !dependents.is_empty() {
        let unblock = dependents.iter().any(|(_, node)| node.waits_for_dependents());
        return Verdict::DeleteInForeground { unblock };
    }
    Verdict::Delete
}

/// The dependents that an owner waiting in the foreground waits for.
pub(super) fn blocking(owner: &str, dependents: Vec<(String, Node)>) -> Vec<(String, Node)> {
    let blocks = |node: &Node| {
        node.owners.iter().any(|reference| reference.uid == owner && reference.block_owner_deletion == Some(true))
    };
    dependents.into_iter().filter(|(_, node)| blocks(node)).collect()
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use serde_json::{Value, json};

    use super::*;

    fn node(meta: Value) -> Node {
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        assert_eq!(resource.plural, k8s_openapi::api::core::v1::Pod::plural(&()));
        Node::new(&resource, &serde_json::from_value(meta).unwrap())
    }

    fn owned_by(owner: &str) -> Value {
        json!([{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "blockOwnerDeletion": true}])
    }

    fn going(finalizer: &str) -> Node {
        node(json!({"name": "owner", "deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": [finalizer]}))
    }

    #[test]
    fn when_an_owner_is_gone_those_it_owned_are_looked_at() {
        let mut graph = Graph::default();
        assert_eq!(graph.put("owner", node(json!({"name": "owner"}))), [""; 0]);
        assert_eq!(graph.put("child", node(json!({"name": "child", "ownerReferences": owned_by("owner")}))), [""; 0]);
        assert_eq!(graph.remove("owner"), ["child"]);
        assert_eq!(judge(&[("owner".into(), Standing::Gone)], &[]), Verdict::Delete);
    }

    #[test]
    fn what_a_new_list_lacks_is_gone() {
        let mut graph = Graph::default();
        graph.put("owner", node(json!({"name": "owner"})));
        graph.put("child", node(json!({"name": "child", "ownerReferences": owned_by("owner")})));
        let kind = graph.get("owner").unwrap().resource.clone();
        assert_eq!(graph.keep(&kind, &["child".to_owned()].into()), ["child"]);
        assert!(graph.get("owner").is_none() && graph.get("child").is_some());
    }

    #[test]
    fn an_object_whose_owner_is_unknown_is_looked_at() {
        let mut graph = Graph::default();
        assert_eq!(graph.put("child", node(json!({"name": "child", "ownerReferences": owned_by("owner")}))), ["child"]);
    }

    #[test]
    fn an_owner_in_the_foreground_waits_for_those_that_block_it_and_no_longer() {
        let mut graph = Graph::default();
        graph.put("owner", node(json!({"name": "owner"})));
        graph.put("child", node(json!({"name": "child", "ownerReferences": owned_by("owner")})));
        assert_eq!(graph.put("owner", going(FOREGROUND)), ["owner", "child"]);
        assert_eq!(blocking("owner", graph.dependents("owner")).len(), 1);
        assert_eq!(graph.remove("child"), ["owner"]);
        assert!(blocking("owner", graph.dependents("owner")).is_empty());
    }

    #[test]
    fn an_owner_that_orphans_is_looked_at() {
        let mut graph = Graph::default();
        graph.put("owner", node(json!({"name": "owner"})));
        assert_eq!(graph.put("owner", going(ORPHAN)), ["owner"]);
    }

    #[test]
    fn one_solid_owner_is_enough_to_stay() {
        let owners = [("a".to_owned(), Standing::Solid), ("b".to_owned(), Standing::Gone)];
        assert_eq!(judge(&owners, &[]), Verdict::LetGo(vec!["b".to_owned()]));
        assert_eq!(judge(&owners[..1], &[]), Verdict::Keep);
        assert_eq!(judge(&[], &[]), Verdict::Keep);
    }

    #[test]
    fn below_a_waiting_owner_those_with_dependents_wait_too() {
        let waits = [("a".to_owned(), Standing::WaitsForDependents)];
        let child = ("child".to_owned(), node(json!({"name": "child"})));
        assert_eq!(judge(&waits, &[child]), Verdict::DeleteInForeground { unblock: false });
        assert_eq!(judge(&waits, &[]), Verdict::Delete);
        let circle = ("child".to_owned(), going(FOREGROUND));
        assert_eq!(judge(&waits, &[circle]), Verdict::DeleteInForeground { unblock: true });
    }
}
