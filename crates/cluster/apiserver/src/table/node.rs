//! Nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, made, text, text_or};
use super::read::{condition, joined};
use crate::object;

pub(super) const COLUMNS: &[BuiltInColumn] = &[
    NAME,
    made("Status", |node, _| status(node)),
    made("Roles", |node, _| roles(node)),
    AGE,
    text("Version", "/status/nodeInfo/kubeletVersion"),
    made("Internal-IP", |node, _| address(node, "InternalIP")).wide(),
    made("External-IP", |node, _| address(node, "ExternalIP")).wide(),
    text_or("OS-Image", "/status/nodeInfo/osImage", "<unknown>").wide(),
    text_or("Kernel-Version", "/status/nodeInfo/kernelVersion", "<unknown>").wide(),
    text_or("Container-Runtime", "/status/nodeInfo/containerRuntimeVersion", "<unknown>").wide(),
];

fn status(node: &Value) -> Value {
    let ready = match condition(node, "Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if object::is_true(node, "/spec/unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{ready}{cordoned}").into()
}

fn roles(node: &Value) -> Value {
    let role = |(key, value)| match key {
        "kubernetes.io/role" => Some(value),
        key => str::strip_prefix(key, "node-role.kubernetes.io/"),
    };
    let roles: BTreeSet<&str> = object::labels(node).filter_map(role).filter(|role| !role.is_empty()).collect();
    joined(roles.into_iter().map(str::to_owned), "<none>")
}

fn address(node: &Value, kind: &str) -> Value {
    let mut addresses = object::list(node, "/status/addresses").iter();
    let address = addresses.find(|address| object::text(address, "/type") == kind);
    address.map_or("<none>", |address| object::text(address, "/address")).into()
}
