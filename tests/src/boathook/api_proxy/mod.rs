//! A proxy between a controller and the API server that understands what is asked: it counts what the controller
//! writes, and at a write that a scenario chooses it stands in the way.
//!
//! The controller speaks plain HTTP to it on the loopback, with a token of its own, which is passed on. Streams are
//! carried through. What never arrives is never answered either: whoever sent it is killed meanwhile.

mod book;

use std::{
    convert::Infallible,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Limited};
use hyper::{
    Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn, upgrade,
    upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use kube::{
    Client, Config,
    client::Body,
    config::{AuthInfo, Kubeconfig},
};
use tokio::{
    io::{copy, sink, split},
    net::TcpListener,
    sync::watch,
    task::JoinSet,
};

use book::Book;
pub use book::{Cut, Fate};

use crate::DEADLINE;

/// The API server takes objects of up to 3 MiB.
const LARGEST_REQUEST: usize = 8 << 20;

/// Passes on while it lives; dropped, it cuts every connection.
pub struct ApiProxy {
    desk: Desk,
    port: u16,
    connections: JoinSet<()>,
}

#[derive(Clone)]
struct Desk {
    upstream: Client,
    book: Arc<watch::Sender<Book>>,
    streams: Arc<Mutex<JoinSet<()>>>,
}

impl ApiProxy {
    /// Opens one to the API server of this config, and leads the kubeconfig through it.
    pub(super) async fn to(mut config: Config, kubeconfig: &mut Kubeconfig) -> Result<Self> {
        // Whoever asks says itself who it is.
        config.auth_info = AuthInfo::default();
        let upstream = Client::try_from(config).context("failed to make a client for the proxy")?;
        let desk = Desk { upstream, book: Arc::default(), streams: Arc::default() };
        let mut proxy = Self { desk, port: 0, connections: JoinSet::new() };
        proxy.open().await?;
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(format!("http://127.0.0.1:{}", proxy.port));
        }
        Ok(proxy)
    }

    /// From now on the API server cannot be reached: every connection is cut, and new ones are refused.
    pub async fn close(&mut self) {
        self.connections.shutdown().await;
        let streams = std::mem::take(&mut *self.desk.streams());
        { streams }.shutdown().await;
    }

    pub async fn open(&mut self) -> Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await.context("failed to bind the proxy")?;
        self.port = listener.local_addr()?.port();
        self.connections.spawn(serve(listener, self.desk.clone()));
        Ok(())
    }

    /// Counts from here on, and stands in the way of this one.
    pub fn cut(&self, cut: Cut) {
        self.desk.book.send_modify(|book| *book = Book { cut: Some(cut), ..Book::default() });
    }

    /// Counts from here on.
    pub fn count(&self) {
        self.desk.book.send_modify(|book| *book = Book::default());
    }

    /// Of the next stream that is opened nothing comes back, but what runs at its other end does run, to its end.
    pub fn lose_next_stream(&self) {
        self.desk.book.send_modify(|book| book.lose_next_stream = true);
    }

    /// What was written since it counts: method and object, without group and namespace. Not the lease, not Events, not
    /// what webhooks need, and nothing that only asks.
    pub fn writes(&self) -> Vec<String> {
        self.desk.book.borrow().writes.clone()
    }

    /// Waits until the chosen write has come as far as it was to.
    pub async fn cut_made(&self) -> Result<()> {
        let made = tokio::time::timeout(DEADLINE, self.desk.in_the_book(|book| book.cut_made)).await;
        made.with_context(|| format!("the chosen write was not made: {:#?}", self.writes()))
    }

    /// Lets the chosen write arrive.
    pub fn release(&self) {
        self.desk.book.send_modify(|book| book.released = true);
    }

    /// Waits until nothing has been written for this long.
    pub async fn quiet_for(&self, time: Duration) -> Result<()> {
        let mut book = self.desk.book.subscribe();
        let quiet = async { while tokio::time::timeout(time, book.changed()).await.is_ok() {} };
        let waited = tokio::time::timeout(DEADLINE, quiet).await;
        ensure!(waited.is_ok(), "it writes and writes: {:#?}", self.writes());
        Ok(())
    }
}

async fn serve(listener: TcpListener, desk: Desk) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let desk = desk.clone();
        connections.spawn(async move {
            let service = service_fn(|request| desk.handle(request));
            // Its end, in order or not, is all there is to say about a connection.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        });
    }
}

impl Desk {
    async fn handle(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let mut fate = None;
        self.book.send_if_modified(|book| {
            let so_far = book.writes.len();
            fate = book.enter(request.method(), request.uri().path());
            book.writes.len() > so_far
        });
        match fate {
            Some(Fate::NeverArrives) => std::future::pending().await,
            Some(Fate::Late) => self.in_the_book(|book| book.released).await,
            Some(Fate::AnswerLost) | None => {}
        }
        let answer = self.pass_on(request).await;
        if fate == Some(Fate::AnswerLost) {
            self.book.send_modify(Book::close);
            std::future::pending().await
        }
        Ok(answer.unwrap_or_else(|error| {
            let mut answer = Response::new(Body::from(format!("{error:#}").into_bytes()));
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        }))
    }

    async fn pass_on(&self, mut request: Request<Incoming>) -> Result<Response<Body>> {
        let near = upgrade::on(&mut request);
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, LARGEST_REQUEST).collect().await.map_err(anyhow::Error::from_boxed)?;
        let request = Request::from_parts(parts, Body::from(body.to_bytes()));
        let mut answer = self.upstream.send(request).await.context("the API server did not answer")?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let far = upgrade::on(&mut answer);
            let mut lost = false;
            self.book.send_if_modified(|book| {
                lost = std::mem::take(&mut book.lose_next_stream);
                false
            });
            self.streams().spawn(carry(near, far, lost));
        }
        Ok(answer)
    }

    fn streams(&self) -> MutexGuard<'_, JoinSet<()>> {
        // Nothing panics while holding it but for want of memory.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn in_the_book(&self, holds: impl FnMut(&Book) -> bool) {
        // Its sender is here, so it does not fail.
        let _ = self.book.subscribe().wait_for(holds).await;
    }
}

/// Both ends are closed as soon as one is.
async fn carry(near: OnUpgrade, far: OnUpgrade, lost: bool) {
    let (Ok(near), Ok(far)) = (near.await, far.await) else { return };
    let (mut from_near, mut to_near) = split(TokioIo::new(near));
    let (mut from_far, mut to_far) = split(TokioIo::new(far));
    let back = async {
        match lost {
            true => copy(&mut from_far, &mut sink()).await,
            false => copy(&mut from_far, &mut to_near).await,
        }
    };
    tokio::select! {
        _ = copy(&mut from_near, &mut to_far) => {}
        _ = back => {}
    }
}
