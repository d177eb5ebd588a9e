//! For tests: an API server in this process that refuses what is asked of one resource, and a lease that is held, or
//! lost in the middle of a look.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use boathook_runtime::{
    Clock, Lease, Metrics, Reporter,
    lease::{self, candidate},
};
use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde_json::json;
use tower::service_fn;

use crate::webhooks::test_asks::client_with_kinds;

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) lease: Lease,
    pub(crate) reporter: Reporter,
}

/// Whoever writes something of this resource is told that a quota forbids it.
pub(crate) async fn world(refused: &'static str) -> World {
    let real = client_with_kinds().await;
    let server = real.clone();
    let asked = move |request: Request<Body>| {
        let server = server.clone();
        let is_refused = request.method() != Method::GET && request.uri().path().contains(&format!("/{refused}"));
        async move { if is_refused { Ok(answer(403, "Forbidden", "exceeded quota")) } else { server.send(request).await } }
    };
    world_of(real, Client::new(service_fn(asked), "default")).await
}

/// A lease of the API server behind `real` that is held, for a controller that is given `client`.
pub(crate) async fn world_of(real: Client, client: Client) -> World {
    let (lease, _) = expiring_lease(&real).await;
    World { client, lease, reporter: reporter(real) }
}

fn reporter(client: Client) -> Reporter {
    let (reporter, telling) = Reporter::new(client, "test", "me", Arc::new(Metrics::default()));
    tokio::spawn(telling);
    reporter
}

/// How long a lease lasts here: longer than a test, so that no renewal comes in between.
const LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// A world whose lease expires as soon as the first write to a path that ends so has succeeded.
pub(crate) async fn world_losing_lease(path: &'static str) -> World {
    world_losing_lease_of(client_with_kinds().await, path).await
}

/// The same, of this API server.
pub(crate) async fn world_losing_lease_of(real: Client, path: &'static str) -> World {
    let (lease, time) = expiring_lease(&real).await;
    let reporter = reporter(real.clone());
    let asked = move |request: Request<Body>| {
        let (real, time) = (real.clone(), Arc::clone(&time));
        let is_last = request.method() != Method::GET && request.uri().path().ends_with(path);
        async move {
            let answer = real.send(request).await;
            if is_last {
                time.store(2 * LEASE.as_secs(), Ordering::SeqCst);
            }
            answer
        }
    };
    World { client: Client::new(service_fn(asked), "default"), lease, reporter }
}

/// A clock, and the hand that sets it, in seconds.
pub(crate) fn clock() -> (Clock, Arc<AtomicU64>) {
    let hand = Arc::<AtomicU64>::default();
    let seconds = Arc::clone(&hand);
    (Clock::new(move || Duration::from_secs(seconds.load(Ordering::SeqCst))), hand)
}

/// A lease that is held, and the clock by which it expires, in seconds.
async fn expiring_lease(client: &Client) -> (Lease, Arc<AtomicU64>) {
    let (clock, time) = clock();
    let options = lease::Options { duration: LEASE, renew_every: LEASE / 2, ..lease::Options::new("default", "me") };
    let (candidate, lease) = candidate(client.clone(), options, clock);
    tokio::spawn(candidate.run(std::future::pending()));
    tokio::time::timeout(Duration::from_secs(600), lease.led()).await.expect("the lease is free");
    (lease, time)
}

/// What an API server says that does not do what it is asked for.
pub(crate) fn answer(code: u16, reason: &str, message: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
        "message": message});
    Response::builder().status(code).body(Body::from(status.to_string().into_bytes())).unwrap()
}
