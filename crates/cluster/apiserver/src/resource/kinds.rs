//! Every resource that is served right now. Custom ones come and go while the server runs: a request takes the table
//! as it is when it begins.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::{Resource, builtin};
use crate::status::Status;

type Table = BTreeMap<(String, String, String), Arc<Resource>>;

/// Shared by all requests; a change replaces the table as a whole.
pub struct Kinds(RwLock<Arc<Table>>);

impl Kinds {
    /// The built-in kinds.
    pub fn builtin() -> Self {
        let table = builtin::all().into_iter().map(|resource| (key(&resource), Arc::new(resource))).collect();
        Self(RwLock::new(Arc::new(table)))
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.table().get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// The resource of an object's `apiVersion` and `kind`.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let table = self.table();
        let found = table
            .values()
            .find(|resource| resource.group == group && resource.version == version && resource.kind == kind);
        found.cloned()
    }

    /// The refusal of a path in a group: those that nobody built in are known to no more than a web server.
    pub fn no_such_path(&self, group: &str) -> Status {
        let built_in = |resource: &Arc<Resource>| resource.group == group && !resource.is_custom();
        if self.table().values().any(built_in) { Status::no_such_path() } else { Status::no_such_page() }
    }

    /// All of them, in the order of group, version and plural.
    pub fn all(&self) -> Vec<Arc<Resource>> {
        self.table().values().cloned().collect()
    }

    /// Puts the versions of one custom resource in the place of those it had.
    pub fn replace_custom(&self, group: &str, plural: &str, served: Vec<Resource>) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::clone(&current);
        table.retain(|_, resource| resource.group != group || resource.plural != plural);
        table.extend(served.into_iter().map(|resource| (key(&resource), Arc::new(resource))));
        *current = Arc::new(table);
    }

    fn table(&self) -> Arc<Table> {
        // A table is whole at any time: a panic elsewhere does not harm it.
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn key(resource: &Resource) -> (String, String, String) {
    (resource.group.clone(), resource.version.clone(), resource.plural.clone())
}
