//! Who asks for a stage to be retried or skipped is written down by admission, which knows.

use boathook_api::words::{ROLLOUT_REQUEST, ROLLOUT_REQUESTED_BY};
use boathook_runtime::webhook::Ask;
use kube::{ResourceExt, core::admission::AdmissionResponse};
use serde_json::{Value, json};

use super::{deployments::annotated, patched, pointer};

pub(super) fn review(ask: &Ask) -> AdmissionResponse {
    let Some(object) = &ask.object else { return AdmissionResponse::from(ask) };
    let old = |key| ask.old_object.as_ref().and_then(|old| old.annotations().get(key));
    let new = |key| object.annotations().get(key);
    let asked_anew = new(ROLLOUT_REQUEST).is_some() && new(ROLLOUT_REQUEST) != old(ROLLOUT_REQUEST);
    let who = match asked_anew {
        true => ask.user_info.username.as_ref(),
        // It says who asked before, and nobody writes it by hand.
        false => old(ROLLOUT_REQUESTED_BY),
    };
    match who {
        Some(who) => patched(ask, annotated(object, ROLLOUT_REQUESTED_BY, who)),
        None if new(ROLLOUT_REQUESTED_BY).is_some() => {
            let path = format!("/metadata/annotations/{}", pointer(ROLLOUT_REQUESTED_BY));
            patched(ask, Value::Array(vec![json!({"op": "remove", "path": path})]))
        }
        None => AdmissionResponse::from(ask),
    }
}
