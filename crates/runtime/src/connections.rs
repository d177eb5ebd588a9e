//! A listener's connections, each served on its own: one that breaks, stalls or lies harms nobody else.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

/// More wait until one of these has ended.
const MOST_CONNECTIONS: usize = 256;

/// Who has connected has this long for the handshake.
const GREETING_DEADLINE: Duration = Duration::from_secs(10);

/// How long a connection may be idle, or a request's head take. Go's clients, the API server among them, close idle
/// ones after 90 s: if we did it first, a request that is just being sent would fail.
const IDLE_DEADLINE: Duration = Duration::from_secs(120);

/// How long to wait when the system has no more connections to give.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is dropped, and the connections with it. `open` makes a stream of a connection, maybe by a
/// handshake.
pub(crate) async fn serve<S, O, A>(
    listener: TcpListener,
    open: impl Fn(TcpStream) -> O,
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    O: Future<Output = io::Result<S>> + Send + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send,
{
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.expect("the semaphore is never closed");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let (opening, answer) = (open(stream), answer.clone());
        connections.spawn(async move {
            let _slot = slot;
            let Ok(Ok(stream)) = tokio::time::timeout(GREETING_DEADLINE, opening).await else { return };
            let service = service_fn(move |request| {
                let answer = answer(request);
                async { Ok::<_, Infallible>(answer.await) }
            });
            // A client that goes in the middle knows it best itself.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(IDLE_DEADLINE)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
