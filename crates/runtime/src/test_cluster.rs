//! For tests: an API server in this process, and a line to it that can be disturbed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use boathook_apiserver::{
    access::{Tokens, User},
    api::Api as Server,
    server,
    store::Store,
};
use http::{Method, Request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};

/// A client with every right, of a cluster of its own.
pub(crate) async fn client() -> Client {
    let admin = User::authenticated("admin", &["system:masters"]);
    let tokens = Tokens::new(&[7; 32], [("admin".to_owned(), admin)]);
    server::client(Server::new(Store::in_memory(), tokens).await.unwrap(), "admin", "test")
}

/// The same, with the kinds of Boathook.
pub(crate) async fn client_with_kinds() -> Client {
    let client = client().await;
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in boathook_api::crds::all() {
        let name = crd.metadata.name.clone().unwrap();
        crds.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(crd)).await.unwrap();
    }
    client
}

/// What goes wrong on the line.
#[derive(Default)]
pub(crate) struct Trouble {
    /// So many writes are carried out, and their answers lost.
    pub(crate) lost_answers: AtomicUsize,
    /// So many requests never arrive.
    pub(crate) lost_requests: AtomicUsize,
    /// Watches are never answered.
    pub(crate) blind: bool,
}

impl Trouble {
    fn strikes(counter: &AtomicUsize) -> bool {
        counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

/// A client whose requests and answers get lost as `trouble` says.
pub(crate) fn disturbed(client: Client, trouble: Arc<Trouble>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, trouble) = (client.clone(), Arc::clone(&trouble));
        async move {
            let writes = request.method() != Method::GET;
            if Trouble::strikes(&trouble.lost_requests) {
                return Err(tower::BoxError::from("the request is lost"));
            }
            if trouble.blind && request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                std::future::pending::<()>().await;
            }
            let answer = client.send(request).await?;
            if writes && Trouble::strikes(&trouble.lost_answers) {
                return Err("the answer is lost".into());
            }
            Ok(answer)
        }
    });
    Client::new(service, "default")
}
