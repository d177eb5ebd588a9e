//! Custom kinds through a client in the same process: as their definitions come, change and go.

// All of it is a test: an unwrap that fails is the test's failure.
#![allow(clippy::unwrap_used)]

use boathook_apiserver::access::{Tokens, User};
use boathook_apiserver::api::Api as Server;
use boathook_apiserver::server;
use boathook_apiserver::store::Store;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOATS: &str = "/apis/harbour.dev/v1/namespaces/default/boats";

async fn client() -> Client {
    let admin = User::authenticated("admin", &["system:masters"]);
    let tokens = Tokens::new(&[7; 32], [("admin".to_owned(), admin)]);
    server::client(Server::new(Store::in_memory(), tokens).await.unwrap(), "admin", "test")
}

/// The code and the body of the answer.
async fn ask(client: &Client, request: &str, body: Value) -> (u16, Value) {
    let (method, path) = request.split_once(' ').unwrap();
    let form = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", form);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = client.send(request.body(body.into()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

fn version(name: &str, storage: bool, fields: Value) -> Value {
    let spec = json!({"type": "object", "properties": fields});
    json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
}

fn definition(plural: &str, versions: Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.harbour.dev")},
        "spec": {"group": "harbour.dev", "scope": "Namespaced", "names": {"plural": plural, "kind": "Boat"},
            "versions": versions}})
}

fn boat(name: &str, metadata: Value, spec: Value) -> Value {
    let mut boat = json!({"apiVersion": "harbour.dev/v1", "kind": "Boat", "metadata": metadata, "spec": spec});
    boat["metadata"]["name"] = name.into();
    boat
}

#[tokio::test]
async fn a_definition_goes_with_the_last_of_its_objects() {
    let client = client().await;
    let versions = json!([version("v1", true, json!({}))]);
    assert_eq!(ask(&client, &format!("POST {DEFINITIONS}"), definition("boats", versions)).await.0, 201);
    let held = boat("held", json!({"finalizers": ["harbour.dev/anchor"]}), json!({}));
    for boat in [held, boat("free", json!({}), json!({}))] {
        assert_eq!(ask(&client, &format!("POST {BOATS}"), boat).await.0, 201);
    }
    let crd = format!("{DEFINITIONS}/boats.harbour.dev");
    assert_eq!(ask(&client, &format!("DELETE {crd}"), Value::Null).await.0, 200);
    let (code, waiting) = ask(&client, &format!("GET {crd}"), Value::Null).await;
    assert_eq!((code, &waiting["status"]["conditions"][2]["type"]), (200, &json!("Terminating")));
    assert_eq!(ask(&client, &format!("GET {BOATS}/free"), Value::Null).await.0, 404);
    assert_eq!(ask(&client, &format!("POST {BOATS}"), boat("late", json!({}), json!({}))).await.0, 403);
    let released = json!({"metadata": {"finalizers": null}});
    assert_eq!(ask(&client, &format!("PATCH {BOATS}/held"), released).await.0, 200);
    assert_eq!(ask(&client, &format!("GET {crd}"), Value::Null).await.0, 404);
    assert_eq!(ask(&client, &format!("GET {BOATS}"), Value::Null).await.0, 404);
}

#[tokio::test]
async fn an_object_is_shown_in_the_version_asked_for_with_defaults_that_came_later() {
    let client = client().await;
    let old = json!({"size": {"type": "integer"}, "colour": {"type": "string"}});
    let newer = json!({"size": {"type": "integer"}});
    let versions = json!([version("v1", true, old), version("v2", false, newer.clone())]);
    assert_eq!(ask(&client, &format!("POST {DEFINITIONS}"), definition("boats", versions)).await.0, 201);
    let spec = json!({"size": 3, "colour": "red"});
    assert_eq!(ask(&client, &format!("POST {BOATS}"), boat("ann", json!({}), spec.clone())).await.0, 201);
    let (_, shown) = ask(&client, "GET /apis/harbour.dev/v2/namespaces/default/boats/ann", Value::Null).await;
    assert_eq!((&shown["apiVersion"], &shown["spec"]), (&json!("harbour.dev/v2"), &json!({"size": 3})));
    let defaulted = json!({"size": {"type": "integer"}, "colour": {"type": "string"},
        "sails": {"type": "integer", "default": 2}});
    let versions = json!({"spec": {"versions": [version("v1", true, defaulted), version("v2", false, newer)]}});
    assert_eq!(ask(&client, &format!("PATCH {DEFINITIONS}/boats.harbour.dev"), versions).await.0, 200);
    let (_, shown) = ask(&client, &format!("GET {BOATS}/ann"), Value::Null).await;
    assert_eq!(shown["spec"], json!({"size": 3, "colour": "red", "sails": 2}));
}

#[tokio::test]
async fn a_definition_is_served_when_its_names_are_free() {
    let client = client().await;
    for plural in ["boats", "ships"] {
        let versions = json!([version("v1", true, json!({}))]);
        assert_eq!(ask(&client, &format!("POST {DEFINITIONS}"), definition(plural, versions)).await.0, 201);
    }
    let ships = "GET /apis/harbour.dev/v1/namespaces/default/ships";
    assert_eq!(ask(&client, ships, Value::Null).await.0, 404);
    assert_eq!(ask(&client, &format!("DELETE {DEFINITIONS}/boats.harbour.dev"), Value::Null).await.0, 200);
    assert_eq!(ask(&client, ships, Value::Null).await.0, 200);
}

#[tokio::test]
async fn what_would_stop_every_write_or_mean_nothing_is_refused() {
    let client = client().await;
    let hook = json!({"metadata": {"name": "a"}, "webhooks": [{"name": "a", "timeoutSeconds": 31,
        "rules": [{"operations": ["READ"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}]});
    let path = "POST /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let (code, refused) = ask(&client, path, hook).await;
    let message = refused["message"].as_str().unwrap();
    assert_eq!(code, 422);
    for part in ["webhooks[0].name", "operations[0]", "timeoutSeconds", "sideEffects", "clientConfig"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    let role = json!({"metadata": {"name": "a"}, "rules": [{"verbs": ["get"]}]});
    let path = "POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let (code, refused) = ask(&client, path, role).await;
    assert_eq!((code, &refused["details"]["causes"][0]["field"]), (422, &json!("rules[0].apiGroups")));
}
