//! For tests: an API server in this process that refuses what is asked of one resource, and a lease that is held.

use std::sync::Arc;

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
    let running_for = lease::Options::new("default", "me");
    let (candidate, lease) = candidate(real.clone(), running_for, Clock::of_the_machine());
    tokio::spawn(candidate.run(std::future::pending()));
    lease.led().await;
    let (reporter, telling) = Reporter::new(real.clone(), "test", "me", Arc::new(Metrics::default()));
    tokio::spawn(telling);
    let asked = move |request: Request<Body>| {
        let real = real.clone();
        let is_refused = request.method() != Method::GET && request.uri().path().contains(&format!("/{refused}"));
        async move { if is_refused { Ok(answer(403, "Forbidden", "exceeded quota")) } else { real.send(request).await } }
    };
    World { client: Client::new(service_fn(asked), "default"), lease, reporter }
}

/// What an API server says that does not do what it is asked for.
pub(crate) fn answer(code: u16, reason: &str, message: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
        "message": message});
    Response::builder().status(code).body(Body::from(status.to_string().into_bytes())).unwrap()
}
