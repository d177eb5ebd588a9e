//! The container runtime behind a pod: scenarios run on the machine of the node, so its socket can be asked directly.

use std::path::PathBuf;

use anyhow::{Context, Result};
use boathook_cri::RuntimeServiceClient;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, ResourceExt};
use tonic::transport::Channel;

use crate::Ctx;

/// Under this name kubeadm, and so both clusters, tell of a node where its container runtime listens.
const SOCKET: &str = "kubeadm.alpha.kubernetes.io/cri-socket";

impl Ctx {
    /// A client of the container runtime of this pod's node.
    pub async fn runtime_of(&self, pod: &Pod) -> Result<RuntimeServiceClient<Channel>> {
        Ok(boathook_cri::client(&self.cri_socket(pod).await?))
    }

    /// Where that runtime listens.
    pub async fn cri_socket(&self, pod: &Pod) -> Result<PathBuf> {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).context("the pod has no node")?;
        let node = Api::<Node>::all(self.client()).get(node).await?;
        socket_of(&node)
    }
}

/// Where the container runtime of this node listens.
pub fn socket_of(node: &Node) -> Result<PathBuf> {
    let socket = node.annotations().get(SOCKET).and_then(|value| value.strip_prefix("unix://"));
    let socket = socket.with_context(|| format!("node `{}` has no annotation `{SOCKET}`", node.name_any()))?;
    Ok(PathBuf::from(socket))
}
