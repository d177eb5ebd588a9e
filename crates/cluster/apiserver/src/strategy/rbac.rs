//! Roles and bindings: what RBAC can make sense of.

use serde_json::{Value, json};

use super::fill::{each, fill};
use super::name::{self, SUBDOMAIN};
use crate::access::RBAC_GROUP;
use crate::object;
use crate::status::FieldError;

/// Kubernetes shows a role without rules as one with none.
pub(crate) fn default_role(role: &mut Value) {
    object::map_mut(role).entry("rules").or_insert(Value::Null);
}

pub(crate) fn validate_role(role: &Value, errors: &mut Vec<FieldError>) {
    let namespaced = object::kind(role) == "Role";
    for (index, rule) in object::list(role, "/rules").iter().enumerate() {
        let at = |field: &str| format!("rules[{index}].{field}");
        let lacks = |field: &str| object::list(rule, &format!("/{field}")).is_empty();
        if lacks("verbs") {
            errors.push(FieldError::required(at("verbs"), "verbs must contain at least one value"));
        }
        let urls = &rule["nonResourceURLs"];
        if !lacks("nonResourceURLs") {
            let mut refuse = |why| errors.push(FieldError::invalid(at("nonResourceURLs"), urls, why));
            if namespaced {
                refuse("namespaced rules cannot apply to non-resource URLs");
            }
            if !["apiGroups", "resources", "resourceNames"].into_iter().all(lacks) {
                refuse("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        for (field, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if lacks(field) {
                errors
                    .push(FieldError::required(at(field), &format!("resource rules must supply at least one {what}")));
            }
        }
    }
}

pub(crate) fn default_binding(binding: &mut Value) {
    if let Some(role) = binding.get_mut("roleRef") {
        fill(role, "apiGroup", json!(RBAC_GROUP));
    }
    for subject in each(binding, "/subjects") {
        if matches!(object::kind(subject), "User" | "Group") {
            fill(subject, "apiGroup", json!(RBAC_GROUP));
        }
    }
}

pub(crate) fn validate_binding(binding: &Value, errors: &mut Vec<FieldError>) {
    let namespaced = object::kind(binding) == "RoleBinding";
    let role = &binding["roleRef"];
    let mut one_of = |at: String, value: &str, supported: &[&str]| {
        if !supported.contains(&value) {
            errors.push(FieldError::not_supported(at, &value.into(), supported));
        }
    };
    one_of("roleRef.apiGroup".to_owned(), object::text(role, "/apiGroup"), &[RBAC_GROUP]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    one_of("roleRef.kind".to_owned(), object::kind(role), kinds);
    for (index, subject) in object::list(binding, "/subjects").iter().enumerate() {
        let group = object::text(subject, "/apiGroup");
        match object::kind(subject) {
            "User" | "Group" => one_of(format!("subjects[{index}].apiGroup"), group, &[RBAC_GROUP]),
            "ServiceAccount" => one_of(format!("subjects[{index}].apiGroup"), group, &[""]),
            kind => one_of(format!("subjects[{index}].kind"), kind, &["ServiceAccount", "User", "Group"]),
        }
    }
    match object::text(role, "/name") {
        "" => errors.push(FieldError::required("roleRef.name", "")),
        name => name::check("roleRef.name", name, crate::resource::NameRule::Segment, errors),
    }
    for (index, subject) in object::list(binding, "/subjects").iter().enumerate() {
        let at = |field: &str| format!("subjects[{index}].{field}");
        let name = object::text(subject, "/name");
        let account = object::kind(subject) == "ServiceAccount";
        if name.is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        } else if account && !name::is_subdomain(name) {
            errors.push(FieldError::invalid(at("name"), &name.into(), SUBDOMAIN));
        }
        if account && !namespaced && object::text(subject, "/namespace").is_empty() {
            errors.push(FieldError::required(at("namespace"), ""));
        }
    }
}

/// A `roleRef` as Kubernetes prints its own type.
pub(crate) fn written_role(role: &Value) -> Value {
    let text = |field: &str| object::text(role, &format!("/{field}"));
    json!({"APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name")})
}
