//! Services, Endpoints and EndpointSlices.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, text, wide};
use super::read::{age, list, number, text_or, texts};
use crate::object;

/// How many addresses or ports are shown; the rest is counted.
const SHOWN: usize = 3;

pub(super) const SERVICE: &[BuiltInColumn] =
    &[NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, wide("Selector")];

pub(super) fn service(service: &Value, now: Timestamp) -> Vec<Value> {
    let selector = service.pointer("/spec/selector").and_then(Value::as_object).into_iter().flatten();
    let selector = selector.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    vec![
        object::name(service).into(),
        object::text(service, "/spec/type").into(),
        text_or(service, "/spec/clusterIPs/0", "<none>").into(),
        external_ip(service).into(),
        or_none(list(service, "/spec/ports").iter().map(service_port)).into(),
        age(service, now).into(),
        or_none(selector).into(),
    ]
}

fn external_ip(service: &Value) -> String {
    let external = texts(service, "/spec/externalIPs").into_iter().map(str::to_owned);
    match object::text(service, "/spec/type") {
        "ClusterIP" | "NodePort" => or_none(external),
        "LoadBalancer" => {
            let ingress = list(service, "/status/loadBalancer/ingress").iter();
            let assigned = ingress.map(|at| text_or(at, "/ip", object::text(at, "/hostname")).to_owned());
            let assigned: BTreeSet<String> = assigned.filter(|address| !address.is_empty()).collect();
            let all: Vec<String> = assigned.into_iter().chain(external).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => object::text(service, "/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service_port(port: &Value) -> String {
    let protocol = object::text(port, "/protocol");
    match (number(port, "/port"), number(port, "/nodePort")) {
        (port, 0) => format!("{port}/{protocol}"),
        (port, node_port) => format!("{port}:{node_port}/{protocol}"),
    }
}

fn or_none(parts: impl Iterator<Item = String>) -> String {
    let joined = parts.collect::<Vec<_>>().join(",");
    if joined.is_empty() { "<none>".to_owned() } else { joined }
}

pub(super) const ENDPOINTS: &[BuiltInColumn] = &[NAME, text("Endpoints"), AGE];

pub(super) fn endpoints(endpoints: &Value, now: Timestamp) -> Vec<Value> {
    let subsets = list(endpoints, "/subsets");
    let shown = match subsets {
        [] => "<none>".to_owned(),
        subsets => first_few(subsets.iter().flat_map(subset_addresses).collect()),
    };
    vec![object::name(endpoints).into(), shown.into(), age(endpoints, now).into()]
}

/// Every address with every port; an address alone where there are no ports.
fn subset_addresses(subset: &Value) -> Vec<String> {
    let addresses = || list(subset, "/addresses").iter().map(|address| object::text(address, "/ip"));
    let ports = list(subset, "/ports");
    if ports.is_empty() {
        return addresses().map(str::to_owned).collect();
    }
    let ports = ports.iter().map(|port| number(port, "/port"));
    ports.flat_map(|port| addresses().map(move |address| host_and_port(address, port))).collect()
}

fn host_and_port(address: &str, port: i64) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

pub(super) const ENDPOINT_SLICE: &[BuiltInColumn] = &[NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE];

pub(super) fn endpoint_slice(slice: &Value, now: Timestamp) -> Vec<Value> {
    let ports = list(slice, "/ports").iter().map(|port| match number(port, "/port") {
        0 => text_or(port, "/name", "*").to_owned(),
        port => port.to_string(),
    });
    let addresses = list(slice, "/endpoints").iter().flat_map(|endpoint| texts(endpoint, "/addresses"));
    let or_unset = |shown: String| if shown.is_empty() { "<unset>".to_owned() } else { shown };
    vec![
        object::name(slice).into(),
        object::text(slice, "/addressType").into(),
        or_unset(first_few(ports.collect())).into(),
        or_unset(first_few(addresses.map(str::to_owned).collect())).into(),
        age(slice, now).into(),
    ]
}

fn first_few(all: Vec<String>) -> String {
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(",");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}
