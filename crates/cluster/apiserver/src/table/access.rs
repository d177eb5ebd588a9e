//! Role bindings: which role, for whom.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, text, wide};
use super::read::{age, list};
use crate::object;

pub(super) const BINDING: &[BuiltInColumn] =
    &[NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];

pub(super) fn binding(binding: &Value, now: Timestamp) -> Vec<Value> {
    let role = format!("{}/{}", object::text(binding, "/roleRef/kind"), object::text(binding, "/roleRef/name"));
    vec![
        object::name(binding).into(),
        role.into(),
        age(binding, now).into(),
        subjects(binding, "User").into(),
        subjects(binding, "Group").into(),
        subjects(binding, "ServiceAccount").into(),
    ]
}

fn subjects(binding: &Value, kind: &str) -> String {
    let subjects = list(binding, "/subjects").iter().filter(|subject| object::text(subject, "/kind") == kind);
    let names = subjects.map(|subject| {
        let name = object::text(subject, "/name");
        match (kind, object::text(subject, "/namespace")) {
            ("ServiceAccount", namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}
