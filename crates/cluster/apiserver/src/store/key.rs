//! How objects are named in the store, and the ranges that lists and watches cover.

use std::fmt;
use std::sync::Arc;

/// One object. Ordered by resource, then namespace, then name: the order of every list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Plural and group, such as `deployments.apps`, or `pods` for the core group.
    pub resource: Arc<str>,
    /// Empty for objects of the whole cluster.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(resource: impl Into<Arc<str>>, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} \"{}\"", self.resource, self.name),
            namespace => write!(f, "{} \"{namespace}/{}\"", self.resource, self.name),
        }
    }
}

/// What a list or a watch covers: a resource, everywhere or in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub resource: Arc<str>,
    pub namespace: Option<Arc<str>>,
}

impl Prefix {
    pub fn everywhere(resource: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), namespace: None }
    }

    pub fn in_namespace(resource: impl Into<Arc<str>>, namespace: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), namespace: Some(namespace.into()) }
    }

    pub fn covers(&self, key: &Key) -> bool {
        self.resource == key.resource && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }

    /// Not after any key that is covered, and after every key of an earlier range.
    pub(super) fn start(&self) -> Key {
        Key::new(self.resource.clone(), self.namespace.clone().unwrap_or_default(), "")
    }
}
