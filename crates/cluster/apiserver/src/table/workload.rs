//! Deployments, ReplicaSets, and the Scale of either.

use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, integer, made, text};
use super::read::{joined, number};
use crate::object;
use crate::selector::LabelSelector;

pub(super) const DEPLOYMENT: &[BuiltInColumn] = &[
    NAME,
    made("Ready", |it, _| format!("{}/{}", number(it, "/status/readyReplicas"), number(it, "/spec/replicas")).into()),
    integer("Up-to-date", "/status/updatedReplicas").called("string"),
    integer("Available", "/status/availableReplicas").called("string"),
    AGE,
    CONTAINERS,
    IMAGES,
    made("Selector", |deployment, _| selector(deployment, "", "<invalid>")).wide(),
];

pub(super) const REPLICA_SET: &[BuiltInColumn] = &[
    NAME,
    integer("Desired", "/spec/replicas"),
    integer("Current", "/status/replicas"),
    integer("Ready", "/status/readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    made("Selector", |set, _| selector(set, "<none>", "<error>")).wide(),
];

pub(super) const SCALE: &[BuiltInColumn] = &[
    text("Name", "/metadata/name"),
    integer("Desired", "/spec/replicas"),
    integer("Available", "/status/replicas"),
    AGE,
];

const CONTAINERS: BuiltInColumn = made("Containers", |workload, _| of_containers(workload, "/name")).wide();
const IMAGES: BuiltInColumn = made("Images", |workload, _| of_containers(workload, "/image")).wide();

fn of_containers(workload: &Value, pointer: &str) -> Value {
    let containers = object::list(workload, "/spec/template/spec/containers").iter();
    joined(containers.map(|container| object::text(container, pointer).to_owned()), "")
}

fn selector(workload: &Value, empty: &str, invalid: &str) -> Value {
    let selector = workload.pointer("/spec/selector").unwrap_or(&Value::Null);
    match LabelSelector::from_object(selector).map(|selector| selector.to_string()) {
        Ok(text) if text.is_empty() => empty.into(),
        Ok(text) => text.into(),
        Err(_) => invalid.into(),
    }
}
