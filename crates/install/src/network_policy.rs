//! A NetworkPolicy for a controller that runs in the cluster: pods of other namespaces do not reach it.
//!
//! No selector finds the API server, so its addresses are left to the administrator.

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ObjectMeta;

/// Addresses that no cluster has (RFC 5737): they are to be replaced.
pub(crate) const EXAMPLE_OF_API_SERVERS: &str = "192.0.2.0/24";

/// Only the API servers reach the pods of this namespace.
pub(crate) fn only_api_servers(name: &str, namespace: &str) -> NetworkPolicy {
    let block = IPBlock { cidr: EXAMPLE_OF_API_SERVERS.to_owned(), except: None };
    let peer = NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() };
    let rule = NetworkPolicyIngressRule { from: Some(vec![peer]), ports: None };
    NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector::default()),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![rule]),
            egress: None,
        }),
    }
}
