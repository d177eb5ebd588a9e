//! Services, Endpoints and EndpointSlices.

use std::collections::BTreeSet;

use serde_json::Value;

use super::column::{AGE, BuiltInColumn, NAME, made, text, text_or};
use super::read::{self, joined, number};
use crate::object::{self, fields, list, texts};

/// How many addresses or ports are shown; the rest is counted.
const SHOWN: usize = 3;

pub(super) const SERVICE: &[BuiltInColumn] = &[
    NAME,
    text("Type", "/spec/type"),
    text_or("Cluster-IP", "/spec/clusterIPs/0", "<none>"),
    made("External-IP", |service, _| external_ip(service)),
    made("Port(s)", |service, _| joined(list(service, "/spec/ports").iter().map(service_port), "<none>")),
    AGE,
    made("Selector", |service, _| selector(service)).wide(),
];

fn selector(service: &Value) -> Value {
    let pairs = fields(service, "/spec/selector");
    joined(pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())), "<none>")
}

fn external_ip(service: &Value) -> Value {
    let external = texts(service, "/spec/externalIPs");
    match object::text(service, "/spec/type") {
        "ClusterIP" | "NodePort" => joined(external, "<none>"),
        "LoadBalancer" => {
            let ingress = list(service, "/status/loadBalancer/ingress").iter();
            let assigned = ingress.map(|at| read::text_or(at, "/ip", object::text(at, "/hostname")).to_owned());
            let assigned: BTreeSet<String> = assigned.filter(|address| !address.is_empty()).collect();
            joined(assigned.into_iter().chain(external), "<pending>")
        }
        "ExternalName" => object::text(service, "/spec/externalName").into(),
        _ => "<unknown>".into(),
    }
}

fn service_port(port: &Value) -> String {
    let protocol = object::text(port, "/protocol");
    match (number(port, "/port"), number(port, "/nodePort")) {
        (port, 0) => format!("{port}/{protocol}"),
        (port, node_port) => format!("{port}:{node_port}/{protocol}"),
    }
}

pub(super) const ENDPOINTS: &[BuiltInColumn] = &[NAME, made("Endpoints", |endpoints, _| addresses(endpoints)), AGE];

fn addresses(endpoints: &Value) -> Value {
    match list(endpoints, "/subsets") {
        [] => "<none>".into(),
        subsets => first_few(subsets.iter().flat_map(subset_addresses).collect(), ""),
    }
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

pub(super) const ENDPOINT_SLICE: &[BuiltInColumn] = &[
    NAME,
    text("AddressType", "/addressType"),
    made("Ports", |slice, _| first_few(list(slice, "/ports").iter().map(slice_port).collect(), "<unset>")),
    made("Endpoints", |slice, _| {
        first_few(list(slice, "/endpoints").iter().flat_map(|it| texts(it, "/addresses")).collect(), "<unset>")
    }),
    AGE,
];

fn slice_port(port: &Value) -> String {
    match number(port, "/port") {
        0 => read::text_or(port, "/name", "*").to_owned(),
        port => port.to_string(),
    }
}

fn first_few(all: Vec<String>, absent: &str) -> Value {
    let shown = joined(all.iter().take(SHOWN).cloned(), absent);
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{} + {more} more...", shown.as_str().unwrap_or_default()).into(),
    }
}
