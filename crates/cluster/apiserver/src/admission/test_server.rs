//! A real HTTPS server on this machine that answers reviews as a test wants it.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

/// What is sent for one review.
pub(super) enum Reply {
    /// The `response` of a review, its `uid` filled in.
    Review(Value),
    Raw(u16, &'static str, Vec<u8>),
    /// The connection ends without an answer.
    Close,
    /// No answer at all.
    Never,
}

pub(super) struct TestServer {
    pub(super) port: u16,
    /// Base64 of PEM, as a `caBundle` holds it.
    pub(super) ca_bundle: String,
    /// Path with query, and review, of every call.
    pub(super) calls: Arc<Mutex<Vec<(String, Value)>>>,
    /// Told when a review has arrived, and when a connection has ended.
    pub(super) called: Arc<Notify>,
    pub(super) ended: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Log {
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    called: Arc<Notify>,
}

type Handler = dyn Fn(&str, &Value) -> Reply + Send + Sync;

impl TestServer {
    /// A server whose certificate is good for 127.0.0.1 and for the service `hooks` in `shop`.
    pub(super) async fn start(handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_as(&["127.0.0.1", "hooks.shop.svc"], handler).await
    }

    pub(super) async fn start_as(
        names: &[&str],
        handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let mut ca_params = CertificateParams::new([]).unwrap();
        ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let ca = ca_params.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(ca_params, ca_key);
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls: Arc<Mutex<Vec<_>>> = Arc::default();
        let handler: Arc<Handler> = Arc::new(handler);
        let (called, ended): (Arc<Notify>, Arc<Notify>) = Default::default();
        let log = Log { calls: calls.clone(), called: called.clone() };
        let task = tokio::spawn(accept(listener, acceptor, handler, log, ended.clone()));
        Self { port, ca_bundle: STANDARD.encode(ca.pem()), calls, called, ended, task }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}/{path}", self.port)
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, handler: Arc<Handler>, log: Log, ended: Arc<Notify>) {
    let mut served = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, handler, log) = (acceptor.clone(), handler.clone(), log.clone());
        let ended = ended.clone();
        served.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| answer(request, handler.clone(), log.clone()));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            ended.notify_one();
        });
    }
}

async fn answer(
    request: http::Request<Incoming>,
    handler: Arc<Handler>,
    log: Log,
) -> Result<http::Response<Full<Bytes>>, &'static str> {
    let path = request.uri().to_string();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    log.calls.lock().unwrap().push((path.clone(), review.clone()));
    log.called.notify_one();
    let (code, content_type, body) = match handler(path.split(['?', '/']).nth(1).unwrap(), &review) {
        Reply::Review(mut response) => {
            if response["uid"].is_null() {
                response["uid"] = review["request"]["uid"].clone();
            }
            let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            (200, "application/json", review.to_string().into_bytes())
        }
        Reply::Raw(code, content_type, body) => (code, content_type, body),
        Reply::Close => return Err("closed on purpose"),
        Reply::Never => std::future::pending().await,
    };
    Ok(http::Response::builder().status(code).header("content-type", content_type).body(Full::from(body)).unwrap())
}
