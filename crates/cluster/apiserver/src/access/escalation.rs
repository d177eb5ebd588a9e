//! Nobody grants what they do not have: checked when a role or a binding is written.
//!
//! The verb `escalate` on a role, or `bind` on the role that a binding names, lifts the check.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::policy_rule::{PolicyRule, quoted};
use super::rules::RoleRef;
use super::user::MASTERS;
use super::{Attributes, RBAC_GROUP, Rules, User};
use crate::object;
use crate::status::{GroupResource, Result, Status};

/// Whether the user may write this `Role`, `ClusterRole`, `RoleBinding` or `ClusterRoleBinding`; other kinds pass.
/// `old` is the stored object of an update.
pub fn check(rules: &Rules, user: &User, namespace: &str, new: &Value, old: Option<&Value>) -> Result<()> {
    if user.is_in(MASTERS) || old.is_some_and(|old| differ_in_ownership_only(new, old)) {
        return Ok(());
    }
    match object::kind(new) {
        "Role" | "ClusterRole" => check_role(rules, user, namespace, new, old),
        "RoleBinding" | "ClusterRoleBinding" => check_binding(rules, user, namespace, new),
        _ => Ok(()),
    }
}

fn check_role(rules: &Rules, user: &User, namespace: &str, role: &Value, old: Option<&Value>) -> Result<()> {
    let resource = if object::kind(role) == "Role" { "roles" } else { "clusterroles" };
    // A create has no name in its path, so a right to escalate one named role does not reach it.
    let name = if old.is_some() { object::name(role) } else { "" };
    let escalate = Attributes {
        verb: "escalate",
        group: RBAC_GROUP,
        version: "*",
        resource,
        name,
        namespace,
        ..Default::default()
    };
    if rules.authorize(user, &escalate).allowed {
        return Ok(());
    }
    let forbidden =
        |why: &str| Status::forbidden(GroupResource { group: RBAC_GROUP, resource }, object::name(role), why);
    held(rules, user, namespace, &PolicyRule::of_role(role)).map_err(|why| forbidden(&why))?;
    if aggregates(role) || old.is_some_and(aggregates) {
        let everything = json!({"rules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]});
        held(rules, user, namespace, &PolicyRule::of_role(&everything))
            .map_err(|_| forbidden("must have cluster-admin privileges to use the aggregationRule"))?;
    }
    Ok(())
}

fn check_binding(rules: &Rules, user: &User, namespace: &str, binding: &Value) -> Result<()> {
    let resource = if object::kind(binding) == "RoleBinding" { "rolebindings" } else { "clusterrolebindings" };
    let bindings = GroupResource { group: RBAC_GROUP, resource };
    let role = RoleRef::of(binding);
    let bind = Attributes {
        verb: "bind",
        group: object::text(binding, "/roleRef/apiGroup"),
        version: "*",
        resource: if role.kind == "Role" { "roles" } else { "clusterroles" },
        name: &role.name,
        namespace,
        ..Default::default()
    };
    if rules.authorize(user, &bind).allowed {
        return Ok(());
    }
    let granted = rules.rules_of(&role, namespace).map_err(|_| Status::not_found(bindings, &role.name))?;
    held(rules, user, namespace, granted).map_err(|why| Status::forbidden(bindings, object::name(binding), &why))
}

/// Whether the user's own rules cover `granted`; if not, what is missing.
fn held(rules: &Rules, user: &User, namespace: &str, granted: &[PolicyRule]) -> std::result::Result<(), String> {
    let (own, unresolved) = rules.rules_for(user, namespace);
    let missing: Vec<PolicyRule> =
        granted.iter().flat_map(PolicyRule::parts).filter(|part| !own.iter().any(|rule| rule.covers(part))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let shown: BTreeSet<String> = compact(missing).iter().map(PolicyRule::to_string).collect();
    let shown: Vec<String> = shown.into_iter().collect();
    let mut message = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        shown.join("\n")
    );
    if let Some(unresolved) = unresolved {
        message += &format!("; resolution errors: [{unresolved}]");
    }
    Err(message)
}

/// Parts that differ by their verb alone, as one rule.
fn compact(parts: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut by_resource: BTreeMap<_, PolicyRule> = BTreeMap::new();
    let mut compacted = Vec::new();
    for part in parts {
        if part.resources.is_empty() {
            compacted.push(part);
            continue;
        }
        let key = (part.groups.clone(), part.resources.clone(), part.resource_names.clone());
        match by_resource.get_mut(&key) {
            Some(rule) => rule.verbs.extend(part.verbs),
            None => {
                by_resource.insert(key, part);
            }
        }
    }
    compacted.extend(by_resource.into_values());
    compacted
}

fn aggregates(role: &Value) -> bool {
    role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// The garbage collector writes these, and grants nothing by it.
fn differ_in_ownership_only(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields"] {
            object::metadata_mut(&mut object).remove(field);
        }
        object
    };
    rest(new) == rest(old)
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap;
    use super::*;

    fn rules() -> Rules {
        let mut objects = bootstrap::objects();
        objects.extend([
            json!({"kind": "RoleBinding", "metadata": {"name": "admins", "namespace": "shop"},
                "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "User", "name": "adm"}]}),
            json!({"kind": "Role", "metadata": {"name": "granter", "namespace": "shop"}, "rules": [
                {"apiGroups": [RBAC_GROUP], "resources": ["roles"], "verbs": ["escalate"], "resourceNames": ["r1"]},
                {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["edit"]},
            ]}),
            json!({"kind": "RoleBinding", "metadata": {"name": "granters", "namespace": "shop"},
                "roleRef": {"kind": "Role", "name": "granter"}, "subjects": [{"kind": "User", "name": "tim"}]}),
        ]);
        Rules::build(&objects)
    }

    fn role(granted: Value) -> Value {
        json!({"kind": "Role", "metadata": {"name": "r1", "namespace": "shop"}, "rules": granted})
    }

    fn binding(role: &str) -> Value {
        json!({"kind": "RoleBinding", "metadata": {"name": "b1", "namespace": "shop"},
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role}})
    }

    fn ask(user: &str, new: &Value, old: Option<&Value>) -> Result<()> {
        check(&rules(), &User::authenticated(user, &[]), "shop", new, old)
    }

    #[test]
    fn what_one_has_one_may_grant() {
        let pods = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]);
        assert_eq!(ask("adm", &role(pods), None), Ok(()));
        assert_eq!(ask("adm", &binding("view"), None), Ok(()));
    }

    #[test]
    fn what_one_lacks_one_may_not_grant() {
        let granted = json!([{"apiGroups": [""], "resources": ["nodes", "secrets", "persistentvolumes"],
            "verbs": ["get", "list"], "resourceNames": ["a", "b"]}]);
        let status = ask("adm", &role(granted), None).unwrap_err();
        assert_eq!(status.code, 403);
        assert_eq!(
            status.message,
            "roles.rbac.authorization.k8s.io \"r1\" is forbidden: user \"adm\" (groups=[\"system:authenticated\"]) \
             is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"nodes\"], ResourceNames:[\"a\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"\"], Resources:[\"nodes\"], ResourceNames:[\"b\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"\"], Resources:[\"persistentvolumes\"], ResourceNames:[\"a\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"\"], Resources:[\"persistentvolumes\"], ResourceNames:[\"b\"], Verbs:[\"get\" \"list\"]}"
        );
        assert_eq!(
            ask("adm", &binding("cluster-admin"), None).unwrap_err().message,
            "rolebindings.rbac.authorization.k8s.io \"b1\" is forbidden: user \"adm\" \
             (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
        );
    }

    #[test]
    fn a_role_that_is_not_there_cannot_be_bound() {
        let status = ask("adm", &binding("nope"), None).unwrap_err();
        assert_eq!(status.message, "rolebindings.rbac.authorization.k8s.io \"nope\" not found");
    }

    #[test]
    fn the_verbs_escalate_and_bind_lift_the_check() {
        let nodes = role(json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]));
        assert_eq!(ask("tim", &nodes, Some(&role(json!([])))), Ok(()));
        assert!(ask("tim", &nodes, None).is_err(), "a create has no name to be allowed by");
        assert_eq!(ask("tim", &binding("edit"), None), Ok(()));
        assert!(ask("tim", &binding("view"), None).is_err());
    }

    #[test]
    fn masters_grant_anything() {
        let admin = User::authenticated("root", &[MASTERS]);
        assert_eq!(check(&rules(), &admin, "shop", &binding("cluster-admin"), None), Ok(()));
    }

    #[test]
    fn a_change_of_owners_grants_nothing() {
        let old = role(json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]));
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["x/y"]);
        assert_eq!(ask("nobody", &new, Some(&old)), Ok(()));
        new["metadata"]["labels"] = json!({"a": "b"});
        assert!(ask("nobody", &new, Some(&old)).is_err());
    }

    #[test]
    fn an_aggregation_rule_needs_all_rights() {
        let aggregated = json!({"kind": "ClusterRole", "metadata": {"name": "all"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": []});
        let status = check(&rules(), &User::authenticated("adm", &[]), "", &aggregated, None).unwrap_err();
        assert_eq!(
            status.message,
            "clusterroles.rbac.authorization.k8s.io \"all\" is forbidden: \
             must have cluster-admin privileges to use the aggregationRule"
        );
    }
}
