//! For tests: an API server, and what it asks.

use std::{fmt::Debug, sync::Arc};

use boathook_api::words::CHECKED_SINCE;
use boathook_apiserver::{
    access::{Tokens, User},
    api::Api as Server,
    server,
    sessions::Sessions,
    store::Store,
};
use boathook_runtime::webhook::Ask;
use k8s_openapi::{
    api::admissionregistration::v1::{ValidatingWebhookConfiguration, WebhookClientConfig},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// A client of a cluster of its own, as the user `admin`.
pub(super) async fn client() -> Client {
    server::client(new_server().await, "admin", "test")
}

async fn new_server() -> Arc<Server> {
    let admin = User::authenticated("admin", &["system:masters"]);
    let tokens = Tokens::new(&[7; 32], [("admin".to_owned(), admin)]);
    Server::new(Store::in_memory(), tokens).await.unwrap()
}

/// The same, with the kinds of Boathook.
pub(crate) async fn client_with_kinds() -> Client {
    with_kinds(client().await).await
}

/// The same, with containers that commands can be run in.
pub(crate) async fn client_with_containers(containers: Arc<dyn Sessions>) -> Client {
    let server = new_server().await;
    server.set_sessions(containers);
    with_kinds(server::client(server, "admin", "test")).await
}

async fn with_kinds(client: Client) -> Client {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in boathook_api::crds::all() {
        crds.create(&PostParams::default(), &crd).await.unwrap();
    }
    client
}

/// Writes down that the webhooks have answered since long before anything in this cluster was created.
pub(crate) async fn webhooks_answered(client: &Client) {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let new = serde_json::from_value(json!({"metadata": {"name": "boathook"}})).unwrap();
    let installed = configurations.create(&PostParams::default(), &new).await.unwrap();
    let since = format!("{}/2020-01-01T00:00:00Z", installed.uid().unwrap());
    let since = Patch::Merge(json!({"metadata": {"annotations": {CHECKED_SINCE: since}}}));
    configurations.patch("boathook", &PatchParams::default(), &since).await.unwrap();
}

/// Installs the webhooks that change objects, for a Boathook of this user name. None of them answers.
pub(super) async fn install_unanswered(client: &Client, own: &str) {
    let configuration = boathook_install::webhooks::mutating(own, nowhere);
    Api::all(client.clone()).create(&PostParams::default(), &configuration).await.unwrap();
}

/// The same, with the webhooks that validate objects.
pub(super) async fn install_unanswered_validating(client: &Client, own: &str) {
    let configuration = boathook_install::webhooks::validating(own, nowhere);
    Api::all(client.clone()).create(&PostParams::default(), &configuration).await.unwrap();
}

/// No server listens there.
fn nowhere(path: &str) -> WebhookClientConfig {
    WebhookClientConfig { url: Some(format!("https://127.0.0.1:1{path}")), ..WebhookClientConfig::default() }
}

/// The webhook without whose answer the write was refused.
pub(super) fn unanswered<T: Debug>(written: kube::Result<T>) -> Option<String> {
    let error = written.err()?.to_string();
    let name = error.split('"').find(|part| part.trim_end_matches('\\').ends_with(".boathook.dev"));
    Some(name.unwrap_or_else(|| panic!("{error}")).trim_end_matches('\\').to_owned())
}

/// About this change of an object in the namespace `default`.
pub(super) fn ask(operation: &str, object: Option<Value>, old_object: Option<Value>) -> Ask {
    let kind = json!({"group": "", "version": "v1", "kind": "Any"});
    let resource = json!({"group": "", "version": "v1", "resource": "any"});
    let ask = json!({"uid": "1", "kind": kind, "resource": resource, "namespace": "default", "operation": operation,
        "userInfo": {}, "object": object, "oldObject": old_object});
    serde_json::from_value(ask).unwrap()
}

/// About a new one of these.
pub(super) fn ask_about(resource: &str, object: Value) -> Ask {
    let mut ask = ask("CREATE", Some(object), None);
    resource.clone_into(&mut ask.resource.resource);
    ask
}
