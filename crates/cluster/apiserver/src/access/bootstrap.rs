//! The roles and bindings that every cluster has from the start, as Kubernetes 1.35 makes them.
//!
//! Those of its own components are left out: here they act as `system:masters`. The groups `extensions`, `batch` and
//! the like stay in, though nothing serves them: whoever has `admin` may grant them on, as on a real cluster.

use serde_json::{Value, json};

use super::RBAC_GROUP;
use super::user::{AUTHENTICATED, MASTERS, UNAUTHENTICATED};

// Lists of names are texts here, parted by spaces; the core group is the empty name.
const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const BOTH: &str = "create delete deletecollection get list patch update watch";
const DISCOVERY: &str = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/";
const PUBLIC_INFO: &str = "/healthz /livez /readyz /version /version/";

/// Plain objects, for the server to create at its start if they are not there. The three aggregated roles come
/// without rules: what they hold is gathered from the others.
pub fn objects() -> Vec<Value> {
    let everything = [rule("*", "*", "*"), urls("*", "*")];
    vec![
        cluster_role("cluster-admin", "", &everything),
        aggregated("admin", ""),
        aggregated("edit", "admin"),
        aggregated("view", "edit"),
        cluster_role("system:aggregate-to-admin", "admin", &to_admin()),
        cluster_role("system:aggregate-to-edit", "edit", &to_edit()),
        cluster_role("system:aggregate-to-view", "view", &to_view()),
        cluster_role("system:discovery", "", &[urls(DISCOVERY, "get")]),
        cluster_role("system:basic-user", "", &basic_user()),
        cluster_role("system:public-info-viewer", "", &[urls(PUBLIC_INFO, "get")]),
        binding("cluster-admin", &[MASTERS]),
        binding("system:discovery", &[AUTHENTICATED]),
        binding("system:basic-user", &[AUTHENTICATED]),
        binding("system:public-info-viewer", &[AUTHENTICATED, UNAUTHENTICATED]),
    ]
}

fn basic_user() -> Vec<Value> {
    vec![
        rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
        rule("authentication.k8s.io", "selfsubjectreviews", "create"),
    ]
}

fn to_admin() -> Vec<Value> {
    vec![
        rule("authorization.k8s.io", "localsubjectaccessreviews", "create"),
        rule(RBAC_GROUP, "rolebindings roles", BOTH),
    ]
}

fn to_edit() -> Vec<Value> {
    let into_pods = "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy";
    let pods = "pods pods/attach pods/exec pods/portforward pods/proxy";
    let core = "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets \
        serviceaccounts services services/proxy";
    let apps = "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale \
        statefulsets statefulsets/scale";
    let extensions = "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies \
        replicasets replicasets/scale replicationcontrollers/scale";
    vec![
        rule("", into_pods, READ),
        rule("", "serviceaccounts", "impersonate"),
        rule("", pods, WRITE),
        rule("", "pods/eviction", "create"),
        rule("", core, WRITE),
        rule("", "serviceaccounts/token", "create"),
        rule(" events.k8s.io", "events", WRITE),
        rule("apps", apps, WRITE),
        rule("autoscaling", "horizontalpodautoscalers", WRITE),
        rule("batch", "cronjobs jobs", WRITE),
        rule("extensions", extensions, WRITE),
        rule("policy", "poddisruptionbudgets", WRITE),
        rule("networking.k8s.io", "ingresses networkpolicies", WRITE),
        rule("coordination.k8s.io", "leases", BOTH),
        rule("resource.k8s.io", "resourceclaims resourceclaimtemplates", WRITE),
    ]
}

fn to_view() -> Vec<Value> {
    let core = "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods \
        replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status";
    let read_only = "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status \
        resourcequotas resourcequotas/status";
    let apps = "controllerrevisions daemonsets daemonsets/status deployments deployments/scale \
        deployments/status replicasets replicasets/scale replicasets/status statefulsets \
        statefulsets/scale statefulsets/status";
    let extensions = "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses \
        ingresses/status networkpolicies replicasets replicasets/scale replicasets/status \
        replicationcontrollers/scale";
    vec![
        rule("", core, READ),
        rule("", read_only, READ),
        rule("", "namespaces", READ),
        rule(" events.k8s.io", "events", READ),
        rule("discovery.k8s.io", "endpointslices", READ),
        rule("apps", apps, READ),
        rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
        rule("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
        rule("extensions", extensions, READ),
        rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
        rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", READ),
        rule("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", READ),
    ]
}

fn rule(groups: &str, resources: &str, verbs: &str) -> Value {
    json!({"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)})
}

fn urls(urls: &str, verbs: &str) -> Value {
    json!({"nonResourceURLs": list(urls), "verbs": list(verbs)})
}

fn list(names: &str) -> Vec<&str> {
    names.split(' ').collect()
}

fn aggregation_label(into: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{into}")
}

fn cluster_role(name: &str, aggregated_into: &str, rules: &[Value]) -> Value {
    let mut role = object("ClusterRole", name);
    if !aggregated_into.is_empty() {
        role["metadata"]["labels"][aggregation_label(aggregated_into)] = json!("true");
    }
    role["rules"] = json!(rules);
    role
}

fn aggregated(name: &str, aggregated_into: &str) -> Value {
    let mut role = cluster_role(name, aggregated_into, &[]);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {aggregation_label(name): "true"}}]});
    role
}

/// A binding of the ClusterRole of the same name.
fn binding(name: &str, groups: &[&str]) -> Value {
    let mut binding = object("ClusterRoleBinding", name);
    binding["roleRef"] = json!({"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name});
    let subject = |group: &&str| json!({"apiGroup": RBAC_GROUP, "kind": "Group", "name": group});
    binding["subjects"] = groups.iter().map(subject).collect();
    binding
}

fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC_GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;

    #[test]
    fn the_aggregated_roles_gather_the_rules_below_them() {
        let rules = Rules::build(&objects());
        let count = |role| rules.shown_rules(role).unwrap().as_array().unwrap().len();
        // As many as `kubectl get clusterrole` shows on a real cluster.
        assert_eq!((count("view"), count("edit"), count("admin")), (12, 27, 29));
        let admin = rules.shown_rules("admin").unwrap();
        assert_eq!(admin[1], json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": ["serviceaccounts"]}));
        assert_eq!(admin[28], rule(RBAC_GROUP, "rolebindings roles", BOTH));
    }
}
