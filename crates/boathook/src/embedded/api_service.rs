//! The Service `kubernetes`, by which clients in pods find the API server.
//!
//! Its address is where the server listens: so it needs no proxy, no right to use port 443, and no other name in the
//! certificate.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// Under this name it is in every cluster.
const NAME: &str = "kubernetes";

/// Makes it, or leads it to where the server listens now.
pub(super) async fn publish(client: &Client, address: SocketAddr) -> kube::Result<()> {
    let (ip, port) = (address.ip().to_string(), address.port());
    let labels = json!({"component": "apiserver", "provider": "kubernetes"});
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP", "targetPort": port}]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "labels": labels},
        "spec": {"type": "ClusterIP", "clusterIP": ip, "ports": ports},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
    });
    let as_server = PatchParams::apply("kube-apiserver").force();
    Api::<EndpointSlice>::namespaced(client.clone(), "default").patch(NAME, &as_server, &Patch::Apply(slice)).await?;
    Api::<Service>::namespaced(client.clone(), "default").patch(NAME, &as_server, &Patch::Apply(service)).await?;
    Ok(())
}
