//! What others ask a process over plain HTTP: `/metrics`, `/healthz`, `/readyz`.

use std::{collections::BTreeMap, future, net::SocketAddr, sync::Arc};

use http_body_util::Full;
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header};
use snafu::{ResultExt, Snafu};
use tokio::net::TcpListener;

use crate::{connections, metrics::Metrics};

#[derive(Debug, Snafu)]
#[snafu(display("failed to listen for metrics and health checks on `{address}`"))]
pub struct Error {
    address: SocketAddr,
    source: std::io::Error,
}

type Page = Arc<dyn Fn() -> (StatusCode, String) + Send + Sync>;

/// What is answered at which path.
#[derive(Clone, Default)]
pub struct Pages(BTreeMap<&'static str, Page>);

impl Pages {
    /// `/metrics`; `refresh` is called before they are written.
    pub fn metrics(mut self, metrics: Arc<Metrics>, refresh: impl Fn() + Send + Sync + 'static) -> Self {
        let page = move || {
            refresh();
            (StatusCode::OK, metrics.render())
        };
        self.0.insert("/metrics", Arc::new(page));
        self
    }

    /// `/healthz` is well while the process answers; whoever notices the death of a part ends it. `/readyz` is well
    /// when `ready` says so; its error tells what is missing.
    pub fn health(mut self, ready: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.0.insert("/healthz", Arc::new(|| (StatusCode::OK, "ok\n".to_owned())));
        let page = move || match ready() {
            Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
            Err(missing) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {missing}\n")),
        };
        self.0.insert("/readyz", Arc::new(page));
        self
    }

    /// Listens. Returns where, and what is to be run: it serves until it is dropped.
    pub async fn bind(self, address: SocketAddr) -> Result<(SocketAddr, impl Future<Output = ()> + Send), Error> {
        let listener = TcpListener::bind(address).await.context(Snafu { address })?;
        let bound = listener.local_addr().context(Snafu { address })?;
        // Anyone may ask here, so no connection is trusted: each ends with its answer.
        let answer = move |request: Request<Incoming>, _| {
            let mut response = self.answer(&request);
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
            future::ready(response)
        };
        Ok((bound, connections::serve(listener, |stream| future::ready(Ok(stream)), answer)))
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<Full<hyper::body::Bytes>> {
        let page = self.0.get(request.uri().path());
        let (status, text) = match page.filter(|_| [Method::GET, Method::HEAD].contains(request.method())) {
            Some(page) => page(),
            None => (StatusCode::NOT_FOUND, "not found\n".to_owned()),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        let content_type = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    async fn get(address: SocketAddr, path: &str) -> String {
        let ask = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.take(1 << 20).read_to_string(&mut answer).await.unwrap();
            answer
        };
        tokio::time::timeout(Duration::from_secs(60), ask).await.expect("no answer")
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_others_out() {
        let (address, serving) =
            Pages::default().health(|| Ok(())).bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let serving = tokio::spawn(serving);
        let mut silent = vec![];
        for _ in 0..300 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
            silent.push(stream);
        }
        assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        serving.abort();
    }

    #[tokio::test]
    async fn it_tells_its_figures_and_whether_it_is_ready() {
        let ready = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ready);
        let pages = Pages::default()
            .metrics(Arc::default(), || {})
            .health(move || told.load(Ordering::SeqCst).then_some(()).ok_or("the webhooks".to_owned()));
        let (address, serving) = pages.bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let serving = tokio::spawn(serving);
        assert!(get(address, "/metrics").await.contains("\nboathook_leader 0\n"));
        assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        let not_yet = get(address, "/readyz").await;
        assert!(not_yet.starts_with("HTTP/1.1 503") && not_yet.contains("the webhooks"), "{not_yet}");
        ready.store(true, Ordering::SeqCst);
        assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(get(address, "/else").await.starts_with("HTTP/1.1 404"));
        serving.abort();
    }
}
