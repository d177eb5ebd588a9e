//! Nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, text, wide};
use super::read::{age, condition, flag, list, text_or};
use crate::object;

pub(super) const COLUMNS: &[BuiltInColumn] = &[
    NAME,
    text("Status"),
    text("Roles"),
    AGE,
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];

pub(super) fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let ready = match condition(node, "Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if flag(node, "/spec/unschedulable", false) { ",SchedulingDisabled" } else { "" };
    vec![
        object::name(node).into(),
        format!("{ready}{cordoned}").into(),
        roles(node).into(),
        age(node, now).into(),
        object::text(node, "/status/nodeInfo/kubeletVersion").into(),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        text_or(node, "/status/nodeInfo/osImage", "<unknown>").into(),
        text_or(node, "/status/nodeInfo/kernelVersion", "<unknown>").into(),
        text_or(node, "/status/nodeInfo/containerRuntimeVersion", "<unknown>").into(),
    ]
}

fn roles(node: &Value) -> String {
    let role = |(key, value)| match key {
        "kubernetes.io/role" => Some(value),
        key => str::strip_prefix(key, "node-role.kubernetes.io/"),
    };
    let roles: BTreeSet<&str> = object::labels(node).filter_map(role).filter(|role| !role.is_empty()).collect();
    match roles.is_empty() {
        true => "<none>".to_owned(),
        false => roles.into_iter().collect::<Vec<_>>().join(","),
    }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let mut addresses = list(node, "/status/addresses").iter();
    let address = addresses.find(|address| object::text(address, "/type") == kind);
    address.map_or("<none>", |address| object::text(address, "/address"))
}
