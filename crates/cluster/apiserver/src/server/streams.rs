//! Sessions over plain HTTP on loopback, each behind a token that is good once: where a container runtime's exec sends
//! its caller.

use std::io;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::net::TcpListener;

use super::connection;
use crate::answer::{self, Body};
use crate::channels;
use crate::sessions::Opening;

/// A bound port that is not served yet.
pub struct Streams(TcpListener);

impl Streams {
    pub async fn bind() -> io::Result<Self> {
        Ok(Self(TcpListener::bind(("127.0.0.1", 0)).await?))
    }

    /// What `/exec/TOKEN` follows.
    pub fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}", self.0.local_addr()?))
    }

    /// Serves until it is dropped. `redeem` tells what a token stands for.
    pub async fn serve(self, redeem: impl Fn(&str) -> Option<Opening> + Send + Sync + 'static) {
        let redeem = Arc::new(redeem);
        loop {
            let Ok((stream, _)) = self.0.accept().await else {
                // Out of file descriptors, say: the next one may succeed.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let redeem = Arc::clone(&redeem);
            tokio::spawn(connection(stream, move |request| std::future::ready(open(&*redeem, request))));
        }
    }
}

fn open(redeem: &impl Fn(&str) -> Option<Opening>, mut request: Request<Incoming>) -> Response<Body> {
    let refused = |code, why: &str| answer::text(code, why);
    let Some(key) = channels::key(request.headers()) else {
        return refused(StatusCode::BAD_REQUEST, "a WebSocket is needed");
    };
    let Some(protocol) = channels::choose(&[channels::V4], &channels::offered(request.headers())) else {
        return refused(StatusCode::FORBIDDEN, "the protocol must be v4.channel.k8s.io");
    };
    let opening = request.uri().path().strip_prefix("/exec/").and_then(redeem);
    let Some(opening) = opening else {
        return refused(StatusCode::NOT_FOUND, "there is no such command, or it was fetched already");
    };
    channels::switch(hyper::upgrade::on(&mut request), &key, protocol, opening)
        .unwrap_or_else(|status| answer::refusal(&status))
}
