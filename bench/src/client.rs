//! A client as lean as possible, the same for both systems: HTTP/1.1 over TLS, a bearer token, a connection each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// No answer is that slow, but one that never comes.
const DEADLINE: Duration = Duration::from_secs(60);
/// No answer that is read as a whole is that long.
const LONGEST: usize = 1 << 20;

/// Where a system serves, and with what one gets in.
#[derive(Clone)]
pub(crate) struct Target {
    address: SocketAddr,
    tls: TlsConnector,
    bearer: String,
}

impl Target {
    pub(crate) fn new(address: SocketAddr, ca: &str, token: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(ca.as_bytes()).context("failed to read the CA's certificate")?;
        roots.add(authority).context("failed to trust the CA's certificate")?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("failed to set TLS up")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { address, tls: Arc::new(config).into(), bearer: format!("Bearer {token}") })
    }

    pub(crate) async fn connect(&self) -> Result<Connection> {
        let connecting = async {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let stream = self.tls.connect(ServerName::from(self.address.ip()), stream).await?;
            let (sender, carrier) = http1::handshake(TokioIo::new(stream)).await?;
            // Ends with the sender, or with the server.
            tokio::spawn(carrier);
            anyhow::Ok(sender)
        };
        let sender = timeout(DEADLINE, connecting).await.unwrap_or_else(|_| bail!("no answer after {DEADLINE:?}"));
        let sender = sender.with_context(|| format!("failed to connect to {}", self.address))?;
        Ok(Connection { sender, host: self.address.to_string(), bearer: self.bearer.clone() })
    }
}

pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    bearer: String,
}

impl Connection {
    /// A `GET` whose answer is read as it comes.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Response<Incoming>> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// The whole answer to a `GET`.
    pub(crate) async fn read(&mut self, path: &str) -> Result<Bytes> {
        let response = self.get(path).await?;
        whole(response).await
    }

    /// Creates an object, and returns when the server has said that it did.
    pub(crate) async fn create(&mut self, path: &str, object: String) -> Result<()> {
        let response = self.send(Method::POST, path, object.into()).await?;
        whole(response).await?;
        Ok(())
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>> {
        let what = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.host)
            .header(AUTHORIZATION, &self.bearer)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .context("a request of plain text")?;
        let answered = timeout(DEADLINE, async {
            self.sender.ready().await?;
            self.sender.send_request(request).await
        })
        .await;
        let response = answered.with_context(|| format!("no answer to {what} after {DEADLINE:?}"))?;
        let response = response.with_context(|| format!("failed to send {what}"))?;
        let status = response.status();
        if !status.is_success() {
            let said = whole(response).await.unwrap_or_default();
            bail!("{what} was answered with {status}: {}", String::from_utf8_lossy(&said));
        }
        Ok(response)
    }
}

async fn whole(response: Response<Incoming>) -> Result<Bytes> {
    let read = timeout(DEADLINE, Limited::new(response.into_body(), LONGEST).collect()).await;
    let read = read.with_context(|| format!("an answer did not end after {DEADLINE:?}"))?;
    match read {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => bail!("failed to read an answer: {error}"),
    }
}
