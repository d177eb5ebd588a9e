//! Deployments, ReplicaSets, and the Scale of either.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, integer, text, wide};
use super::read::{age, list, number};
use crate::object;
use crate::selector::LabelSelector;

pub(super) const DEPLOYMENT: &[BuiltInColumn] = &[
    NAME,
    text("Ready"),
    text("Up-to-date"),
    text("Available"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

pub(super) fn deployment(deployment: &Value, now: Timestamp) -> Vec<Value> {
    let ready = number(deployment, "/status/readyReplicas");
    vec![
        object::name(deployment).into(),
        format!("{ready}/{}", number(deployment, "/spec/replicas")).into(),
        number(deployment, "/status/updatedReplicas").into(),
        number(deployment, "/status/availableReplicas").into(),
        age(deployment, now).into(),
        of_containers(deployment, "/name").into(),
        of_containers(deployment, "/image").into(),
        selector(deployment, "", "<invalid>").into(),
    ]
}

pub(super) const REPLICA_SET: &[BuiltInColumn] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

pub(super) fn replica_set(set: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object::name(set).into(),
        number(set, "/spec/replicas").into(),
        number(set, "/status/replicas").into(),
        number(set, "/status/readyReplicas").into(),
        age(set, now).into(),
        of_containers(set, "/name").into(),
        of_containers(set, "/image").into(),
        selector(set, "<none>", "<error>").into(),
    ]
}

pub(super) const SCALE: &[BuiltInColumn] = &[text("Name"), integer("Desired"), integer("Available"), AGE];

pub(super) fn scale(scale: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object::name(scale).into(),
        number(scale, "/spec/replicas").into(),
        number(scale, "/status/replicas").into(),
        age(scale, now).into(),
    ]
}

fn of_containers(workload: &Value, pointer: &str) -> String {
    let containers = list(workload, "/spec/template/spec/containers").iter();
    containers.map(|container| object::text(container, pointer)).collect::<Vec<_>>().join(",")
}

fn selector(workload: &Value, empty: &str, invalid: &str) -> String {
    let selector = workload.pointer("/spec/selector").unwrap_or(&Value::Null);
    match LabelSelector::from_object(selector).map(|selector| selector.to_string()) {
        Ok(text) if text.is_empty() => empty.to_owned(),
        Ok(text) => text,
        Err(_) => invalid.to_owned(),
    }
}
