//! The one node of a test cluster, as an agent is told of it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1;
use kube::{Api, Client, ResourceExt, api::ListParams};

use crate::{cri::socket_of, node::network_of};

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    /// Where its container runtime listens.
    pub socket: PathBuf,
    /// The network namespace from which pods and the runtime's streams are reached, if it is not this process' own.
    pub network: Option<PathBuf>,
}

impl Node {
    pub(super) async fn of(client: Client) -> Result<Self> {
        let nodes = Api::<v1::Node>::all(client).list(&ListParams::default()).await?;
        let node = nodes.items.first().context("the cluster has no node")?;
        let socket = socket_of(node)?;
        let network = network_of(&socket).await?;
        Ok(Self { name: node.name_any(), socket, network })
    }
}
