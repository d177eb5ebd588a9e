//! Discovery in one answer each for `/api` and `/apis` (`apidiscovery.k8s.io`): what kubectl asks for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Served, Subresource, order};

/// The answer for the core group (`/api`) or for all others (`/apis`), in this version of `apidiscovery.k8s.io`.
pub fn aggregated(served: &[Arc<Served>], core: bool, api_version: &str) -> Value {
    let groups = if core { vec![""] } else { order::groups(served) };
    let items: Vec<Value> = groups.into_iter().map(|group| discovered_group(served, group)).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{api_version}"),
        "metadata": {},
        "items": items,
    })
}

/// Clients know by it that they got what they asked for.
pub fn aggregated_content_type(api_version: &str) -> String {
    format!("application/json;g=apidiscovery.k8s.io;v={api_version};as=APIGroupDiscoveryList")
}

fn discovered_group(served: &[Arc<Served>], group: &str) -> Value {
    let versions = order::versions(served, group).into_iter().map(|version| {
        let resources: Vec<Value> = order::resources(served, group, version).into_iter().map(resource).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    });
    let versions: Vec<Value> = versions.collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

fn resource(served: &Served) -> Value {
    let mut resource = json!({
        "resource": served.plural,
        "responseKind": own_kind(served, &served.kind),
        "scope": if served.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": served.singular,
        "verbs": served.verbs,
    });
    served.add_names(&mut resource);
    if !served.subresources.is_empty() {
        resource["subresources"] = served.subresources.iter().map(|it| subresource(served, it)).collect();
    }
    resource
}

fn subresource(served: &Served, subresource: &Subresource) -> Value {
    let kind = match &subresource.foreign {
        Some((group, version)) => json!({"group": group, "version": version, "kind": subresource.kind}),
        None => own_kind(served, &subresource.kind),
    };
    json!({"subresource": subresource.name, "responseKind": kind, "verbs": subresource.verbs})
}

/// Kubernetes leaves group and version of built-in kinds empty here: they are the resource's own.
fn own_kind(served: &Served, kind: &str) -> Value {
    let (group, version) = if served.custom { (served.group.as_str(), served.version.as_str()) } else { ("", "") };
    json!({"group": group, "version": version, "kind": kind})
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use super::*;

    /// As observed on Kubernetes 1.35.
    #[test]
    fn a_resource_is_told_with_what_is_below_it() {
        let list = aggregated(&examples::all(), false, "v2");
        assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
        assert_eq!(list["items"][0]["metadata"], json!({"name": "apps"}));
        let wanted = json!({
            "resource": "deployments",
            "responseKind": {"group": "", "version": "", "kind": "Deployment"},
            "scope": "Namespaced",
            "singularResource": "deployment",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["deploy"],
            "categories": ["all"],
            "subresources": [
                {
                    "subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": ["get", "patch", "update"],
                },
                {
                    "subresource": "status",
                    "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                    "verbs": ["get", "patch", "update"],
                },
            ],
        });
        assert_eq!(list["items"][0]["versions"][0]["resources"][0], wanted);
    }

    #[test]
    fn the_core_group_has_no_name_and_a_custom_kind_has_its_group() {
        let all = examples::all();
        let core = aggregated(&all, true, "v2");
        assert_eq!(core["items"][0]["metadata"], json!({}));
        assert_eq!(core["items"][0]["versions"][0]["resources"][1]["scope"], "Cluster");
        let named = aggregated(&all, false, "v2beta1");
        let widget = &named["items"][1]["versions"][0]["resources"][0]["responseKind"];
        assert_eq!(*widget, json!({"group": "printing.example.com", "version": "v1", "kind": "Widget"}));
    }
}
