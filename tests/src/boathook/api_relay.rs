//! A way to the API server that can be closed and opened again, to see what an agent does without one.
//!
//! It is a process of its own, as it must be where the agent is: the real cluster has its own network. Killed, it cuts
//! every connection and refuses new ones; started again, it listens on the same port.

use std::process::ExitCode;

use anyhow::{Context, Result};
use kube::config::Kubeconfig;

use super::{installation::Installation, process::Process, role::Role};
use crate::relay::Relay;

/// Says the process when it relays; its port follows.
const LISTENING: &str = "listening on port ";

pub struct ApiRelay {
    installation: Installation,
    target: String,
    port: u16,
    process: Option<Process>,
}

impl ApiRelay {
    /// Opens one to the API server of this kubeconfig, and leads the kubeconfig through it.
    pub(super) async fn to(installation: &Installation, kubeconfig: &mut Kubeconfig) -> Result<Self> {
        let clusters = kubeconfig.clusters.iter_mut();
        let mut clusters = clusters.filter_map(|named| named.cluster.as_mut());
        let cluster = clusters.next().context("the kubeconfig names no cluster")?;
        let server = cluster.server.as_deref().and_then(|server| server.strip_prefix("https://"));
        let target = server.context("the API server is not at https://HOST:PORT")?.trim_end_matches('/').to_owned();
        let host = target.rsplit_once(':').context("the API server has no port")?.0.to_owned();
        let mut relay = Self { installation: installation.clone(), target, port: 0, process: None };
        relay.open().await?;
        cluster.server = Some(format!("https://127.0.0.1:{}", relay.port));
        // The certificate is checked against the name that the server was to be reached by.
        cluster.tls_server_name.get_or_insert(host);
        Ok(relay)
    }

    /// From now on the API server cannot be reached.
    pub async fn close(&mut self) -> Result<()> {
        self.process.take().context("it is closed already")?.kill().await
    }

    /// From now on nothing passes and no connection is closed: what is sent is taken and never answered.
    pub fn stall(&self) -> Result<()> {
        self.process.as_ref().context("it is closed already")?.pause()
    }

    pub async fn open(&mut self) -> Result<()> {
        let arguments = [self.port.to_string(), self.target.clone()];
        let mut process = self.installation.start_on_node(Role::Relay, &arguments.each_ref().map(String::as_str))?;
        self.port = process.says(LISTENING).await?.parse().context("the relay's port is not a number")?;
        self.process = Some(process);
        Ok(())
    }
}

/// All that the relay's own process does: `PORT HOST:PORT`, until it is killed.
pub(super) fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().context("no port to listen on")?.parse().context("the port is not a number")?;
    let target = arguments.next().context("nothing to relay to")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let relay = Relay::between(port, target).await?;
        println!("{LISTENING}{}", relay.port());
        std::future::pending().await
    })
}
