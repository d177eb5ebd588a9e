//! One of a webhook's `rules`: the operations and resources that it wants to see.

use serde::Deserialize;
use serde_json::Value;

use super::Request;

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    /// `pods`, `pods/exec`, `*/scale`, `pods/*`, `*`, `*/*`.
    resources: Vec<String>,
    /// `*` and nothing are any.
    scope: String,
}

impl Rule {
    pub(super) fn parse(rule: &Value) -> Self {
        Self::deserialize(rule).unwrap_or_default()
    }

    pub(super) fn matches(&self, request: &Request<'_>) -> bool {
        let any = |wanted: &[String], value: &str| wanted.iter().any(|one| one == "*" || one == value);
        let resource = &request.resource;
        // A Namespace carries its own name as its namespace, and is of the cluster all the same.
        let is_namespaced = !request.namespace.is_empty() && (resource.group, resource.plural) != ("", "namespaces");
        let scope = match self.scope.as_str() {
            "Cluster" => !is_namespaced,
            "Namespaced" => is_namespaced,
            _ => true,
        };
        scope
            && any(&self.operations, &request.operation.name())
            && any(&self.api_groups, resource.group)
            && any(&self.api_versions, resource.version)
            && self.resources.iter().any(|wanted| {
                let (plural, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
                (plural == "*" || plural == resource.plural)
                    && (subresource == "*" || subresource == request.subresource)
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::Instant;

    use super::super::{Operation, Resource};
    use super::*;
    use crate::access::User;

    fn matches(rule: Value, group: &str, plural: &str, subresource: &str, namespace: &str) -> bool {
        let request = Request {
            operation: Operation::Update,
            resource: Resource { group, version: "v1", plural, kind: "K" },
            subresource,
            namespace,
            name: "x",
            user: &User::default(),
            object: None,
            old: None,
            dry_run: false,
            options: &Value::Null,
            deadline: Instant::now(),
        };
        Rule::parse(&rule).matches(&request)
    }

    fn rule(resources: &[&str], scope: &str) -> Value {
        json!({"operations": ["UPDATE"], "apiGroups": ["apps", ""], "apiVersions": ["v1"], "resources": resources,
            "scope": scope})
    }

    #[test]
    fn subresources_must_be_asked_for() {
        let table = [
            ("deployments", [true, false, false]),
            ("deployments/scale", [false, true, false]),
            ("deployments/*", [true, true, false]),
            ("*/scale", [false, true, false]),
            ("*", [true, false, true]),
            ("*/*", [true, true, true]),
        ];
        for (resources, wanted) in table {
            let ask = |plural, subresource| matches(rule(&[resources], "*"), "apps", plural, subresource, "shop");
            let answers = [ask("deployments", ""), ask("deployments", "scale"), ask("replicasets", "")];
            assert_eq!(answers, wanted, "{resources}");
        }
    }

    #[test]
    fn operation_group_and_version_must_match() {
        let with = |key: &str, value: &str| {
            let mut rule = rule(&["*"], "*");
            rule[key] = json!([value]);
            matches(rule, "apps", "deployments", "", "shop")
        };
        assert!(with("operations", "*") && !with("operations", "CREATE"));
        assert!(with("apiGroups", "*") && !with("apiGroups", "batch"));
        assert!(with("apiVersions", "*") && !with("apiVersions", "v2"));
    }

    #[test]
    fn a_namespace_is_of_the_cluster() {
        let ask = |scope, plural, namespace| matches(rule(&["*"], scope), "", plural, "", namespace);
        assert!(ask("Cluster", "namespaces", "shop") && !ask("Namespaced", "namespaces", "shop"));
        assert!(ask("Namespaced", "pods", "shop") && !ask("Cluster", "pods", "shop"));
        assert!(ask("Cluster", "nodes", "") && !ask("Namespaced", "nodes", ""));
    }
}
