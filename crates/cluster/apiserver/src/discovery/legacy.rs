//! Discovery step by step: `/api`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Served, join, order};

/// `/api`; `address` is the server's own, `host:port`.
pub fn api_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub fn group_list(served: &[Arc<Served>]) -> Value {
    let groups: Vec<Value> = order::groups(served).into_iter().map(|group| bare_group(served, group)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; none if it is not served.
pub fn group(served: &[Arc<Served>], group: &str) -> Option<Value> {
    if !order::groups(served).contains(&group) {
        return None;
    }
    let mut answer = bare_group(served, group);
    answer["kind"] = "APIGroup".into();
    answer["apiVersion"] = "v1".into();
    Some(answer)
}

fn bare_group(served: &[Arc<Served>], group: &str) -> Value {
    let version = |version: &&str| json!({"groupVersion": join(group, version), "version": version});
    let versions: Vec<Value> = order::versions(served, group).iter().map(version).collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}

/// `/api/v1` or `/apis/GROUP/VERSION`; none if it is not served.
pub fn resource_list(served: &[Arc<Served>], group: &str, version: &str) -> Option<Value> {
    let resources = order::resources(served, group, version);
    if resources.is_empty() {
        return None;
    }
    let resources: Vec<Value> = resources.into_iter().flat_map(with_subresources).collect();
    let group_version = join(group, version);
    let mut answer = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    // The core group is older than this field.
    if !group.is_empty() {
        answer["apiVersion"] = "v1".into();
    }
    Some(answer)
}

fn with_subresources(served: &Served) -> Vec<Value> {
    let mut resource = json!({
        "name": served.plural,
        "singularName": served.singular,
        "namespaced": served.namespaced,
        "kind": served.kind,
        "verbs": served.verbs,
    });
    served.add_names(&mut resource);
    let subresources = served.subresources.iter().map(|it| {
        let mut below = json!({
            "name": format!("{}/{}", served.plural, it.name),
            "singularName": "",
            "namespaced": served.namespaced,
            "kind": it.kind,
            "verbs": it.verbs,
        });
        if let Some((group, version)) = &it.foreign {
            below["group"] = group.as_str().into();
            below["version"] = version.as_str().into();
        }
        below
    });
    std::iter::once(resource).chain(subresources).collect()
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use super::*;

    #[test]
    fn a_group_prefers_its_first_version() {
        let group = group(&examples::all(), "printing.example.com").expect("served");
        assert_eq!(group["kind"], "APIGroup");
        let v1 = json!({"groupVersion": "printing.example.com/v1", "version": "v1"});
        assert_eq!(group["preferredVersion"], v1);
        assert_eq!(group["versions"][0], v1);
        assert_eq!(group["versions"][1]["version"], "v1beta1");
        assert_eq!(group_list(&examples::all())["groups"][0]["name"], "apps");
    }

    #[test]
    fn what_is_not_served_is_not_there() {
        let all = examples::all();
        assert_eq!(group(&all, "batch"), None);
        assert_eq!(group(&all, ""), None);
        assert_eq!(resource_list(&all, "apps", "v2"), None);
    }

    /// As observed on Kubernetes 1.35, without its storage hashes.
    #[test]
    fn a_resource_is_followed_by_what_is_below_it() {
        let list = resource_list(&examples::all(), "apps", "v1").expect("served");
        let wanted = json!([
            {
                "name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["deploy"], "categories": ["all"],
            },
            {
                "name": "deployments/scale", "singularName": "", "namespaced": true,
                "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
            },
            {
                "name": "deployments/status", "singularName": "", "namespaced": true, "kind": "Deployment",
                "verbs": ["get", "patch", "update"],
            },
        ]);
        assert_eq!(list["resources"].as_array().expect("a list")[..3], wanted.as_array().expect("a list")[..]);
        assert_eq!(list["resources"][3]["name"], "replicasets");
    }
}
