//! RBAC: the four kinds parsed once, and the answer to "may this user do this".
//!
//! [`Rules`] is a snapshot: build it anew when a role or binding changes. Rules of aggregated ClusterRoles are
//! gathered here, whatever the stored object says at the moment.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::policy_rule::PolicyRule;
use super::user::{MASTERS, service_account_name};
use super::{Attributes, RBAC_GROUP, User};
use crate::object;
use crate::selector::LabelSelector;
use crate::status::{GroupResource, Result, Status, joined};

#[derive(Debug, Default)]
pub struct Rules {
    roles: BTreeMap<(String, String), Vec<PolicyRule>>,
    cluster_roles: BTreeMap<String, Vec<PolicyRule>>,
    /// By namespace; the cluster-wide ones under the empty name. Sorted by name within.
    bindings: BTreeMap<String, Vec<Binding>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub allowed: bool,
    /// Why it is allowed, or what was wrong on the way to a refusal; may be empty.
    pub reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Binding {
    #[serde(skip)]
    name: String,
    role_ref: RoleRef,
    subjects: Vec<Subject>,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct RoleRef {
    pub(super) kind: String,
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Rules {
    /// From every `Role`, `ClusterRole`, `RoleBinding` and `ClusterRoleBinding` there is, in any order.
    pub fn build<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut rules = Self::default();
        let mut cluster_roles = BTreeMap::new();
        for object in objects {
            let (namespace, name) = (object::namespace(object), object::name(object));
            match object::kind(object) {
                "Role" => {
                    rules.roles.insert((namespace.to_owned(), name.to_owned()), PolicyRule::of_role(object));
                }
                "ClusterRole" => {
                    cluster_roles.insert(name, object);
                }
                "RoleBinding" | "ClusterRoleBinding" => {
                    rules.bindings.entry(namespace.to_owned()).or_default().push(Binding::parse(object));
                }
                _ => {}
            }
        }
        for bindings in rules.bindings.values_mut() {
            bindings.sort_by(|one, other| one.name.cmp(&other.name));
        }
        for (name, role) in &cluster_roles {
            let gathered = gather(name, role, &cluster_roles, &mut BTreeSet::new());
            rules.cluster_roles.insert((*name).to_owned(), gathered);
        }
        rules
    }

    /// The `rules` that an aggregated ClusterRole must show: what Kubernetes' controller writes into it.
    /// Nothing for an unknown role.
    pub fn shown_rules(&self, cluster_role: &str) -> Option<Value> {
        let rules = self.cluster_roles.get(cluster_role)?;
        Some(json!(rules))
    }

    pub fn authorize(&self, user: &User, request: &Attributes<'_>) -> Decision {
        if user.is_in(MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let mut missing = Vec::new();
        for (binding, namespace, subject) in self.bindings_of(user, request.namespace) {
            match self.rules_of(&binding.role_ref, namespace) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                    let reason = format!("RBAC: allowed by {}", binding.describe(namespace, subject));
                    return Decision { allowed: true, reason };
                }
                Ok(_) => {}
                Err(error) => missing.push(error),
            }
        }
        let reason = aggregate(missing).map(|errors| format!("RBAC: {errors}")).unwrap_or_default();
        Decision { allowed: false, reason }
    }

    /// [`Self::authorize`] as a handler wants it: the refusal is the answer.
    pub fn check(&self, user: &User, request: &Attributes<'_>) -> Result<()> {
        let decision = self.authorize(user, request);
        if decision.allowed { Ok(()) } else { Err(request.forbidden(user, &decision.reason)) }
    }

    /// Everything that the user's bindings grant in a namespace, and what could not be resolved.
    pub(super) fn rules_for(&self, user: &User, namespace: &str) -> (Vec<&PolicyRule>, Option<String>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        for (binding, namespace, _) in self.bindings_of(user, namespace) {
            match self.rules_of(&binding.role_ref, namespace) {
                Ok(of_role) => rules.extend(of_role),
                Err(error) => missing.push(error),
            }
        }
        (rules, aggregate(missing))
    }

    /// The rules behind a binding's `roleRef`; the error is the text in which Kubernetes says that there are none.
    pub(super) fn rules_of(&self, role: &RoleRef, namespace: &str) -> std::result::Result<&[PolicyRule], String> {
        let RoleRef { kind, name } = role;
        let found = match kind.as_str() {
            "Role" => self.roles.get(&(namespace.to_owned(), name.clone())),
            "ClusterRole" => self.cluster_roles.get(name),
            other => return Err(format!("unsupported role reference kind: {other:?}")),
        };
        let resource = kind.to_lowercase();
        let missing = || Status::not_found(GroupResource { group: RBAC_GROUP, resource: &resource }, name).message;
        found.map(Vec::as_slice).ok_or_else(missing)
    }

    /// The cluster's bindings of this user, then the namespace's.
    fn bindings_of<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Binding, &'a str, &'a Subject)> {
        let scopes = if namespace.is_empty() { vec![""] } else { vec!["", namespace] };
        scopes.into_iter().flat_map(move |scope| {
            let bindings = self.bindings.get(scope).into_iter().flatten();
            bindings.filter_map(move |binding| {
                let subject = binding.subjects.iter().find(|subject| subject.is(user, scope))?;
                Some((binding, scope, subject))
            })
        })
    }
}

/// The rules of a ClusterRole: its own, or those of all the roles that it selects (which may be aggregated too).
fn gather<'a>(
    name: &'a str,
    role: &'a Value,
    all: &BTreeMap<&'a str, &'a Value>,
    seen: &mut BTreeSet<&'a str>,
) -> Vec<PolicyRule> {
    let Some(selectors) = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array) else {
        return PolicyRule::of_role(role);
    };
    let mut rules = Vec::new();
    if !seen.insert(name) {
        return rules;
    }
    for selector in selectors.iter().filter_map(|selector| LabelSelector::from_object(selector).ok()) {
        for (&other, &object) in all {
            if other == name || !selector.matches(object) {
                continue;
            }
            for rule in gather(other, object, all, seen) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
    }
    rules
}

/// Several errors as Kubernetes joins them: each once, in brackets if there is more than one.
fn aggregate(mut errors: Vec<String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    if errors.is_empty() { None } else { Some(joined(errors)) }
}

impl Binding {
    fn parse(object: &Value) -> Self {
        Self { name: object::name(object).to_owned(), ..Self::deserialize(object).unwrap_or_default() }
    }

    fn describe(&self, namespace: &str, subject: &Subject) -> String {
        let Self { name, role_ref: RoleRef { kind, name: role }, .. } = self;
        let who = match (subject.kind.as_str(), subject.namespace.as_str()) {
            ("ServiceAccount", "") => format!("{}/{namespace}", subject.name),
            ("ServiceAccount", own) => format!("{}/{own}", subject.name),
            _ => subject.name.clone(),
        };
        let (binding, full_name) = match namespace {
            "" => ("ClusterRoleBinding", name.clone()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        format!("{binding} {full_name:?} of {kind} {role:?} to {} {who:?}", subject.kind)
    }
}

impl RoleRef {
    pub(super) fn of(binding: &Value) -> Self {
        Self::deserialize(&binding["roleRef"]).unwrap_or_default()
    }
}

impl Subject {
    fn is(&self, user: &User, binding_namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
                !namespace.is_empty() && service_account_name(namespace, &self.name) == user.name
            }
            _ => false,
        }
    }
}
