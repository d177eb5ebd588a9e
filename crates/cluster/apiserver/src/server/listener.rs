//! The port on loopback, with TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, ServerConfig};

use super::{connection, serve};
use crate::api::Api;

/// Why the server cannot listen.
#[derive(Debug)]
pub enum ServeError {
    Bind { address: SocketAddr, error: std::io::Error },
    Certificate(rustls::Error),
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind { address, error } => write!(f, "failed to listen on {address}: {error}"),
            Self::Certificate(error) => write!(f, "failed to use the server's certificate: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// A bound port that is not served yet.
pub struct Listener {
    listener: TcpListener,
    tls: TlsAcceptor,
}

impl Listener {
    pub async fn bind(
        address: SocketAddr,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, ServeError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(ServeError::Certificate)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = TcpListener::bind(address).await.map_err(|error| ServeError::Bind { address, error })?;
        Ok(Self { listener, tls: TlsAcceptor::from(Arc::new(config)) })
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is dropped.
    pub async fn serve(self, api: Arc<Api>) {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of file descriptors, say: the next one may succeed, and the others go on.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let (api, tls) = (Arc::clone(&api), self.tls.clone());
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                if let Ok(stream) = tls.accept(stream).await {
                    connection(stream, |request| serve(Arc::clone(&api), request)).await;
                }
            });
        }
    }
}
