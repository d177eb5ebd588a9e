//! What an object is called: the key of caches and queues.

use std::fmt;

use kube::{Resource, ResourceExt};

/// Namespace (empty for cluster kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    pub(crate) fn cluster(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    pub(crate) fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }

    /// The object of this name in the same namespace.
    pub(crate) fn beside<K: Resource>(object: &K, name: impl Into<String>) -> Self {
        Self::new(object.namespace().unwrap_or_default(), name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}
