//! The `AdmissionReview` that is sent, and the answer that comes back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::webhook::{Failure, Phase};
use super::{Request, Warning};
use crate::object;
use crate::status::Status;

const API_VERSION: &str = "admission.k8s.io/v1";

/// The review's `request`, without its `uid`, `object` and `oldObject`: what conditions see of it.
pub(super) fn request(request: &Request<'_>) -> Value {
    let Request { operation, resource, subresource, namespace, name, user, dry_run, options, .. } = request;
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let of = json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
    let mut sent = json!({
        "kind": kind,
        "resource": of,
        "requestKind": kind,
        "requestResource": of,
        "operation": operation.name(),
        "userInfo": user,
        "dryRun": dry_run,
        "options": options,
    });
    let texts =
        [("subResource", subresource), ("requestSubResource", subresource), ("name", name), ("namespace", namespace)];
    for (field, text) in texts {
        if !text.is_empty() {
            sent[field] = json!(text);
        }
    }
    sent
}

/// The whole review, for one call.
pub(super) fn review(uid: &str, request: &Value, object: &Value, old: &Value) -> Value {
    let mut request = request.clone();
    request["uid"] = json!(uid);
    request["object"] = object.clone();
    request["oldObject"] = old.clone();
    json!({"kind": "AdmissionReview", "apiVersion": API_VERSION, "request": request})
}

/// What an answer means once it is found to be one.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) warnings: Vec<Warning>,
    pub(super) patch: Option<Value>,
    pub(super) refusal: Option<Status>,
}

/// Reads the review that a webhook answered the call `uid` with.
pub(super) fn read(webhook: &str, phase: Phase, uid: &str, review: &Value) -> Result<Answer, Failure> {
    let (api_version, kind) = (object::api_version(review), object::kind(review));
    if (api_version, kind) != (API_VERSION, "AdmissionReview") {
        return Err(Failure::call(format!("no kind {kind:?} is registered for version {api_version:?}")));
    }
    let invalid = |why: &str| Err(Failure::Call(format!("received invalid webhook response: {why}")));
    let response = &review["response"];
    if !response.is_object() {
        return invalid("webhook response was absent");
    }
    let answered = object::text(response, "/uid");
    if answered != uid {
        return invalid(&format!("expected response.uid={uid:?}, got {answered:?}"));
    }
    let (patch, patch_type) = (patch_text(&response["patch"]), &response["patchType"]);
    match (phase, patch.is_empty(), patch_type.is_null()) {
        (Phase::Mutating, false, true) => return invalid("webhook returned response.patch but not response.patchType"),
        (Phase::Mutating, true, false) => return invalid("webhook returned response.patchType but not response.patch"),
        (Phase::Validating, false, _) => return invalid("validating webhook may not return response.patch"),
        (Phase::Validating, _, false) => return invalid("validating webhook may not return response.patchType"),
        (Phase::Mutating, ..) | (Phase::Validating, true, true) => {}
    }
    let mut answer = Answer { warnings: object::texts(response, "/warnings"), ..Answer::default() };
    if response["allowed"] != json!(true) {
        answer.refusal = Some(refusal(webhook, &response["status"]));
    } else if !patch.is_empty() {
        if patch_type != "JSONPatch" {
            return Err(Failure::Call(format!("unsupported patch type {patch_type}")));
        }
        let patch = STANDARD.decode(patch).map_err(|error| Failure::call(format!("illegal base64 data: {error}")))?;
        let undecodable = |error| Failure::Call(format!("received undecodable patch in webhook response: {error}"));
        answer.patch = Some(serde_json::from_slice(&patch).map_err(undecodable)?);
    }
    Ok(answer)
}

/// The patch in base64. Go also reads bytes from a list of numbers, which is how some libraries write them.
fn patch_text(patch: &Value) -> String {
    match patch {
        Value::String(text) => text.clone(),
        Value::Array(numbers) => {
            let bytes: Vec<u8> = numbers.iter().filter_map(|number| u8::try_from(number.as_u64()?).ok()).collect();
            STANDARD.encode(bytes)
        }
        _ => String::new(),
    }
}

/// The refusal as the client reads it: the webhook's own status, its message introduced.
fn refusal(webhook: &str, status: &Value) -> Status {
    let denied = format!("admission webhook {webhook:?} denied the request");
    let reason = object::text(status, "/reason");
    let message = match (object::text(status, "/message"), reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code =
        status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
    let details = status["details"].clone();
    Status { code: code.unwrap_or(400), reason: reason.to_owned().into(), message, details }
}
