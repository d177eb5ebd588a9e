//! A listener's connections, each served on its own: one that breaks, stalls or lies harms no other.
//!
//! When there are too many, the oldest is closed that has not sent a request of the API server. So silent or slow clients
//! cannot keep the API server, a kubelet or Prometheus out.

use std::{
    convert::Infallible,
    future, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

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
    task::{AbortHandle, JoinSet},
};

/// One more closes the oldest that is not trusted.
const MOST_CONNECTIONS: usize = 256;

/// How long a connection may last without being trusted, and how long it may be idle then, or a request's head take. Go's
/// clients, the API server among them, close idle ones after 90 s: if we did it first, a request that is just being sent
/// would fail.
const IDLE_DEADLINE: Duration = Duration::from_secs(120);

/// What a request's head may take in memory; a body is read in pieces of at most this.
const LARGEST_HEAD: usize = 32 << 10;

/// How long to wait when the system has no more connections to give.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether a connection has sent a request that only the API server can send.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust(Arc<AtomicBool>);

impl Trust {
    pub(crate) fn grant(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_granted(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Serves until it is dropped, and the connections with it. `open` makes a stream of a connection, maybe by a
/// handshake.
pub(crate) async fn serve<S, O, A>(
    listener: TcpListener,
    open: impl Fn(TcpStream) -> O,
    answer: impl Fn(Request<Incoming>, Trust) -> A + Clone + Send + 'static,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    O: Future<Output = io::Result<S>> + Send + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send,
{
    let mut connections = JoinSet::new();
    // The oldest first.
    let mut served: Vec<(AbortHandle, Trust)> = vec![];
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        served.retain(|(task, _)| !task.is_finished());
        while served.len() >= MOST_CONNECTIONS {
            match served.iter().position(|(_, trust)| !trust.is_granted()) {
                Some(oldest) => served.remove(oldest).0.abort(),
                None => {
                    connections.join_next().await;
                    served.retain(|(task, _)| !task.is_finished());
                }
            }
        }
        let (opening, answer, trust) = (open(stream), answer.clone(), Trust::default());
        let granted = trust.clone();
        let connection = async move {
            let Ok(stream) = opening.await else { return };
            let service = service_fn(move |request| {
                let answer = answer(request, granted.clone());
                async { Ok::<_, Infallible>(answer.await) }
            });
            // A failed connection is the client's to report.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(IDLE_DEADLINE)
                .max_buf_size(LARGEST_HEAD)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        };
        let end = untrusted_for_too_long(trust.clone());
        let task = connections.spawn(async move {
            tokio::select! {
                () = connection => {}
                () = end => {}
            }
        });
        served.push((task, trust));
    }
}

/// Ends when a connection has had its time and is not trusted.
async fn untrusted_for_too_long(trust: Trust) {
    tokio::time::sleep(IDLE_DEADLINE).await;
    if trust.is_granted() {
        future::pending().await
    }
}
