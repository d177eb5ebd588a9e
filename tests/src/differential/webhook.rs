//! The webhooks that cases name: what one does is the path of its URL.
//!
//! `/allow`, `/deny` (403 in its own words), `/deny/CODE/REASON` (with these; `none` is no reason), `/warn` (allows and warns), `/label` (adds the
//! label `hooked=yes`), `/count` (appends to the annotation `asked`), `/harm` (a patch that does not apply), `/tell`
//! (denies with the request it was asked, so that the requests themselves are compared).

use anyhow::Result;
use kube::core::{
    admission::AdmissionResponse,
    response::{Status, StatusSummary},
};
use serde_json::{Value, json};

use crate::webhook::{Ask, WebhookServer};

pub async fn start() -> Result<WebhookServer> {
    WebhookServer::start(answer).await
}

fn answer(path: &str, ask: &Ask) -> AdmissionResponse {
    let response = AdmissionResponse::from(ask);
    match path {
        "/deny" => deny(response, "the harbour is closed"),
        "/warn" => {
            let mut response = response;
            response.warnings = Some(vec!["low tide".to_owned()]);
            response
        }
        "/label" => label(response, ask),
        "/count" => count(response, ask),
        "/harm" => patched(response, json!([{"op": "remove", "path": "/spec/harbour"}])),
        "/tell" => deny(response, &told(ask).to_string()),
        _ => match path.strip_prefix("/deny/").and_then(|rest| rest.split_once('/')) {
            Some((code, reason)) => {
                let mut response = deny(response, "");
                response.result.code = code.parse().unwrap_or_default();
                response.result.reason = if reason == "none" { String::new() } else { reason.to_owned() };
                response
            }
            None => response,
        },
    }
}

fn deny(mut response: AdmissionResponse, words: &str) -> AdmissionResponse {
    response.allowed = false;
    response.result = Status {
        status: Some(StatusSummary::Failure),
        code: 403,
        message: words.to_owned(),
        reason: "Forbidden".to_owned(),
        ..Status::default()
    };
    response
}

fn label(response: AdmissionResponse, ask: &Ask) -> AdmissionResponse {
    let labelled = ask.object.as_ref().is_some_and(|object| object.metadata.labels.is_some());
    let operations = match labelled {
        true => json!([{"op": "add", "path": "/metadata/labels/hooked", "value": "yes"}]),
        false => json!([{"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}}]),
    };
    patched(response, operations)
}

fn count(response: AdmissionResponse, ask: &Ask) -> AdmissionResponse {
    let annotations = ask.object.as_ref().and_then(|object| object.metadata.annotations.as_ref());
    let before = annotations.and_then(|annotations| annotations.get("asked")).map_or("", String::as_str);
    let asked = format!("{before}I");
    let operations = match annotations {
        Some(_) => json!([{"op": "add", "path": "/metadata/annotations/asked", "value": asked}]),
        None => json!([{"op": "add", "path": "/metadata/annotations", "value": {"asked": asked}}]),
    };
    patched(response, operations)
}

fn patched(response: AdmissionResponse, operations: Value) -> AdmissionResponse {
    let patch = serde_json::from_value(operations).expect("these are JSON patches");
    response.with_patch(patch).expect("a patch can be written as JSON")
}

/// The request without what each cluster chooses, which is inside a text here and so not seen by the normaliser.
fn told(ask: &Ask) -> Value {
    let object = |object: &Option<kube::api::DynamicObject>| {
        object.as_ref().map(|object| {
            let metadata = &object.metadata;
            json!({"name": metadata.name, "labels": metadata.labels, "annotations": metadata.annotations,
                "has uid": metadata.uid.is_some(), "has version": metadata.resource_version.is_some(),
                "data": object.data})
        })
    };
    json!({
        "operation": ask.operation, "name": ask.name, "namespace": ask.namespace, "dryRun": ask.dry_run,
        "kind": ask.kind, "resource": ask.resource, "subResource": ask.sub_resource,
        "requestKind": ask.request_kind, "requestResource": ask.request_resource,
        "user": ask.user_info.username, "groups": ask.user_info.groups,
        "object": object(&ask.object), "oldObject": object(&ask.old_object), "options": ask.options,
    })
}
