//! A TCP relay in front of the API server that can be cut, to see what a client makes of a lost connection.
//!
//! It carries bytes and knows nothing of them: TLS goes through it, end to end.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result};
use kube::{Client, Config};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// Relays while it lives; dropping it cuts every connection too.
pub struct Relay {
    port: u16,
    listener: JoinSet<()>,
    connections: Connections,
}

type Connections = Arc<Mutex<JoinSet<()>>>;

impl Relay {
    /// Listens on a free port of the loopback, and relays each connection to this `host:port`.
    pub async fn to(target: String) -> Result<Self> {
        Self::between(0, target).await
    }

    /// The same on this port.
    pub async fn between(port: u16, target: String) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.context("failed to bind the relay")?;
        let port = listener.local_addr()?.port();
        let (mut accepting, connections) = (JoinSet::new(), Connections::default());
        accepting.spawn(relay_all(listener, target, Arc::clone(&connections)));
        Ok(Self { port, listener: accepting, connections })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A relay to the API server of this config, and a client that goes through it.
    pub async fn to_api_server(mut config: Config) -> Result<(Self, Client)> {
        let url = &config.cluster_url;
        let host = url.host().context("the cluster's URL has no host")?.to_owned();
        let relay = Self::to(format!("{host}:{}", url.port_u16().unwrap_or(443))).await?;
        config.cluster_url = format!("https://127.0.0.1:{}", relay.port).parse()?;
        // The certificate is checked against the name that the server was to be reached by.
        config.tls_server_name.get_or_insert(host);
        Ok((relay, Client::try_from(config)?))
    }

    /// Closes every connection, both sides. They are closed when this returns; new ones are taken.
    pub async fn interrupt(&self) {
        let connections = std::mem::take(&mut *lock(&self.connections));
        { connections }.shutdown().await;
    }

    /// The same, and accepts no more.
    pub async fn cut(mut self) {
        self.listener.shutdown().await;
        self.interrupt().await;
    }
}

fn lock(connections: &Connections) -> std::sync::MutexGuard<'_, JoinSet<()>> {
    // Nothing panics while holding it but for want of memory.
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn relay_all(listener: TcpListener, target: String, connections: Connections) {
    while let Ok((mut near, _)) = listener.accept().await {
        let target = target.clone();
        lock(&connections).spawn(async move {
            if let Ok(mut far) = TcpStream::connect(&target).await {
                // Its end, in order or not, is all there is to say about a connection.
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn bytes_pass_until_the_relay_is_cut() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let relay = Relay::to(server.local_addr().unwrap().to_string()).await.unwrap();
        let mut near = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port)).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();

        near.write_all(b"ahoy").await.unwrap();
        let mut heard = [0; 4];
        far.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"ahoy");

        relay.interrupt().await;
        assert_eq!(near.read(&mut heard).await.unwrap_or(0), 0);
        assert_eq!(far.read(&mut heard).await.unwrap_or(0), 0);

        let mut near = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port)).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        relay.cut().await;
        assert_eq!(near.read(&mut heard).await.unwrap_or(0), 0);
        assert_eq!(far.read(&mut heard).await.unwrap_or(0), 0);
    }
}
