//! An admission webhook on the host: an HTTPS server on the loopback with a CA of its own.
//!
//! What it answers is a function of the path and the request; what it was asked is kept, for the scenario to look at.

use std::{
    convert::Infallible,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use k8s_openapi::{ByteString, api::admissionregistration::v1::WebhookClientConfig};
use kube::{
    api::DynamicObject,
    core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer},
};

/// The API server takes objects of up to 3 MiB; a review of an update holds two.
const LARGEST_REVIEW: usize = 8 << 20;

/// What the API server asked. The object is as it was at that moment of admission.
pub type Ask = AdmissionRequest<DynamicObject>;

type Answer = dyn Fn(&str, &Ask) -> AdmissionResponse + Send + Sync;

/// Serves while it lives.
pub struct WebhookServer {
    port: u16,
    ca: String,
    asked: Arc<Mutex<Vec<(String, Ask)>>>,
    _tasks: JoinSet<()>,
}

impl WebhookServer {
    /// Listens on a free port of 127.0.0.1. `answer` is given the URL's path and the request.
    pub async fn start(answer: impl Fn(&str, &Ask) -> AdmissionResponse + Send + Sync + 'static) -> Result<Self> {
        let (ca, tls) = certificates().context("failed to make the webhook's certificates")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("failed to bind the webhook")?;
        let port = listener.local_addr()?.port();
        let asked = Arc::default();
        let mut tasks = JoinSet::new();
        let desk = Desk { answer: Arc::new(answer), asked: Arc::clone(&asked) };
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(tls)), desk));
        Ok(Self { port, ca, asked, _tasks: tasks })
    }

    /// How a webhook configuration reaches the server, at this path.
    pub fn client_config(&self, path: &str) -> WebhookClientConfig {
        WebhookClientConfig {
            url: Some(format!("https://127.0.0.1:{}{path}", self.port)),
            ca_bundle: Some(ByteString(self.ca.clone().into_bytes())),
            service: None,
        }
    }

    /// What was asked at this path so far, dry runs too.
    pub fn asked(&self, path: &str) -> Vec<Ask> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|(at, _)| at == path).map(|(_, ask)| ask.clone()).collect()
    }
}

/// A new CA, and a server certificate of it for 127.0.0.1. The CA's key is forgotten at once.
fn certificates() -> Result<(String, ServerConfig)> {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate()?;
    let ca_certificate = ca.self_signed(&ca_key)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()])?.signed_by(&key, &Issuer::new(ca, ca_key))?;
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.into()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())?;
    Ok((ca_certificate.pem(), tls))
}

#[derive(Clone)]
struct Desk {
    answer: Arc<Answer>,
    asked: Arc<Mutex<Vec<(String, Ask)>>>,
}

/// The connections live in this task, so they end with it.
async fn serve(listener: TcpListener, tls: TlsAcceptor, desk: Desk) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, desk) = (tls.clone(), desk.clone());
        connections.spawn(async move {
            // A connection that fails is the API server's to report: it knows which request it was for.
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(|request| desk.handle(request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

impl Desk {
    async fn handle(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let path = request.uri().path().to_owned();
        let (status, body) = match self.review(&path, request.into_body()).await {
            Ok(review) => (StatusCode::OK, review),
            // The API server puts this text into its own error.
            Err(error) => (StatusCode::BAD_REQUEST, format!("{error:#}").into_bytes()),
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        Ok(response)
    }

    async fn review(&self, path: &str, body: Incoming) -> Result<Vec<u8>> {
        let body = Limited::new(body, LARGEST_REVIEW).collect().await.map_err(anyhow::Error::from_boxed)?.to_bytes();
        let review: AdmissionReview<DynamicObject> = serde_json::from_slice(&body).context("not an AdmissionReview")?;
        let ask: Ask = review.try_into().context("an AdmissionReview without a request")?;
        let answer = (self.answer)(path, &ask);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), ask));
        Ok(serde_json::to_vec(&answer.into_review())?)
    }
}
