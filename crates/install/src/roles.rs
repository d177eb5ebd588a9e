//! Who may do what, listed by hand: what is granted here is what is used, no more.
//!
//! Only Boathook and its agents should be granted `podnotifications/status`: the recorded undo is what runs, and admission
//! lets every user through who may write it where an agent carries it out.

use boathook_api::words::{self, GROUP};
use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
};
use kube::api::ObjectMeta;

use crate::webhooks;

/// The controller that runs handlers itself, through pods/exec.
pub const CONTROLLER: &str = "boathook-controller";

/// The controller beside node agents: it cannot exec.
pub const CONTROLLER_WITH_AGENTS: &str = "boathook-controller-agent";

/// The node agent.
pub const AGENT: &str = "boathook-agent";

/// People who notify pods.
pub const NOTIFIER: &str = "boathook-notifier";

/// People who take snapshots.
pub const SNAPSHOTTER: &str = "boathook-snapshotter";

/// People who roll out, with hooks.
pub const DEPLOYER: &str = "boathook-deployer";

/// The lease, in Boathook's own namespace.
pub const LEASE: &str = "boathook-lease";

const WEBHOOK_CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The rules of `boathook controller --executor api`.
pub fn controller() -> Vec<PolicyRule> {
    // A WebSocket is opened by a GET; from Kubernetes 1.35 on that needs `create` as well.
    let mut rules = vec![rule("", &["pods/exec"], &["create", "get"])];
    rules.extend(controller_with_agents());
    rules
}

/// The rules of `boathook controller --executor agent`.
pub fn controller_with_agents() -> Vec<PolicyRule> {
    vec![
        rule(GROUP, &["podnotifications"], &["create", "delete", "get", "list", "patch", "watch"]),
        rule(GROUP, &["notifications"], &["get", "list", "watch"]),
        rule(GROUP, &["podnotifications/status", "notifications/status"], &["update"]),
        rule(GROUP, &["executionhooks"], &["create", "delete", "get", "list", "patch", "watch"]),
        rule(GROUP, &["executionhooktemplates"], &["get"]),
        rule(GROUP, &["applicationsnapshots"], &["get", "list", "patch", "watch"]),
        rule(GROUP, &["executionhooks/status", "applicationsnapshots/status"], &["update"]),
        rule("snapshot.storage.k8s.io", &["volumesnapshots"], &["create", "delete", "get", "list", "patch", "watch"]),
        rule("snapshot.storage.k8s.io", &["volumesnapshotcontents"], &["get", "list", "watch"]),
        // Whether the storage can cut.
        rule("snapshot.storage.k8s.io", &["volumesnapshotclasses"], &["list"]),
        // Who uses a claim.
        rule("", &["persistentvolumeclaims"], &["get", "list"]),
        rule("storage.k8s.io", &["volumeattachments"], &["list"]),
        // Of a hook of a rollout the pod is made, owned by its ReplicaSet, and deleted; and what it wrote is read.
        rule("", &["pods"], &["create", "delete", "get", "list", "patch", "watch"]),
        rule("", &["pods/log"], &["get"]),
        rule(GROUP, &["deploymentlifecycles"], &["get", "list", "patch", "watch"]),
        rule(GROUP, &["deploymentlifecycles/status"], &["update"]),
        // Their annotation, the label of the gate, and a condition.
        rule("apps", &["deployments", "replicasets"], &["get", "list", "patch", "watch"]),
        rule("apps", &["deployments/status"], &["patch"]),
        // Whether a pod that is gone has really ended.
        rule("", &["nodes"], &["get"]),
        events(),
        // What the admission of a marked VolumeSnapshot asks for, and takes back when nobody waits for it any more.
        rule(GROUP, &["applicationsnapshots"], &["create", "delete"]),
        // Whether an author has the rights that an object stands for, and who we are.
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
        rule("authentication.k8s.io", &["selfsubjectreviews"], &["create"]),
        rule("admissionregistration.k8s.io", &WEBHOOK_CONFIGURATIONS, &["create"]),
        PolicyRule {
            resource_names: Some(vec![webhooks::NAME.to_owned()]),
            ..rule("admissionregistration.k8s.io", &WEBHOOK_CONFIGURATIONS, &["get", "list", "update", "watch"])
        },
    ]
}

/// The rules of `boathook agent`: it neither accepts nor lets go of objects, and never execs.
pub fn agent() -> Vec<PolicyRule> {
    vec![
        rule(GROUP, &["podnotifications"], &["get", "list", "watch"]),
        rule(GROUP, &["podnotifications/status"], &["update"]),
        events(),
    ]
}

/// For people, bound in a namespace or in all: to run what pods declare. Commands of their own need `pods/exec` besides,
/// and giving up an undo that another user owes to a pod needs `abandon podnotifications`: neither is granted here.
pub fn notifier() -> Vec<PolicyRule> {
    let verbs = ["create", "delete", "get", "list", "patch", "watch"];
    vec![rule(GROUP, &["notifications", "podnotifications"], &verbs), rule("", &["pods"], &["get", "list"])]
}

/// For people, bound in a namespace or in all: to take snapshots with the hooks that templates describe, and to thaw, or to
/// give up a thaw that cannot succeed (`boathook thaw --force`).
/// Templates and hooks with commands of their own need `pods/exec` besides, and templates the right to create them.
pub fn snapshotter() -> Vec<PolicyRule> {
    let read = ["get", "list", "watch"];
    let all = ["create", "delete", "get", "list", "watch"];
    vec![
        rule(GROUP, &["applicationsnapshots"], &all),
        // `abandon` is no verb of the API server: Boathook's admission asks for it before an undo is given up.
        rule(GROUP, &["executionhooks"], &["abandon", "create", "delete", "get", "list", "patch", "watch"]),
        rule(GROUP, &["executionhooktemplates", "podnotifications"], &read),
        rule("snapshot.storage.k8s.io", &["volumesnapshots"], &read),
        rule("", &["persistentvolumeclaims", "pods"], &read),
    ]
}

/// For people, bound in a namespace or in all: to follow rollouts through their stages, to help them along, and to write
/// and delete lifecycles, which lets go what they hold. To write hooks takes `create pods` besides, which is not granted
/// here.
pub fn deployer() -> Vec<PolicyRule> {
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    vec![
        rule(GROUP, &["deploymentlifecycles"], &all),
        rule("apps", &["deployments", "replicasets"], &["get", "list", "watch"]),
        rule("", &["pods"], &["get", "list", "watch"]),
        rule("", &["pods/log"], &["get"]),
    ]
}

/// The rules about the lease, in Boathook's own namespace.
pub fn lease() -> Vec<PolicyRule> {
    let leases = |verbs: &[&str]| rule("coordination.k8s.io", &["leases"], verbs);
    let ours = Some(vec![words::LEASE.to_owned()]);
    vec![leases(&["create"]), PolicyRule { resource_names: ours, ..leases(&["get", "update"]) }]
}

fn events() -> PolicyRule {
    rule("events.k8s.io", &["events"], &["create", "get", "patch"])
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

pub fn cluster_role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole { metadata: named(name, None), rules: Some(rules), aggregation_rule: None }
}

/// Binds a ClusterRole to the service account of the same name.
pub fn cluster_binding(name: &str, namespace: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: named(name, None),
        role_ref: role_ref("ClusterRole", name),
        subjects: Some(vec![account_subject(name, namespace)]),
    }
}

pub fn lease_role(namespace: &str) -> Role {
    Role { metadata: named(LEASE, Some(namespace)), rules: Some(lease()) }
}

/// Binds the role about the lease to this service account.
pub fn lease_binding(account: &str, namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: named(&format!("{account}-lease"), Some(namespace)),
        role_ref: role_ref("Role", LEASE),
        subjects: Some(vec![account_subject(account, namespace)]),
    }
}

pub fn account(name: &str, namespace: &str) -> ServiceAccount {
    ServiceAccount { metadata: named(name, Some(namespace)), ..ServiceAccount::default() }
}

fn named(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: namespace.map(str::to_owned), ..ObjectMeta::default() }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: RBAC_GROUP.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
}

fn account_subject(name: &str, namespace: &str) -> Subject {
    let (kind, namespace) = ("ServiceAccount".to_owned(), Some(namespace.to_owned()));
    Subject { api_group: None, kind, name: name.to_owned(), namespace }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_by_a_star_and_secrets_are_nobodys_business() {
        for rules in [controller(), controller_with_agents(), agent(), notifier(), snapshotter(), deployer(), lease()] {
            let text = serde_json::to_string(&rules).unwrap();
            assert!(!text.contains('*') && !text.contains("secrets"), "{text}");
        }
    }

    #[test]
    fn with_agents_nobody_execs() {
        for rules in [controller_with_agents(), agent(), notifier(), snapshotter(), deployer()] {
            let text = serde_json::to_string(&rules).unwrap();
            assert!(!text.contains("/exec"), "{text}");
        }
    }
}
