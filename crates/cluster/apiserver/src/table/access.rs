//! Role bindings: which role, for whom.

use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, made};
use crate::object::{list, text};

pub(super) const BINDING: &[BuiltInColumn] = &[
    NAME,
    made("Role", |binding, _| format!("{}/{}", text(binding, "/roleRef/kind"), text(binding, "/roleRef/name")).into()),
    AGE,
    made("Users", |binding, _| subjects(binding, "User")).wide(),
    made("Groups", |binding, _| subjects(binding, "Group")).wide(),
    made("ServiceAccounts", |binding, _| subjects(binding, "ServiceAccount")).wide(),
];

fn subjects(binding: &Value, kind: &str) -> Value {
    let subjects = list(binding, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
    let names = subjects.map(|subject| match (kind, text(subject, "/namespace"), text(subject, "/name")) {
        ("ServiceAccount", namespace, name) if !namespace.is_empty() => format!("{namespace}/{name}"),
        (_, _, name) => name.to_owned(),
    });
    names.collect::<Vec<_>>().join(", ").into()
}
