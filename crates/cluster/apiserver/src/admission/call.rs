//! One webhook's endpoint: HTTPS, a connection a call, with errors in the words of Go's client, which people search
//! for.

use std::error::Error;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore, crypto};

use crate::object;

/// Twice the largest object, in base64, is well below.
const LARGEST_ANSWER: usize = 8 << 20;

/// Where a Service listens (`host:port`), by its namespace, name and port.
pub type Resolve = Arc<dyn Fn(&str, &str, u16) -> Option<String> + Send + Sync>;

pub(super) struct Endpoint {
    /// Without the query.
    url: String,
    host: String,
    port: u16,
    service: Option<(String, String)>,
    resolve: Resolve,
    server_name: ServerName<'static>,
    tls: TlsConnector,
}

impl Endpoint {
    /// From a webhook's `clientConfig`.
    pub(super) fn parse(config: &Value, resolve: Resolve) -> Result<Self, String> {
        let service = &config["service"];
        let (url, service) = if service.is_object() {
            let (namespace, name) = (object::text(service, "/namespace"), object::text(service, "/name"));
            let port = service["port"].as_u64().unwrap_or(443);
            let path = object::text(service, "/path").trim_start_matches('/');
            (format!("https://{name}.{namespace}.svc:{port}/{path}"), Some((namespace.to_owned(), name.to_owned())))
        } else {
            (object::text(config, "/url").to_owned(), None)
        };
        let uri: Uri = url.parse().map_err(|error| format!("cannot parse the URL {url:?}: {error}"))?;
        let host = uri.host().ok_or(format!("the URL {url:?} names no host"))?.trim_matches(['[', ']']).to_owned();
        let server_name = ServerName::try_from(host.clone()).map_err(|error| format!("{host:?}: {error}"))?;
        let tls = trusting(object::text(config, "/caBundle"))?;
        let port = uri.port_u16().unwrap_or(443);
        Ok(Self { url, host, port, service, resolve, server_name, tls })
    }

    /// Sends the review; gives back the answer's body, or what went wrong.
    pub(super) async fn post(&self, review: &Value, deadline: Instant) -> Result<Value, String> {
        let seconds = deadline.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
        // The webhook may learn how long it has.
        let url = format!("{}{}timeout={seconds}s", self.url, if self.url.contains('?') { '&' } else { '?' });
        let in_context = |error: String| format!("Post {url:?}: {error}");
        let body = Bytes::from(review.to_string());
        let exchange = async { read(self.send(&url, body).await.map_err(in_context)?) };
        match tokio::time::timeout_at(deadline, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(in_context("context deadline exceeded".to_owned())),
        }
    }

    async fn send(&self, url: &str, body: Bytes) -> Result<Received, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let request = http::Request::builder()
            .method(Method::POST)
            .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
            .header(header::HOST, host)
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        let stream = TokioIo::new(self.connect().await?);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(stream).await.map_err(|error| words(&error))?;
        // The sender goes with the answer, and with it the connection.
        let exchange = async move {
            let response = sender.send_request(request).await.map_err(|error| words(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await;
            let body =
                body.map_err(|why| format!("the answer breaks off or is larger than {LARGEST_ANSWER} bytes: {why}"))?;
            let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let content_type = content_type.unwrap_or_default().to_owned();
            Ok(Received { status: head.status, content_type, body: body.to_bytes() })
        };
        tokio::join!(exchange, connection).0
    }

    async fn connect(&self) -> Result<TlsStream<TcpStream>, String> {
        let address = match &self.service {
            None if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
            Some((namespace, name)) => {
                (self.resolve)(namespace, name, self.port).ok_or(format!("service {name:?} not found"))?
            }
        };
        let stream = TcpStream::connect(&address).await.map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                _ => error.to_string(),
            };
            format!("dial tcp {address}: {why}")
        })?;
        self.tls.connect(self.server_name.clone(), stream).await.map_err(|error| self.tls_words(&error))
    }

    fn tls_words(&self, error: &std::io::Error) -> String {
        let host = &self.host;
        let unverified = |why: String| format!("tls: failed to verify certificate: x509: {why}");
        match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
            Some(TlsError::InvalidCertificate(error)) => match error {
                // A bad signature: by another authority of the same name.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    unverified("certificate signed by unknown authority".to_owned())
                }
                CertificateError::NotValidForNameContext { presented, .. } => {
                    // Shown as `DnsName("a")` and `IpAddress(127.0.0.1)`.
                    let inside =
                        |name: &String| name.split(['(', ')']).nth(1).unwrap_or(name).trim_matches('"').to_owned();
                    let names: Vec<String> = presented.iter().map(inside).collect();
                    let is_ip = |name: &str| name.parse::<std::net::IpAddr>().is_ok();
                    if is_ip(host) && !names.iter().any(|name| is_ip(name)) {
                        let why = "because it doesn't contain any IP SANs";
                        return unverified(format!("cannot validate certificate for {host} {why}"));
                    }
                    unverified(format!("certificate is valid for {}, not {host}", names.join(", ")))
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    unverified("certificate has expired or is not yet valid".to_owned())
                }
                other => unverified(other.to_string()),
            },
            Some(TlsError::InvalidMessage(_)) => "http: server gave HTTP response to HTTPS client".to_owned(),
            _ if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
            _ => error.to_string(),
        }
    }
}

struct Received {
    status: StatusCode,
    content_type: String,
    body: Bytes,
}

fn read(received: Received) -> Result<Value, String> {
    let Received { status, content_type, body } = received;
    if !(200..=206).contains(&status.as_u16()) {
        return Err(refused(status, &content_type, &body));
    }
    if body.is_empty() {
        let code = status.as_u16();
        return Err(format!("0-length response with status code: {code} and content type: {content_type}"));
    }
    let parsed = serde_json::from_slice(&body);
    parsed.map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
}

/// What an answer with an error code is called: a `Status` speaks for itself.
fn refused(status: StatusCode, content_type: &str, body: &[u8]) -> String {
    if let Ok(sent) = serde_json::from_slice::<Value>(body)
        && object::kind(&sent) == "Status"
        && !object::text(&sent, "/message").is_empty()
    {
        return object::text(&sent, "/message").to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let shown = if content_type.starts_with("text/") { text.trim() } else { "unknown" };
    match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => shown.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        500.. => format!("an error on the server ({shown:?}) has prevented the request from succeeding"),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}

fn words(error: &hyper::Error) -> String {
    let cause = error.source().and_then(|source| source.downcast_ref::<std::io::Error>()).map(std::io::Error::kind);
    let closed = error.is_incomplete_message() || error.is_canceled() || error.is_closed();
    if closed || cause == Some(std::io::ErrorKind::UnexpectedEof) { "EOF".to_owned() } else { error.to_string() }
}

/// A client that trusts the authorities of a `caBundle` (base64 of PEM), and no others.
fn trusting(bundle: &str) -> Result<TlsConnector, String> {
    let pem = STANDARD.decode(bundle).map_err(|error| format!("caBundle: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The shorter of the webhook's own limit and the request's.
pub(super) fn deadline(limit: Duration, request: Instant) -> Instant {
    request.min(Instant::now() + limit)
}
