//! Admission writes down which user set an annotation that asks for something: only admission knows.

use boathook_runtime::webhook::Ask;
use kube::{ResourceExt, core::admission::AdmissionResponse};
use serde_json::{Value, json};

use super::{deployments::annotated, patched, pointer};

/// `asked_by` names the user who set `request`. A value that a user writes into `asked_by` is put back.
pub(super) fn review(ask: &Ask, request: &str, asked_by: &str) -> AdmissionResponse {
    let Some(object) = &ask.object else { return AdmissionResponse::from(ask) };
    let old = |key| ask.old_object.as_ref().and_then(|old| old.annotations().get(key));
    let new = |key| object.annotations().get(key);
    let asked_anew = new(request).is_some() && new(request) != old(request);
    let user = match asked_anew {
        true => ask.user_info.username.as_ref(),
        false => old(asked_by),
    };
    match user {
        Some(user) => patched(ask, annotated(object, asked_by, user)),
        None if new(asked_by).is_some() => {
            let path = format!("/metadata/annotations/{}", pointer(asked_by));
            patched(ask, Value::Array(vec![json!({"op": "remove", "path": path})]))
        }
        None => AdmissionResponse::from(ask),
    }
}

#[cfg(test)]
mod tests {
    use boathook_api::words::{ABANDON_UNDO, ABANDONED_BY};

    use super::*;
    use crate::webhooks::test_asks::ask;

    fn object(annotations: &Value) -> Value {
        json!({"apiVersion": "boathook.dev/v1alpha1", "kind": "PodNotification",
            "metadata": {"name": "one", "annotations": annotations}})
    }

    /// The annotations as they are stored when `jane` writes these.
    fn stored(new: &Value, old: Option<&Value>) -> Value {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let mut asked = ask(operation, Some(object(new)), old.map(object));
        asked.user_info.username = Some("jane".to_owned());
        let answer = review(&asked, ABANDON_UNDO, ABANDONED_BY);
        assert!(answer.allowed);
        let mut stored = object(new);
        if let Some(patch) = answer.patch {
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            json_patch::patch(&mut stored, &patch).unwrap();
        }
        stored["metadata"]["annotations"].clone()
    }

    #[test]
    fn user_who_gives_up_is_written_down() {
        let given_up = |user: &str| json!({ABANDON_UNDO: "true", ABANDONED_BY: user});
        let (none, asked, forged) = (json!({}), json!({ABANDON_UNDO: "true"}), given_up("joe"));
        for (new, old, expected) in [
            (&asked, None, given_up("jane")),
            (&asked, Some(&none), given_up("jane")),
            (&forged, Some(&none), given_up("jane")),
            (&given_up("joe"), Some(&given_up("ann")), given_up("ann")),
            (&asked, Some(&given_up("ann")), given_up("ann")),
            (&json!({ABANDONED_BY: "joe"}), Some(&none), none.clone()),
        ] {
            assert_eq!(stored(new, old), expected, "{old:?} -> {new}");
        }
    }
}
