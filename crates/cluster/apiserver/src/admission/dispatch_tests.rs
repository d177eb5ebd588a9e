//! Webhooks called over real sockets. The texts are those that Kubernetes 1.35 gave for the same answers.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::time::{Duration, Instant};

use super::super::test_server::{Reply, TestServer};
use super::super::{Operation, Resource};
use super::*;
use crate::access::User;

const NAME: &str = "a.hooks.test";

fn webhook(server: &TestServer, path: &str) -> Value {
    json!({
        "name": NAME,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": server.url(path), "caBundle": server.ca_bundle},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
    })
}

fn with(mut webhook: Value, fields: Value) -> Value {
    for (key, value) in fields.as_object().unwrap() {
        webhook[key] = value.clone();
    }
    webhook
}

fn build(kind: &str, configurations: &[(&str, Vec<Value>)]) -> Webhooks {
    let objects: Vec<Value> = configurations
        .iter()
        .map(|(name, webhooks)| {
            json!({"kind": format!("{kind}WebhookConfiguration"), "metadata": {"name": name}, "webhooks": webhooks})
        })
        .collect();
    let resolve: Resolve = Arc::new(|namespace, name, port| {
        (namespace == "shop" && name.starts_with("hooks")).then(|| format!("127.0.0.1:{port}"))
    });
    Webhooks::build(&objects, &resolve)
}

fn validating(webhook: Value) -> Webhooks {
    build("Validating", &[("c", vec![webhook])])
}

fn mutating(webhook: Value) -> Webhooks {
    build("Mutating", &[("c", vec![webhook])])
}

fn config_map() -> Value {
    json!({"kind": "ConfigMap", "metadata": {"name": "z", "namespace": "shop", "uid": "o1"}, "data": {"a": "b"}})
}

/// Runs `ask` with a create of [`config_map`].
async fn created<T>(change: impl Fn(&mut Request<'_>), ask: impl AsyncFnOnce(&Request<'_>) -> T) -> T {
    let (user, object) = (User::authenticated("jane", &["devs"]), config_map());
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"});
    let mut request = Request {
        operation: Operation::Create,
        resource: Resource { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap" },
        subresource: "",
        namespace: "shop",
        name: "z",
        user: &user,
        object: Some(&object),
        old: None,
        dry_run: false,
        options: &options,
        deadline: Instant::now() + Duration::from_secs(20),
    };
    change(&mut request);
    ask(&request).await
}

async fn validate(webhooks: &Webhooks) -> Result<Vec<Warning>> {
    created(
        |_| {},
        async |request| webhooks.validate(request, Some(&json!({"metadata": {"labels": {"a": "b"}}}))).await,
    )
    .await
}

async fn mutate(webhooks: &Webhooks) -> Result<(Value, Vec<Warning>)> {
    created(|_| {}, async |request| webhooks.mutate(request, config_map(), None).await).await
}

async fn refusal(webhook: Value) -> Status {
    validate(&validating(webhook)).await.unwrap_err()
}

fn allow() -> Reply {
    Reply::Review(json!({"allowed": true}))
}

fn patch(operations: &Value) -> Reply {
    let patch = STANDARD.encode(operations.to_string());
    Reply::Review(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

#[tokio::test]
async fn the_review_says_who_does_what_to_which_object() {
    let server = TestServer::start(|_, _| Reply::Review(json!({"allowed": true, "warnings": ["careful"]}))).await;
    assert_eq!(validate(&validating(webhook(&server, "allow"))).await.unwrap(), ["careful"]);
    let calls = server.calls.lock().unwrap();
    let (path, review) = &calls[0];
    assert_eq!(path, "/allow?timeout=10s");
    let mut request = review["request"].clone();
    assert_eq!(request["uid"].take().as_str().unwrap().len(), 36);
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    let wanted = json!({
        "uid": null,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "z",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "jane", "groups": ["devs", "system:authenticated"]},
        "object": config_map(),
        "oldObject": null,
        "dryRun": false,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    });
    assert_eq!(request, wanted);
}

#[tokio::test]
async fn a_denial_keeps_the_webhooks_words_code_and_reason() {
    let server = TestServer::start(|path, _| {
        let status = match path {
            "bare" => json!(null),
            "message" => json!({"message": "no way"}),
            "reason" => json!({"reason": "Invalid"}),
            "code" => json!({"message": "no way", "code": 403, "reason": "Forbidden", "details": {"name": "x"}}),
            _ => json!({"message": "no way", "code": 200, "status": "Success"}),
        };
        Reply::Review(json!({"allowed": false, "status": status}))
    })
    .await;
    let start = "admission webhook \"a.hooks.test\" denied the request";
    let table = [
        ("bare", 400, "", format!("{start} without explanation")),
        ("message", 400, "", format!("{start}: no way")),
        ("reason", 400, "Invalid", format!("{start}: Invalid")),
        ("code", 403, "Forbidden", format!("{start}: no way")),
        ("success", 400, "", format!("{start}: no way")),
    ];
    for (path, code, reason, message) in table {
        let status = refusal(webhook(&server, path)).await;
        assert_eq!((status.code, &*status.reason, status.message), (code, reason, message), "{path}");
    }
    assert_eq!(refusal(webhook(&server, "code")).await.details, json!({"name": "x"}));
}

#[tokio::test]
async fn an_answer_that_is_none_is_an_internal_error() {
    let server = TestServer::start(|path, _| match path {
        "uid" => Reply::Review(json!({"uid": "x", "allowed": true})),
        "absent" => Reply::Raw(
            200,
            "application/json",
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.to_vec(),
        ),
        "kind" => Reply::Raw(200, "application/json", br#"{"apiVersion":"admission.k8s.io/v1","kind":"Foo"}"#.to_vec()),
        "text" => Reply::Raw(200, "application/json", b"hello".to_vec()),
        "empty" => Reply::Raw(200, "application/json", vec![]),
        "500" => Reply::Raw(500, "application/json", b"oops".to_vec()),
        "502" => Reply::Raw(502, "text/plain; charset=utf-8", b"oops\n".to_vec()),
        "404" => Reply::Raw(404, "application/json", b"oops".to_vec()),
        "400" => Reply::Raw(400, "application/json", b"oops".to_vec()),
        "status" => Reply::Raw(403, "application/json", br#"{"kind":"Status","message":"because"}"#.to_vec()),
        "302" => Reply::Raw(302, "text/plain", vec![]),
        "large" => Reply::Raw(200, "application/json", vec![b' '; 9 << 20]),
        "patch" => patch(&json!([])),
        _ => Reply::Close,
    })
    .await;
    let url = server.url("close?timeout=10s");
    let table = [
        ("absent", "received invalid webhook response: webhook response was absent".to_owned()),
        (
            "kind",
            "failed to call webhook: no kind \"Foo\" is registered for version \"admission.k8s.io/v1\"".to_owned(),
        ),
        (
            "empty",
            "failed to call webhook: 0-length response with status code: 200 and content type: application/json"
                .to_owned(),
        ),
        (
            "500",
            "failed to call webhook: an error on the server (\"unknown\") has prevented the request from succeeding"
                .to_owned(),
        ),
        (
            "502",
            "failed to call webhook: an error on the server (\"oops\") has prevented the request from succeeding"
                .to_owned(),
        ),
        ("404", "failed to call webhook: the server could not find the requested resource".to_owned()),
        ("400", "failed to call webhook: the server rejected our request for an unknown reason".to_owned()),
        ("status", "failed to call webhook: because".to_owned()),
        (
            "302",
            "failed to call webhook: the server responded with the status code 302 but did not return more information"
                .to_owned(),
        ),
        ("patch", "received invalid webhook response: validating webhook may not return response.patch".to_owned()),
        ("close", format!("failed to call webhook: Post \"{url}\": EOF")),
    ];
    for (path, why) in table {
        let status = refusal(webhook(&server, path)).await;
        let wanted = format!("Internal error occurred: failed calling webhook \"a.hooks.test\": {why}");
        assert_eq!((status.code, status.message), (500, wanted), "{path}");
    }
    for (path, part) in [("uid", "got \"x\""), ("text", "json parse error"), ("large", "larger than 8388608 bytes")] {
        let status = refusal(webhook(&server, path)).await;
        assert!(status.message.contains(part), "{}", status.message);
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_trusted_or_reached_is_an_internal_error() {
    let server = TestServer::start(|_, _| allow()).await;
    let other = TestServer::start_as(&["example.org"], |_, _| allow()).await;
    let post = |why: &str, url: String| {
        format!(
            "Internal error occurred: failed calling webhook \"a.hooks.test\": failed to call webhook: \
             Post \"{url}?timeout=10s\": {why}"
        )
    };
    let mut foreign = webhook(&server, "x");
    foreign["clientConfig"]["caBundle"] = json!(other.ca_bundle);
    let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert_eq!(refusal(foreign).await.message, post(unknown, server.url("x")));
    let nameless = "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it \
                    doesn't contain any IP SANs";
    assert_eq!(refusal(webhook(&other, "x")).await.message, post(nameless, other.url("x")));
    let mut misnamed = webhook(&other, "x");
    misnamed["clientConfig"]["url"] = json!(format!("https://localhost:{}/x", other.port));
    let message = refusal(misnamed).await.message;
    assert!(message.ends_with("x509: certificate is valid for example.org, not localhost"), "{message}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let mut refused = webhook(&server, "x");
    refused["clientConfig"]["url"] = json!(format!("https://{nobody}/x"));
    let why = format!("dial tcp {nobody}: connect: connection refused");
    assert_eq!(refusal(refused).await.message, post(&why, format!("https://{nobody}/x")));

    let mut garbled = webhook(&server, "x");
    garbled["clientConfig"]["caBundle"] = json!("***");
    assert!(refusal(garbled).await.message.contains("could not get REST client: caBundle: "));
}

#[tokio::test]
async fn a_plain_http_server_is_recognised() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = TestServer::start(|_, _| allow()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 64];
        stream.read_exact(&mut hello).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let mut hook = webhook(&server, "x");
    hook["clientConfig"]["url"] = json!(format!("https://{address}/x"));
    let message = refusal(hook).await.message;
    assert!(message.ends_with("http: server gave HTTP response to HTTPS client"), "{message}");
    plain.await.unwrap();
}

#[tokio::test]
async fn a_service_is_called_by_its_name_at_its_address() {
    let server = TestServer::start(|_, _| allow()).await;
    let of = |name: &str| {
        let service = json!({"namespace": "shop", "name": name, "path": "/check", "port": server.port});
        with(webhook(&server, ""), json!({"clientConfig": {"service": service, "caBundle": server.ca_bundle}}))
    };
    validate(&validating(of("hooks"))).await.unwrap();
    assert_eq!(server.calls.lock().unwrap()[0].0, "/check?timeout=10s");
    let port = server.port;
    let missing = refusal(of("gone")).await.message;
    let wanted = format!("Post \"https://gone.shop.svc:{port}/check?timeout=10s\": service \"gone\" not found");
    assert!(missing.ends_with(&wanted), "{missing}");
}

#[tokio::test]
async fn a_slow_webhook_is_given_up_at_its_own_limit_or_the_requests() {
    let server = TestServer::start(|_, _| Reply::Never).await;
    let slow = validating(with(webhook(&server, "x"), json!({"timeoutSeconds": 1})));
    let message = validate(&slow).await.unwrap_err().message;
    let wanted = format!("Post \"{}?timeout=1s\": context deadline exceeded", server.url("x"));
    assert!(message.ends_with(&wanted), "{message}");

    let soon = |request: &mut Request<'_>| request.deadline = Instant::now() + Duration::from_millis(50);
    let started = Instant::now();
    let long = validating(with(webhook(&server, "x"), json!({"timeoutSeconds": 30})));
    let status = created(soon, async |request| long.validate(request, None).await).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(25), "it waited for the webhook's own 30 s");
    assert_eq!(status.code, 500);

    // With the policy to go on, there is no time left to go on in.
    let ignoring = validating(with(webhook(&server, "x"), json!({"failurePolicy": "Ignore"})));
    let status = created(soon, async |request| ignoring.validate(request, None).await).await.unwrap_err();
    let wanted = "Timeout: request did not complete within requested timeout";
    assert_eq!((status.code, status.message.as_str()), (504, wanted));
}

#[tokio::test]
async fn when_the_caller_goes_away_so_does_the_call() {
    let server = TestServer::start(|_, _| Reply::Never).await;
    let slow = validating(webhook(&server, "x"));
    let waiting = tokio::spawn(async move { validate(&slow).await });
    let long = Duration::from_secs(60);
    tokio::time::timeout(long, server.called.notified()).await.expect("the webhook is called");
    waiting.abort();
    let ended = tokio::time::timeout(long, server.ended.notified()).await;
    assert!(ended.is_ok(), "the webhook sees its connection end");
}

#[tokio::test]
async fn failures_are_ignored_where_the_policy_says_so_and_denials_are_not() {
    let server =
        TestServer::start(
            |path, _| if path == "deny" { Reply::Review(json!({"allowed": false})) } else { Reply::Close },
        )
        .await;
    let ignoring = |path: &str| validating(with(webhook(&server, path), json!({"failurePolicy": "Ignore"})));
    assert_eq!(validate(&ignoring("x")).await, Ok(vec![]));
    assert!(validate(&ignoring("deny")).await.is_err());
}

#[tokio::test]
async fn a_webhook_with_side_effects_refuses_a_dry_run() {
    let server = TestServer::start(|_, _| allow()).await;
    let dry = |effects: &str| {
        let webhooks = validating(with(webhook(&server, "x"), json!({"sideEffects": effects})));
        created(|request| request.dry_run = true, async move |request| webhooks.validate(request, None).await)
    };
    let status = dry("Some").await.unwrap_err();
    let wanted = "admission webhook \"a.hooks.test\" does not support dry run";
    assert_eq!((status.code, status.message.as_str()), (400, wanted));
    assert!(server.calls.lock().unwrap().is_empty());
    assert_eq!(dry("NoneOnDryRun").await, Ok(vec![]));
    assert_eq!(server.calls.lock().unwrap()[0].1["request"]["dryRun"], true);
}

#[tokio::test]
async fn selectors_and_conditions_decide_who_is_asked() {
    let server = TestServer::start(|_, _| allow()).await;
    let conditions = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let table = [
        (json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}), 1),
        (json!({"namespaceSelector": {"matchLabels": {"a": "c"}}}), 0),
        (json!({"objectSelector": {"matchLabels": {"a": "b"}}}), 0),
        (json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}), 1),
        (conditions("request.userInfo.username == 'jane' && object.data.a == 'b' && oldObject == null"), 1),
        (conditions("request.operation != 'CREATE'"), 0),
        (
            json!({"rules": [{"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}),
            0,
        ),
    ];
    for (fields, wanted) in table {
        server.calls.lock().unwrap().clear();
        validate(&validating(with(webhook(&server, "x"), fields.clone()))).await.unwrap();
        assert_eq!(server.calls.lock().unwrap().len(), wanted, "{fields}");
    }
    server.calls.lock().unwrap().clear();
    let failing = with(webhook(&server, "x"), conditions("object.metadata.foo == \"x\""));
    let status = refusal(failing.clone()).await;
    let wanted =
        "configmaps \"z\" is forbidden: expression 'object.metadata.foo == \"x\"' resulted in error: no such key: foo";
    assert_eq!((status.code, status.message.as_str()), (403, wanted));
    let ignoring = with(failing, json!({"failurePolicy": "Ignore"}));
    assert_eq!(validate(&validating(ignoring)).await, Ok(vec![]));
    assert!(server.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_namespace_that_is_not_there_cannot_be_selected() {
    let server = TestServer::start(|_, _| allow()).await;
    let webhooks = validating(with(webhook(&server, "x"), json!({"namespaceSelector": {"matchLabels": {"a": "b"}}})));
    let status = created(|_| {}, async |request| webhooks.validate(request, None).await).await.unwrap_err();
    assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"shop\" not found"));
}

#[tokio::test]
async fn webhook_configurations_are_never_sent_to_webhooks() {
    let server = TestServer::start(|_, _| Reply::Close).await;
    let everything =
        json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]});
    let hook = with(webhook(&server, "x"), everything);
    let (group, version) = ("admissionregistration.k8s.io", "v1");
    let (plural, kind) = ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration");
    let own = |request: &mut Request<'_>| request.resource = Resource { group, version, plural, kind };
    let validating = validating(hook.clone());
    created(own, async |request| validating.validate(request, None).await).await.unwrap();
    let mutating = mutating(hook);
    created(own, async |request| mutating.mutate(request, json!({}), None).await).await.unwrap();
}

#[tokio::test]
async fn patches_are_applied_in_the_order_of_the_configurations() {
    let server = TestServer::start(|path, review| {
        let seen = object::text(review, "/request/object/data/order").to_owned();
        patch(&json!([{"op": "add", "path": "/data/order", "value": seen + path}]))
    })
    .await;
    let webhooks = build(
        "Mutating",
        &[("b", vec![webhook(&server, "3")]), ("a", vec![webhook(&server, "1"), webhook(&server, "2")])],
    );
    let (object, _) = mutate(&webhooks).await.unwrap();
    assert_eq!(object["data"], json!({"a": "b", "order": "123"}));
}

#[tokio::test]
async fn who_asked_for_it_sees_what_later_webhooks_changed_once_more() {
    let server = TestServer::start(|path, review| match path {
        // Adds one letter each time: it would go on for ever, and is called twice.
        "again" => {
            let seen = object::text(review, "/request/object/data/count").to_owned();
            patch(&json!([{"op": "add", "path": "/data/count", "value": seen + "x"}]))
        }
        "change" => patch(&json!([{"op": "add", "path": "/data/late", "value": "y"}])),
        _ => allow(),
    })
    .await;
    let needed = |path: &str| with(webhook(&server, path), json!({"reinvocationPolicy": "IfNeeded"}));
    let paths = |server: &TestServer| -> Vec<String> {
        let calls = std::mem::take(&mut *server.calls.lock().unwrap());
        calls.into_iter().map(|(path, _)| path.split(['/', '?']).nth(1).unwrap().to_owned()).collect()
    };
    let webhooks = build("Mutating", &[("a", vec![needed("again"), webhook(&server, "change"), needed("quiet")])]);
    let (object, _) = mutate(&webhooks).await.unwrap();
    assert_eq!(object["data"], json!({"a": "b", "count": "xx", "late": "y"}));
    // The last one is called again too, as the first changed the object a second time.
    assert_eq!(paths(&server), ["again", "change", "quiet", "again", "quiet"]);

    let webhooks = build("Mutating", &[("a", vec![needed("quiet"), webhook(&server, "calm")])]);
    mutate(&webhooks).await.unwrap();
    assert_eq!(paths(&server), ["quiet", "calm"]);
}

#[tokio::test]
async fn a_patch_that_cannot_be_applied_is_an_internal_error() {
    let server = TestServer::start(|path, _| {
        let raw = |text: &str| STANDARD.encode(text);
        let (patch_type, patch) = match path {
            "untyped" => (json!(null), raw("[{}]")),
            "unpatched" => (json!("JSONPatch"), String::new()),
            "type" => (json!("Foo"), raw("[]")),
            "base64" => (json!("JSONPatch"), "***".to_owned()),
            "broken" => (json!("JSONPatch"), raw("{")),
            _ => (json!("JSONPatch"), raw(r#"[{"op": "replace", "path": "/a/b", "value": 1}]"#)),
        };
        Reply::Review(json!({"allowed": true, "patchType": patch_type, "patch": patch}))
    })
    .await;
    let table = [
        ("untyped", "received invalid webhook response: webhook returned response.patch but not response.patchType"),
        ("unpatched", "received invalid webhook response: webhook returned response.patchType but not response.patch"),
        ("type", "unsupported patch type \"Foo\""),
        ("base64", "failed to call webhook: illegal base64 data"),
        ("broken", "received undecodable patch in webhook response: "),
        ("path", "Internal error occurred: "),
    ];
    for (path, wanted) in table {
        let status = mutate(&mutating(webhook(&server, path))).await.unwrap_err();
        assert_eq!(status.code, 500, "{path}");
        assert!(status.message.contains(wanted), "{path}: {}", status.message);
    }
    let deleted = |request: &mut Request<'_>| {
        request.operation = Operation::Delete;
        request.object = None;
    };
    let webhooks = mutating(webhook(&server, "path"));
    let status = created(deleted, async |request| webhooks.mutate(request, Value::Null, None).await).await.unwrap_err();
    assert!(status.message.ends_with("attempted to modify the object, which is not supported for this operation"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn validating_webhooks_are_asked_at_once() {
    let waiting = Arc::new(std::sync::Barrier::new(2));
    // Each answers only when the other has been asked too.
    let server = TestServer::start(move |_, _| {
        tokio::task::block_in_place(|| waiting.wait());
        Reply::Review(json!({"allowed": true, "warnings": ["w"]}))
    })
    .await;
    let webhooks = build("Validating", &[("a", vec![webhook(&server, "1"), webhook(&server, "2")])]);
    assert_eq!(validate(&webhooks).await.unwrap(), ["w", "w"]);
}
