//! A `kube::Client` for this process: HTTP over a pipe in memory, a connection a request. Everything works over it
//! that works over a socket, exec too, and fast tests need no port.

use std::sync::Arc;

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use kube::client::Body as ClientBody;

use super::{connection, serve};
use crate::api::Api;

/// Bytes on their way that neither side has taken: a page or two of a list.
const PIPE: usize = 64 * 1024;

/// A client that speaks to this server as the bearer of `token`. What it writes is known as the program's.
pub fn client(api: Arc<Api>, token: &str, program: &'static str) -> kube::Client {
    let bearer = format!("Bearer {token}");
    let service = tower::service_fn(move |mut request: Request<ClientBody>| {
        let (api, bearer) = (Arc::clone(&api), bearer.clone());
        request.headers_mut().entry(header::USER_AGENT).or_insert(HeaderValue::from_static(program));
        async move { send(api, &bearer, request).await }
    });
    kube::Client::new(service, "default")
}

async fn send(
    api: Arc<Api>,
    bearer: &str,
    mut request: Request<ClientBody>,
) -> Result<Response<Incoming>, tower::BoxError> {
    request.headers_mut().entry(header::AUTHORIZATION).or_insert(bearer.parse()?);
    request.headers_mut().entry(header::HOST).or_insert(HeaderValue::from_static("boathook"));
    let (ours, theirs) = tokio::io::duplex(PIPE);
    // Ends when either end of the pipe is dropped.
    tokio::spawn(connection(theirs, move |request| serve(Arc::clone(&api), request)));
    let (mut sender, carrier) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await?;
    tokio::spawn(carrier.with_upgrades());
    Ok(sender.send_request(request).await?)
}
