//! The API server on the wire: over TLS on loopback, and over a pipe for clients in this process. Both speak the same
//! HTTP, so nothing can tell them apart.

mod in_process;
mod listener;
mod streams;

use std::convert::Infallible;
use std::sync::Arc;

use futures::FutureExt;
use http::{Request as HttpRequest, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answer::{self, Body};
use crate::api::{Api, Request};
use crate::body;

pub use in_process::client;
pub use listener::{Listener, ServeError};
pub use streams::Streams;

/// Serves one connection until it ends.
async fn connection<F>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answer: impl Fn(HttpRequest<Incoming>) -> F + Send,
) where
    F: Future<Output = Response<Body>> + Send,
{
    let service = service_fn(move |request| answer(request).map(Ok::<_, Infallible>));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // A client that goes in the middle is no error of ours.
    let _ = served.await;
}

async fn serve(api: Arc<Api>, mut request: HttpRequest<Incoming>) -> Response<Body> {
    let upgrades = request.headers().contains_key(http::header::UPGRADE);
    let upgrade = upgrades.then(|| hyper::upgrade::on(&mut request));
    let (parts, incoming) = request.into_parts();
    let body = match body::read(incoming).await {
        Ok(body) => body,
        Err(status) => return answer::refusal(&status),
    };
    let request = Request {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body,
        upgrade,
    };
    api.handle(request).await
}
