//! The objects as they were at one revision: what every read reads.
//!
//! A view is a persistent map. Taking and cloning one is O(1); writers never wait for it and it never changes.

use std::ops::Bound;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde_json::Value;

use super::{Key, Prefix};
use crate::object;

/// An object with the revision that wrote it; its `metadata.resourceVersion` says the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub revision: u64,
    pub object: Arc<Value>,
}

impl Stored {
    /// The object, marked as written by `revision`.
    pub(super) fn at(revision: u64, mut object: Value) -> Self {
        object::metadata_mut(&mut object).insert("resourceVersion".into(), revision.to_string().into());
        Self { revision, object: Arc::new(object) }
    }

    /// An object that came out of the store, with the revision that it carries.
    pub(super) fn of(object: Arc<Value>) -> Self {
        let revision = object::resource_version(&object).parse().expect("the store gave every object its revision");
        Self { revision, object }
    }
}

#[derive(Clone, Debug)]
pub struct View {
    revision: u64,
    objects: RedBlackTreeMapSync<Key, Stored>,
}

impl View {
    pub(super) fn new(revision: u64, objects: RedBlackTreeMapSync<Key, Stored>) -> Self {
        Self { revision, objects }
    }

    /// The last write that is in it, of whatever resource.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn get(&self, key: &Key) -> Option<Stored> {
        self.objects.get(key).cloned()
    }

    /// Every object, in the order of the keys.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, &Stored)> {
        self.objects.iter()
    }

    /// What `prefix` covers in the order of its keys, from the first after `after`, at most `limit`.
    pub fn list(
        &self,
        prefix: &Prefix,
        after: Option<&Key>,
        limit: Option<usize>,
    ) -> impl Iterator<Item = (&Key, &Stored)> {
        let start = prefix.start();
        let from = match after {
            Some(after) if *after >= start => Bound::Excluded(after.clone()),
            Some(_) | None => Bound::Included(start),
        };
        self.objects
            .range((from, Bound::Unbounded))
            .take_while(move |(key, _)| prefix.covers(key))
            .take(limit.unwrap_or(usize::MAX))
    }

    pub fn count(&self, prefix: &Prefix) -> usize {
        self.list(prefix, None, None).count()
    }

    /// The view at `revision`, which differs from this one by what is under one key.
    pub(super) fn change(&mut self, revision: u64, key: &Key, to: Option<Stored>) {
        self.revision = revision;
        match to {
            Some(stored) => self.objects.insert_mut(key.clone(), stored),
            None => {
                self.objects.remove_mut(key);
            }
        }
    }
}
