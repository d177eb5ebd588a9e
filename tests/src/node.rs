//! Actions as an agent carries them out: on the node, from where its container runtime is.
//!
//! A real cluster has a network of its own on this machine, and its runtime's streaming server and its pods are reached
//! only from in there. So that part of a scenario runs on a thread that enters the network namespace of whoever listens
//! on the runtime's socket. Nothing else of the test process moves, and no CI needs to know where that network is.

use std::{
    fs::File,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use boathook_actions::{
    Cancel, Ended, Place, Target, Work,
    place::cri::{Options, Runtime},
};
use k8s_openapi::api::core::v1::Pod;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::{net::UnixStream, sync::oneshot};

use crate::Ctx;

impl Ctx {
    /// Runs it through the container runtime of the pod's node.
    pub async fn run_on_node(
        &self,
        pod: &Pod,
        options: Options,
        (target, work, cancel): (Target, Work, Cancel),
    ) -> Result<Ended> {
        let socket = self.cri_socket(pod).await?;
        let network = network_of(&socket).await?;
        let (tell, told) = oneshot::channel();
        std::thread::spawn(move || {
            let ended = network.as_deref().map_or(Ok(()), enter).and_then(|()| {
                let here = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                Ok(here
                    .block_on(async { Place::Cri(Runtime::new(&socket, options)).run(&target, &work, cancel).await }))
            });
            // Whoever does not wait any more need not know.
            tell.send(ended).ok();
        });
        told.await.map_err(|_| anyhow!("the thread on the node panicked"))?
    }
}

/// The network namespace of whoever listens on this socket, unless it is that of this process.
pub async fn network_of(socket: &Path) -> Result<Option<PathBuf>> {
    let runtime = UnixStream::connect(socket).await.with_context(|| format!("failed to reach {socket:?}"))?;
    let runtime = runtime.peer_cred()?.pid().context("the container runtime has no process")?;
    let (there, here) = (format!("/proc/{runtime}/ns/net"), "/proc/self/ns/net");
    let name = |path: &str| std::fs::read_link(path).with_context(|| format!("failed to read `{path}`"));
    Ok(if name(&there)? == name(here)? { None } else { Some(there.into()) })
}

/// Moves this thread, and what it opens and starts from now on, into that network.
fn enter(network: &Path) -> Result<()> {
    let namespace = File::open(network)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .context("failed to enter the cluster's network")
}
