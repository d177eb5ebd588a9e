//! OpenAPI v3 of what is served, a document per group and version: what `kubectl explain` shows, what `kubectl apply`
//! computes its patches by, and how clients learn that the server validates fields.
//!
//! Documents are made when they are first asked for, and remade only for a group whose resources changed.

mod components;
mod paths;
mod v2;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Value, json};

pub use v2::{ASKS_FOR_PROTOBUF, V2_AS_PROTOBUF, V2_PROTOBUF, v2_as_json};

use crate::discovery::Served;
use components::Components;

/// All documents, by their path without `/openapi/v3/`: `api/v1`, `apis/apps/v1`.
#[derive(Debug, Default)]
pub struct OpenApi {
    documents: BTreeMap<String, Arc<Document>>,
}

/// One group's version.
#[derive(Debug)]
pub struct Document {
    /// What it was made from.
    served: Vec<Arc<Served>>,
    /// Changes with the body, and stands in the URL: a client may keep for ever what it got there.
    pub hash: String,
    /// JSON.
    pub body: String,
}

impl OpenApi {
    /// The documents of what is served now; those whose resources are the same as `before` are kept.
    pub fn new(served: &[Arc<Served>], before: &Self) -> Self {
        let mut by_path: BTreeMap<String, Vec<Arc<Served>>> = BTreeMap::new();
        for served in served {
            by_path.entry(path(served)).or_default().push(served.clone());
        }
        let document = |(path, served): (String, Vec<Arc<Served>>)| {
            let kept = before.documents.get(&path).filter(|document| is_same(&document.served, &served));
            let document = kept.cloned().unwrap_or_else(|| Arc::new(Document::new(served)));
            (path, document)
        };
        Self { documents: by_path.into_iter().map(document).collect() }
    }

    /// `/openapi/v3`: where each document is.
    pub fn index(&self) -> Value {
        let at = |(path, document): (&String, &Arc<Document>)| {
            let url = format!("/openapi/v3/{path}?hash={}", document.hash);
            (path.clone(), json!({"serverRelativeURL": url}))
        };
        json!({"paths": self.documents.iter().map(at).collect::<serde_json::Map<_, _>>()})
    }

    /// `/openapi/v3/PATH`.
    pub fn document(&self, path: &str) -> Option<&Arc<Document>> {
        self.documents.get(path)
    }
}

fn path(served: &Served) -> String {
    match served.group.as_str() {
        "" => format!("api/{}", served.version),
        group => format!("apis/{group}/{}", served.version),
    }
}

fn is_same(some: &[Arc<Served>], others: &[Arc<Served>]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| Arc::ptr_eq(one, other))
}

impl Document {
    fn new(served: Vec<Arc<Served>>) -> Self {
        let mut components = Components::default();
        let mut paths = serde_json::Map::new();
        for served in &served {
            let component = components.add_kind(served);
            paths.extend(paths::of(served, &component));
        }
        let document = json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "1.35"},
            "paths": paths,
            "components": {"schemas": components.schemas},
        });
        let body = document.to_string();
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        Self { served, hash: format!("{:016X}", hasher.finish()), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::examples;

    #[test]
    fn the_index_says_where_each_document_is() {
        let openapi = OpenApi::new(&examples::all(), &OpenApi::default());
        let index = openapi.index();
        let paths: Vec<&String> = index["paths"].as_object().expect("a map").keys().collect();
        let wanted = ["api/v1", "apis/apps/v1", "apis/printing.example.com/v1", "apis/printing.example.com/v1beta1"];
        assert_eq!(paths, wanted);
        let document = openapi.document("apis/apps/v1").expect("served");
        let url = format!("/openapi/v3/apis/apps/v1?hash={}", document.hash);
        assert_eq!(index["paths"]["apis/apps/v1"]["serverRelativeURL"], url);
        assert!(openapi.document("apis/apps/v2").is_none());
    }

    #[test]
    fn only_the_documents_of_what_changed_are_made_anew() {
        let mut served = examples::all();
        let before = OpenApi::new(&served, &OpenApi::default());
        served.push(Arc::new(examples::served("printing.example.com", "v1", "Gadget", "gadgets")));
        let after = OpenApi::new(&served, &before);
        let same = |path: &str| Arc::ptr_eq(&before.documents[path], &after.documents[path]);
        assert!(same("apis/apps/v1"));
        assert!(!same("apis/printing.example.com/v1"));
        let hash = |openapi: &OpenApi| openapi.documents["apis/printing.example.com/v1"].hash.clone();
        assert_ne!(hash(&before), hash(&after));
    }
}
