//! The API server through a `kube::Client` in the same process: the verbs, as clients use them.

// All of it is a test: an unwrap that fails is the test's failure.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use boathook_apiserver::access::{Tokens, User};
use boathook_apiserver::api::Api as Server;
use boathook_apiserver::server;
use boathook_apiserver::store::Store;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, Error, ResourceExt};
use serde_json::{Value, json};

/// Nothing here waits for anything but the server itself.
const DEADLINE: Duration = Duration::from_secs(600);

async fn client() -> Client {
    clients().await.0
}

/// Two clients of one server: one may do everything, jane nothing.
async fn clients() -> (Client, Client) {
    let admin = User::authenticated("admin", &["system:masters"]);
    let jane = User::authenticated("jane", &[]);
    let tokens = Tokens::new(&[7; 32], [("admin".to_owned(), admin), ("jane".to_owned(), jane)]);
    let server = Server::new(Store::in_memory(), tokens).await.unwrap();
    (server::client(server.clone(), "admin", "test"), server::client(server, "jane", "test"))
}

fn map(name: &str, data: Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
}

fn status(error: Error) -> (u16, String, String) {
    match error {
        Error::Api(status) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not an answer of the API: {other}"),
    }
}

#[tokio::test]
async fn what_is_created_is_there_once_and_can_be_read() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client().await);
    let made = maps.create(&PostParams::default(), &map("a", json!({"x": "1"}))).await.unwrap();
    assert!(made.uid().is_some() && made.resource_version().is_some() && made.creation_timestamp().is_some());
    assert_eq!(maps.get("a").await.unwrap(), made);
    let again = maps.create(&PostParams::default(), &map("a", json!({}))).await.unwrap_err();
    assert_eq!(status(again), (409, "AlreadyExists".into(), "configmaps \"a\" already exists".into()));
    let missing = status(maps.get("b").await.unwrap_err());
    assert_eq!(missing, (404, "NotFound".into(), "configmaps \"b\" not found".into()));
}

#[tokio::test]
async fn an_update_from_an_old_version_is_refused_and_a_no_op_changes_nothing() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client().await);
    let first = maps.create(&PostParams::default(), &map("a", json!({"x": "1"}))).await.unwrap();
    let mut newer = first.clone();
    newer.data = Some([("x".to_owned(), "2".to_owned())].into());
    let second = maps.replace("a", &PostParams::default(), &newer).await.unwrap();
    assert_ne!(second.resource_version(), first.resource_version());
    let (code, reason, message) = status(maps.replace("a", &PostParams::default(), &newer).await.unwrap_err());
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.contains("the object has been modified"), "{message}");
    let same = maps.replace("a", &PostParams::default(), &second).await.unwrap();
    assert_eq!(same.resource_version(), second.resource_version());
}

#[tokio::test]
async fn the_patches_change_what_they_say() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client().await);
    maps.create(&PostParams::default(), &map("a", json!({"x": "1", "y": "1"}))).await.unwrap();
    let merge = Patch::Merge(json!({"data": {"x": null, "z": "3"}}));
    let patched = maps.patch("a", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(
        patched.data.unwrap().into_iter().collect::<Vec<_>>(),
        [("y".into(), "1".into()), ("z".into(), "3".into())]
    );
    let strategic = Patch::Strategic(json!({"metadata": {"labels": {"k": "v"}}}));
    assert_eq!(maps.patch("a", &PatchParams::default(), &strategic).await.unwrap().labels()["k"], "v");
}

#[tokio::test]
async fn an_apply_creates_owns_and_conflicts() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client().await);
    let apply = |data: Value| {
        Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}))
    };
    maps.patch("a", &PatchParams::apply("one"), &apply(json!({"x": "1", "y": "1"}))).await.unwrap();
    let other = maps.patch("a", &PatchParams::apply("two"), &apply(json!({"x": "2"}))).await.unwrap_err();
    let (code, reason, message) = status(other);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"one\": .data.x");
    let forced = PatchParams::apply("two").force();
    maps.patch("a", &forced, &apply(json!({"x": "2"}))).await.unwrap();
    // What its owner no longer applies, and nobody else owns, goes.
    let left = maps.patch("a", &PatchParams::apply("one"), &apply(json!({}))).await.unwrap();
    assert_eq!(left.data.unwrap().into_iter().collect::<Vec<_>>(), [("x".into(), "2".into())]);
}

#[tokio::test]
async fn a_finalizer_holds_what_is_deleted_until_it_goes() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client().await);
    let mut held = map("a", json!({}));
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    let told = maps.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(told.metadata.deletion_timestamp.is_some());
    assert!(maps.get("a").await.is_ok());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &release).await.unwrap();
    assert_eq!(status(maps.get("a").await.unwrap_err()).0, 404);
}

#[tokio::test]
async fn a_watch_tells_every_change_after_a_list_and_follows_its_selector() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client().await);
    maps.create(&PostParams::default(), &map("before", json!({}))).await.unwrap();
    let list = maps.list(&ListParams::default()).await.unwrap();
    let from = list.metadata.resource_version.unwrap();
    let chosen = WatchParams::default().labels("pick=me");
    let mut events = maps.watch(&chosen, &from).await.unwrap().boxed();
    let mut made = map("a", json!({}));
    made.labels_mut().insert("pick".to_owned(), "me".to_owned());
    maps.create(&PostParams::default(), &map("other", json!({}))).await.unwrap();
    maps.create(&PostParams::default(), &made).await.unwrap();
    let unpick = Patch::Merge(json!({"metadata": {"labels": {"pick": "not"}}}));
    maps.patch("a", &PatchParams::default(), &unpick).await.unwrap();
    let mut next = async || tokio::time::timeout(DEADLINE, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(next().await, WatchEvent::Added(map) if map.name_any() == "a"));
    assert!(matches!(next().await, WatchEvent::Deleted(map) if map.name_any() == "a"));
}

#[tokio::test]
async fn the_pages_of_a_list_are_of_one_moment() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client().await);
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &map(name, json!({}))).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let second = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    let names: Vec<String> = first.items.iter().chain(&second.items).map(ResourceExt::name_any).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(second.metadata.continue_, None);
}

#[tokio::test]
async fn an_unknown_field_is_refused_when_the_client_is_strict() {
    let client = client().await;
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dat": {}}).to_string();
    let uri = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict";
    let request = http::Request::post(uri).header("content-type", "application/json").body(body.into_bytes()).unwrap();
    let refused = status(client.request::<Value>(request).await.unwrap_err());
    assert_eq!(refused.0, 400);
    assert!(refused.2.ends_with("strict decoding error: unknown field \"dat\""), "{}", refused.2);
}

#[tokio::test]
async fn malformed_requests_get_an_answer_and_the_server_goes_on() {
    let client = client().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let deep = format!("{{\"data\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for (uri, content_type, body, code) in [
        (maps, "application/json", "{", 400),
        (maps, "application/yaml", "a: [", 400),
        (maps, "text/plain", "hello", 415),
        (maps, "application/json", deep.as_str(), 400),
        (maps, "application/json", "[]", 400),
        ("/api/v1/namespaces/none/configmaps", "application/json", r#"{"metadata":{"name":"a"}}"#, 404),
        ("/apis/example.com/v1/boats", "application/json", "{}", 404),
    ] {
        let request = http::Request::post(uri).header("content-type", content_type);
        let request = request.body(body.as_bytes().to_vec()).unwrap();
        let refused = status(client.request::<Value>(request).await.unwrap_err());
        assert_eq!(refused.0, code, "{uri} {content_type}: {}", refused.2);
    }
    let large = http::Request::post(maps).header("content-type", "application/json").body(vec![b' '; 5 << 20]).unwrap();
    assert_eq!(status(client.request::<Value>(large).await.unwrap_err()).0, 413);
    for query in ["labelSelector=a%3D%3D%3Db", "fieldSelector=spec.x%3D1", "limit=x", "resourceVersion=x"] {
        let request = http::Request::get(format!("{maps}?{query}")).body(Vec::new()).unwrap();
        assert_eq!(status(client.request::<Value>(request).await.unwrap_err()).0, 400, "{query}");
    }
    assert!(client.apiserver_version().await.is_ok());
}

#[tokio::test]
async fn nothing_is_created_in_a_namespace_that_is_going() {
    let client = client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let shop: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    // Its own finalizer holds it: there is no controller here.
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    assert_eq!(namespaces.get("shop").await.unwrap().status.unwrap().phase.as_deref(), Some("Terminating"));
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    let (code, reason, message) = status(maps.create(&PostParams::default(), &map("a", json!({}))).await.unwrap_err());
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    assert!(message.ends_with("because it is being terminated"), "{message}");
}

#[tokio::test]
async fn a_right_is_refused_until_it_is_given_and_nobody_gives_what_they_lack() {
    let (admin, jane) = clients().await;
    let janes: Api<ConfigMap> = Api::default_namespaced(jane.clone());
    let (code, _, message) = status(janes.list(&ListParams::default()).await.unwrap_err());
    assert_eq!(code, 403);
    let wanted = "configmaps is forbidden: User \"jane\" cannot list resource \"configmaps\" in API group \"\" in the \
                  namespace \"default\"";
    assert_eq!(message, wanted);
    let roles: Api<ClusterRole> = Api::all(admin.clone());
    let role: ClusterRole = serde_json::from_value(json!({"metadata": {"name": "writer"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]},
    ]}))
    .unwrap();
    roles.create(&PostParams::default(), &role).await.unwrap();
    let bindings: Api<k8s_openapi::api::rbac::v1::ClusterRoleBinding> = Api::all(admin);
    let binding = serde_json::from_value(json!({
        "metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    }))
    .unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    janes.list(&ListParams::default()).await.unwrap();
    let janes: Api<Role> = Api::default_namespaced(jane);
    let more: Role = serde_json::from_value(json!({"metadata": {"name": "more"}, "rules": [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
    ]}))
    .unwrap();
    let (code, _, message) = status(janes.create(&PostParams::default(), &more).await.unwrap_err());
    assert_eq!(code, 403);
    assert!(message.contains("is attempting to grant RBAC permissions not currently held"), "{message}");
}

/// A definition of things, with more of its version and of itself.
fn things(version: Value, spec: Value) -> Value {
    let mut crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"a": {"type": "string", "format": "weird"}}}}}]}});
    crd["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    crd["spec"]["versions"][0].as_object_mut().unwrap().extend(version.as_object().unwrap().clone());
    crd
}

async fn warnings_of(client: &Client, method: &str, path: &str, body: Value) -> Vec<String> {
    let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = client.send(request.body(body.to_string().into_bytes().into()).unwrap()).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.headers().get_all("warning").iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn authors_and_users_of_a_definition_are_warned() {
    let client = client().await;
    let crd = things(json!({"deprecated": true}), json!({}));
    let warned = warnings_of(&client, "POST", DEFINITIONS, crd).await;
    assert_eq!(warned, ["299 - \"unrecognized format \\\"weird\\\"\""]);
    let warned = warnings_of(&client, "GET", "/apis/example.com/v1/things", json!({})).await;
    assert_eq!(warned, ["299 - \"example.com/v1 Thing is deprecated\""]);
}

#[tokio::test]
async fn a_definition_stays_what_it_is() {
    let client = client().await;
    warnings_of(&client, "POST", DEFINITIONS, things(json!({}), json!({}))).await;
    let change = json!({"spec": {"scope": "Cluster"}});
    let kind = kube::discovery::ApiResource::erase::<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    >(&());
    let crds: Api<kube::api::DynamicObject> = Api::all_with(client, &kind);
    let refused = crds.patch("things.example.com", &PatchParams::default(), &Patch::Merge(change)).await.unwrap_err();
    let (code, _, message) = status(refused);
    assert_eq!(code, 422);
    assert!(message.contains("spec.scope: Invalid value: \"Cluster\": field is immutable"), "{message}");
}

#[tokio::test]
async fn a_condition_that_does_not_compile_is_refused() {
    let client = client().await;
    let hook = json!({"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1"}, "matchConditions": [{"name": "x", "expression": "params.x"}]});
    let kind = kube::discovery::ApiResource::erase::<
        k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration,
    >(&());
    let hooks: Api<kube::api::DynamicObject> = Api::all_with(client, &kind);
    let hook = kube::api::DynamicObject::new("a", &kind).data(json!({"webhooks": [hook]}));
    let (code, _, message) = status(hooks.create(&PostParams::default(), &hook).await.unwrap_err());
    assert_eq!(code, 422);
    assert!(message.contains("webhooks[0].matchConditions[0].expression: Invalid value: \"params.x\""), "{message}");
}

#[tokio::test]
async fn an_aggregated_role_shows_what_it_gathers() {
    let roles: Api<ClusterRole> = Api::all(client().await);
    let rules = async || roles.get("view").await.unwrap().rules.unwrap_or_default();
    let before = rules().await;
    assert!(!before.is_empty());
    let more: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": "view-things", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}],
    }))
    .unwrap();
    roles.create(&PostParams::default(), &more).await.unwrap();
    assert_eq!(rules().await.len(), before.len() + 1);
    roles.delete("view-things", &DeleteParams::default()).await.unwrap();
    assert_eq!(rules().await, before);
}

/// kubectl checks a file with `kind: List` by this document, and refuses the file if it gets JSON.
#[tokio::test]
async fn openapi_v2_comes_as_the_protobuf_that_kubectl_asks_for() {
    let client = client().await;
    for version in ["v2@v1.0", "v2.v1.0"] {
        let form = format!("application/com.github.proto-openapi.spec.{version}+protobuf");
        let request = http::Request::get("/openapi/v2").header("accept", form).body(Vec::new().into()).unwrap();
        let answer = client.send(request).await.unwrap();
        assert!(answer.headers()["content-type"].to_str().unwrap().ends_with("protobuf"), "{version}");
    }
}
