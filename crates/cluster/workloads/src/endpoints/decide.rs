//! Which addresses and ports stand behind a Service. Pure.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ContainerPort, EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod, Service, ServicePort,
};
use k8s_openapi::api::discovery::v1::{self as discovery, Endpoint, EndpointConditions, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{Resource, ResourceExt};

use crate::{ownership, pod};

const HEADLESS: &str = "service.kubernetes.io/headless";
const ENDPOINTS_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");
pub(super) const SLICES_BY: (&str, &str) =
    ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io");
const SLICE_OF: &str = "kubernetes.io/service-name";

/// Name, number and protocol: pods whose named ports differ stand apart.
type Port = (Option<String>, i32, String);

struct Behind<'a> {
    pod: &'a Pod,
    ip: String,
    ready: bool,
    terminating: bool,
}

/// Pods behind the Service by the ports that they serve it with.
fn behind<'a>(service: &Service, pods: &'a [Arc<Pod>]) -> BTreeMap<Vec<Port>, Vec<Behind<'a>>> {
    let mut groups: BTreeMap<Vec<Port>, Vec<Behind<'a>>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pod::is_finished(pod) && selects(service, pod)) {
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        let Some(ip) = ip.filter(|ip| !ip.is_empty()) else { continue };
        let wanted = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
        let ports: Vec<Port> = wanted.iter().filter_map(|port| resolve(port, pod)).collect();
        if ports.is_empty() && !wanted.is_empty() {
            continue;
        }
        let terminating = pod.metadata.deletion_timestamp.is_some();
        groups.entry(ports).or_default().push(Behind { pod, ip, ready: pod::is_ready(pod), terminating });
    }
    for pods in groups.values_mut() {
        pods.sort_by(|a, b| (&a.ip, &a.pod.metadata.name).cmp(&(&b.ip, &b.pod.metadata.name)));
    }
    groups
}

/// A Service without a selector is served by hand.
pub(super) fn is_selecting(service: &Service) -> bool {
    service.spec.as_ref().is_some_and(|spec| {
        let external = spec.type_.as_deref() == Some("ExternalName");
        !external && spec.selector.as_ref().is_some_and(|selector| !selector.is_empty())
    })
}

pub(super) fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value)))
}

fn resolve(port: &ServicePort, pod: &Pod) -> Option<Port> {
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    let number = match &port.target_port {
        None | Some(IntOrString::Int(0)) => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            let protocol_of = |port: &ContainerPort| port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            let named = ports.find(|port| port.name.as_ref() == Some(name) && protocol_of(port) == protocol);
            named?.container_port
        }
    };
    Some((port.name.clone(), number, protocol))
}

fn publishes_unready(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses).unwrap_or_default()
}

fn labels(service: &Service, own: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.extend(own.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    if service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

fn target(pod: &Pod) -> Option<ObjectReference> {
    Some(ObjectReference { api_version: None, ..pod.object_ref(&()) })
}

fn node(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone().filter(|node| !node.is_empty())
}

/// Kubernetes leaves out lists that are empty.
fn some<T>(list: impl Iterator<Item = T>) -> Option<Vec<T>> {
    Some(list.collect()).filter(|list: &Vec<T>| !list.is_empty())
}

pub(super) fn endpoints(service: &Service, pods: &[Arc<Pod>]) -> Endpoints {
    let unready_too = publishes_unready(service);
    let address = |behind: &Behind<'_>| EndpointAddress {
        ip: behind.ip.clone(),
        node_name: node(behind.pod),
        target_ref: target(behind.pod),
        ..EndpointAddress::default()
    };
    let port = |(name, port, protocol): Port| EndpointPort { name, port, protocol: Some(protocol), app_protocol: None };
    let subsets = behind(service, pods).into_iter().filter_map(|(ports, pods)| {
        let staying = pods.iter().filter(|behind| unready_too || !behind.terminating);
        let (ready, unready): (Vec<_>, Vec<_>) = staying.partition(|behind| unready_too || behind.ready);
        (!ready.is_empty() || !unready.is_empty()).then(|| EndpointSubset {
            addresses: some(ready.into_iter().map(address)),
            not_ready_addresses: some(unready.into_iter().map(address)),
            ports: some(ports.into_iter().map(port)),
        })
    });
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels(service, &[ENDPOINTS_BY])),
            ..ObjectMeta::default()
        },
        subsets: some(subsets),
    }
}

/// One slice for each set of ports; an empty one where there are no pods.
pub(super) fn slices(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSlice> {
    let unready_too = publishes_unready(service);
    let mut groups = behind(service, pods);
    if groups.is_empty() {
        groups.insert(Vec::new(), Vec::new());
    }
    let endpoint = |behind: Behind<'_>| Endpoint {
        addresses: vec![behind.ip],
        conditions: Some(EndpointConditions {
            ready: Some(unready_too || (behind.ready && !behind.terminating)),
            serving: Some(behind.ready),
            terminating: Some(behind.terminating),
        }),
        node_name: node(behind.pod),
        target_ref: target(behind.pod),
        ..Endpoint::default()
    };
    let slice = |(ports, pods): (Vec<Port>, Vec<Behind<'_>>)| EndpointSlice {
        metadata: slice_meta(service, &ports),
        // All pods have addresses of the loopback network.
        address_type: "IPv4".to_owned(),
        ports: some(ports.into_iter().map(slice_port)),
        endpoints: pods.into_iter().map(endpoint).collect(),
    };
    groups.into_iter().map(slice).collect()
}

fn slice_port((name, port, protocol): Port) -> discovery::EndpointPort {
    discovery::EndpointPort {
        name: Some(name.unwrap_or_default()),
        port: Some(port),
        protocol: Some(protocol),
        app_protocol: None,
    }
}

/// Its name is always the same for the same Service and ports: so it cannot be made twice.
fn slice_meta(service: &Service, ports: &[Port]) -> ObjectMeta {
    let mut hasher = DefaultHasher::new();
    (&service.metadata.uid, ports).hash(&mut hasher);
    let name = service.name_any();
    let own = [SLICES_BY, (SLICE_OF, name.as_str())];
    ObjectMeta {
        name: Some(format!("{name}-{:05x}", hasher.finish() & 0xf_ffff)),
        generate_name: Some(format!("{name}-")),
        namespace: service.metadata.namespace.clone(),
        labels: Some(labels(service, &own)),
        owner_references: Some(vec![ownership::reference_to(service)]),
        ..ObjectMeta::default()
    }
}

/// The Service whose slice it is.
pub(super) fn service_of(slice: &EndpointSlice) -> Option<&str> {
    slice.labels().get(SLICE_OF).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(spec: Value) -> Service {
        let mut full =
            json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}]});
        for (key, value) in spec.as_object().unwrap() {
            full[key] = value.clone();
        }
        let meta = json!({"name": "web", "namespace": "n", "uid": "u", "labels": {"team": "blue"}});
        serde_json::from_value(json!({"metadata": meta, "spec": full})).unwrap()
    }

    fn pod(name: &str, ip: &str, port: i32, ready: &str, extra: Value) -> Arc<Pod> {
        let mut meta = json!({"name": name, "namespace": "n", "uid": name, "labels": {"app": "web"}});
        for (key, value) in extra.as_object().unwrap() {
            meta[key] = value.clone();
        }
        let container = json!({"name": "c", "ports": [{"name": "http", "containerPort": port}]});
        let pod = json!({
            "metadata": meta, "spec": {"nodeName": "node", "containers": [container]},
            "status": {"phase": "Running", "podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn ready_pods_are_addresses_and_others_are_not_ready_ones() {
        let pods = [
            pod("b", "10.0.0.2", 8080, "True", json!({})),
            pod("a", "10.0.0.1", 8080, "False", json!({})),
            pod("other", "10.0.0.3", 8080, "True", json!({"labels": {"app": "db"}})),
            pod("pending", "", 8080, "False", json!({})),
        ];
        let subsets = json!(endpoints(&service(json!({})), &pods).subsets);
        assert_eq!(subsets[0]["addresses"][0]["ip"], "10.0.0.2");
        assert_eq!(subsets[0]["addresses"].as_array().unwrap().len(), 1);
        assert_eq!(
            subsets[0]["notReadyAddresses"][0]["targetRef"],
            json!({"kind": "Pod", "namespace": "n", "name": "a", "uid": "a"})
        );
        assert_eq!(subsets[0]["ports"], json!([{"port": 8080, "protocol": "TCP"}]));
    }

    #[test]
    fn a_port_name_may_mean_another_number_in_each_pod() {
        let pods = [pod("a", "10.0.0.1", 8080, "True", json!({})), pod("b", "10.0.0.2", 9090, "True", json!({}))];
        let slices = slices(&service(json!({})), &pods);
        let ports: Vec<Value> = slices.iter().map(|slice| json!(slice.ports)).collect();
        assert_eq!(ports[0], json!([{"name": "", "port": 8080, "protocol": "TCP"}]));
        assert_eq!(ports[1][0]["port"], 9090);
        assert_ne!(slices[0].metadata.name, slices[1].metadata.name);
    }

    #[test]
    fn a_terminating_pod_serves_in_its_slice_but_has_no_endpoint() {
        let going = json!({"deletionTimestamp": "2024-01-01T00:00:00Z"});
        let pods = [pod("a", "10.0.0.1", 8080, "True", going)];
        assert_eq!(endpoints(&service(json!({})), &pods).subsets, None);
        let conditions = json!(slices(&service(json!({})), &pods)[0].endpoints[0].conditions);
        assert_eq!(conditions, json!({"ready": false, "serving": true, "terminating": true}));
    }

    #[test]
    fn a_service_may_publish_pods_before_they_are_ready() {
        let pods = [pod("a", "10.0.0.1", 8080, "False", json!({}))];
        let service = service(json!({"publishNotReadyAddresses": true, "clusterIP": "None"}));
        let endpoints = json!(endpoints(&service, &pods));
        assert_eq!(endpoints["subsets"][0]["addresses"][0]["ip"], "10.0.0.1");
        assert_eq!(endpoints["metadata"]["labels"][HEADLESS], "");
    }

    #[test]
    fn without_pods_there_is_one_empty_slice_and_no_subset() {
        let slices = slices(&service(json!({})), &[]);
        assert_eq!((slices.len(), slices[0].endpoints.len()), (1, 0));
        assert_eq!(service_of(&slices[0]), Some("web"));
        assert_eq!(endpoints(&service(json!({})), &[]).subsets, None);
    }
}
