//! The server: reads a review, has it answered by the function of its path, in time.
//!
//! Only the API server is answered: a request whose path does not have the token gets an empty 404, and its body is not
//! read.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header,
};
use kube::{
    api::DynamicObject,
    core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview},
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use super::{Progress, Stored, authority::Certificates, patience, probe};
use crate::{
    connections::{self, Trust},
    metrics::Metrics,
};

/// The API server takes objects of up to 3 MiB; a review of an update holds two.
const LARGEST_REVIEW: usize = 8 << 20;

/// So many bodies are read and parsed at once; those of others wait in the system's buffers.
const MOST_BODIES: usize = 8;

/// How long a body may take to arrive.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// How often the log tells that requests without the token come.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// What the API server asks about.
pub type Ask = AdmissionRequest<DynamicObject>;

type Review = Arc<dyn Fn(Ask, Instant) -> BoxFuture<'static, AdmissionResponse> + Send + Sync>;

/// Which function answers at which path.
#[derive(Clone, Default)]
pub struct Reviews(BTreeMap<&'static str, Review>);

impl Reviews {
    /// At this path, such as `/pod-declarations`, this function answers.
    pub fn on<F>(self, path: &'static str, review: impl Fn(Ask) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = AdmissionResponse> + Send + 'static,
    {
        self.on_by_when(path, move |ask, _| review(ask))
    }

    /// The same, for a function that is told by when: then its future is dropped, as it is when who asked is gone.
    pub fn on_by_when<F>(
        mut self,
        path: &'static str,
        review: impl Fn(Ask, Instant) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = AdmissionResponse> + Send + 'static,
    {
        self.0.insert(path, Arc::new(move |ask, by_when| review(ask, by_when).boxed()));
        self
    }
}

/// A refusal in the words that kubectl shows. Without a code, it would be a 400.
pub fn refuse(ask: &Ask, code: u16, reason: &str, message: impl ToString) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(ask).deny(message);
    response.result.code = code;
    reason.clone_into(&mut response.result.reason);
    response
}

pub(super) struct Server {
    desk: Arc<Desk>,
    certificates: watch::Receiver<Certificates>,
}

struct Desk {
    reviews: Reviews,
    metrics: Arc<Metrics>,
    identity: String,
    progress: Arc<watch::Sender<Progress>>,
    stored: Stored,
    bodies: Semaphore,
    /// When the log was last told of a request without the token.
    told: Mutex<Option<Instant>>,
}

impl Server {
    pub(super) fn new(
        reviews: Reviews,
        metrics: Arc<Metrics>,
        certificates: watch::Receiver<Certificates>,
        identity: String,
        progress: Arc<watch::Sender<Progress>>,
        stored: Stored,
    ) -> Self {
        let (bodies, told) = (Semaphore::new(MOST_BODIES), Mutex::default());
        Self { desk: Arc::new(Desk { reviews, metrics, identity, progress, stored, bodies, told }), certificates }
    }

    pub(super) async fn run(self, listener: TcpListener) {
        let Self { desk, certificates } = self;
        let open = move |stream| TlsAcceptor::from(Arc::clone(&certificates.borrow().tls)).accept(stream);
        connections::serve(listener, open, move |request, trust| Arc::clone(&desk).answer(request, trust)).await;
    }
}

/// What is not answered by a review: the API server puts the text into its own error, and does as the failure policy
/// says.
struct Failure(StatusCode, String);

impl Desk {
    async fn answer(self: Arc<Self>, request: Request<Incoming>, trust: Trust) -> Response<Full<Bytes>> {
        let begun = Instant::now();
        let time = patience::of(request.uri().query());
        let by_when = begun + time;
        let proven = tokio::time::timeout_at(by_when, self.proven(&request)).await;
        let Some((webhook, review)) = proven.ok().flatten() else {
            self.metrics.review("unknown", "unproven", begun.elapsed());
            self.tell_of_unproven(begun);
            return not_found();
        };
        trust.grant();
        let answered = tokio::time::timeout_at(by_when, self.review(review, request, by_when)).await;
        let answered = answered.unwrap_or_else(|_| {
            Err(Failure(StatusCode::GATEWAY_TIMEOUT, format!("the webhook did not answer within {time:?}")))
        });
        let (verdict, response) = match answered {
            Ok(answer) => {
                let verdict = if answer.allowed { "allowed" } else { "denied" };
                (verdict, json(&answer.into_review()))
            }
            Err(Failure(status, words)) => {
                tracing::warn!(webhook, %status, words, "failed to answer an admission review");
                // As plain text, it is shown to the person.
                let mut response = answer_with("text/plain", words.into());
                *response.status_mut() = status;
                ("failed", response)
            }
        };
        self.metrics.review(webhook, verdict, begun.elapsed());
        response
    }

    /// The webhook that is asked, if it is the API server that asks.
    async fn proven(&self, request: &Request<Incoming>) -> Option<(&'static str, &Review)> {
        let (token, name) = request.uri().path().strip_prefix('/')?.split_once('/')?;
        let (path, review) = self.reviews.0.iter().find(|(path, _)| path.strip_prefix('/') == Some(name))?;
        let accepted = request.method() == Method::POST && self.stored.accept(&token.parse().ok()?).await;
        accepted.then_some((&path[1..], review))
    }

    fn tell_of_unproven(&self, now: Instant) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| now >= told + TELL_EVERY) {
            *told = Some(now);
            tracing::warn!("refused a request to the webhooks that did not come from the API server");
        }
    }

    async fn review(
        &self,
        review: &Review,
        request: Request<Incoming>,
        by_when: Instant,
    ) -> Result<AdmissionResponse, Failure> {
        let room = self.bodies.acquire().await.expect("the semaphore is never closed");
        let body =
            tokio::time::timeout(BODY_DEADLINE, Limited::new(request.into_body(), LARGEST_REVIEW).collect()).await;
        let late = |_| {
            Failure(
                StatusCode::REQUEST_TIMEOUT,
                format!("the admission review did not arrive within {BODY_DEADLINE:?}"),
            )
        };
        let body = body.map_err(late)?.map_err(|error| {
            let status = match error.is::<LengthLimitError>() {
                true => StatusCode::PAYLOAD_TOO_LARGE,
                false => StatusCode::BAD_REQUEST,
            };
            Failure(status, format!("failed to read the admission review: {error}"))
        })?;
        let body = body.to_bytes();
        let ask = parse(&body).map_err(|error| Failure(StatusCode::BAD_REQUEST, error))?;
        drop((body, room));
        if let Some(of) = probe::of(&ask) {
            if of == self.identity {
                self.progress.send_modify(|progress| progress.answered = true);
            }
            return Ok(probe::answer(&ask, &self.identity));
        }
        let panicked = |_| Failure(StatusCode::INTERNAL_SERVER_ERROR, "the webhook panicked".to_owned());
        AssertUnwindSafe(review(ask, by_when)).catch_unwind().await.map_err(panicked)
    }
}

fn parse(body: &[u8]) -> Result<Ask, String> {
    let review: AdmissionReview<DynamicObject> =
        serde_json::from_slice(body).map_err(|error| format!("the request is not an AdmissionReview: {error}"))?;
    review.try_into().map_err(|_| "the AdmissionReview has no request".to_owned())
}

fn json(review: &AdmissionReview<DynamicObject>) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec(review).expect("a review made of our own types is JSON");
    answer_with("application/json", body.into())
}

/// Tells nothing.
fn not_found() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

fn answer_with(content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}
