//! What is served: groups, versions and resources, as clients discover them, and the server's version.
//!
//! Everything is derived from the list of [`Served`] resources; the list is whoever holds the kinds' to keep.

mod aggregated;
mod legacy;
mod order;
mod version;

use std::sync::Arc;

use serde_json::Value;

pub use aggregated::{aggregated, aggregated_content_type};
pub use legacy::{api_versions, group, group_list, resource_list};
pub use order::version_priority;
pub use version::version;

use crate::schema::Schema;

/// One served resource in one version, in plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: Vec<&'static str>,
    pub subresources: Vec<Subresource>,
    /// By a CRD; or as one: Kubernetes has no strategic merge for it.
    pub custom: bool,
    pub schema: Arc<Schema>,
}

/// `status`, `scale`, `exec`: what stands below an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subresource {
    pub name: String,
    pub kind: String,
    /// Group and version of the kind if they are not the resource's.
    pub foreign: Option<(String, String)>,
    pub verbs: Vec<&'static str>,
}

impl Served {
    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        join(&self.group, &self.version)
    }

    /// Adds the other names that it goes by, if there are any.
    fn add_names(&self, resource: &mut Value) {
        for (field, names) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            if !names.is_empty() {
                resource[field] = names.as_slice().into();
            }
        }
    }
}

impl Subresource {
    /// `foreign` is the group of the kind if it is not the resource's.
    pub fn new(name: &str, kind: &str, foreign: Option<&str>, verbs: &[&'static str]) -> Self {
        let foreign = foreign.map(|group| (group.to_owned(), "v1".to_owned()));
        Self { name: name.to_owned(), kind: kind.to_owned(), foreign, verbs: verbs.to_vec() }
    }
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

#[cfg(test)]
pub(crate) mod examples {
    //! A few resources for the tests of discovery and OpenAPI.

    use super::*;

    pub(crate) const VERBS: [&str; 8] =
        ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

    pub(crate) fn served(group: &str, version: &str, kind: &str, plural: &str) -> Served {
        Served {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            namespaced: true,
            verbs: VERBS.to_vec(),
            ..Served::default()
        }
    }

    pub(crate) fn deployments() -> Served {
        let status = Subresource {
            name: "status".to_owned(),
            kind: "Deployment".to_owned(),
            foreign: None,
            verbs: vec!["get", "patch", "update"],
        };
        let scale = Subresource {
            name: "scale".to_owned(),
            kind: "Scale".to_owned(),
            foreign: Some(("autoscaling".to_owned(), "v1".to_owned())),
            ..status.clone()
        };
        Served {
            short_names: vec!["deploy".to_owned()],
            categories: vec!["all".to_owned()],
            subresources: vec![scale, status],
            ..served("apps", "v1", "Deployment", "deployments")
        }
    }

    pub(crate) fn widgets(version: &str) -> Served {
        Served { custom: true, ..served("printing.example.com", version, "Widget", "widgets") }
    }

    pub(crate) fn all() -> Vec<Arc<Served>> {
        let namespaces = Served { namespaced: false, ..served("", "v1", "Namespace", "namespaces") };
        let replica_sets = served("apps", "v1", "ReplicaSet", "replicasets");
        let all = [
            namespaces,
            served("", "v1", "ConfigMap", "configmaps"),
            replica_sets,
            deployments(),
            widgets("v1beta1"),
            widgets("v1"),
        ];
        all.into_iter().map(Arc::new).collect()
    }
}
