//! The annotations of a VolumeSnapshot that only Boathook sets, above all its consistency. The API server asks only about
//! other users: the condition in `install` excludes Boathook itself.

use boathook_api::words::SNAPSHOT_MARKS;
use boathook_runtime::webhook::{Ask, refuse};
use kube::{ResourceExt, api::DynamicObject, core::admission::AdmissionResponse};

pub(super) fn review(ask: &Ask) -> AdmissionResponse {
    let value = |object: &Option<DynamicObject>, key: &str| object.as_ref()?.annotations().get(key).cloned();
    let set = SNAPSHOT_MARKS.into_iter().find(|key| {
        let new = value(&ask.object, key);
        new.is_some() && new != value(&ask.old_object, key)
    });
    let Some(key) = set else { return AdmissionResponse::from(ask) };
    let message = format!(
        "only Boathook sets the annotation `{key}` of a VolumeSnapshot: remove it (also from a restored backup, \
         because no hooks ran for the copy)"
    );
    refuse(ask, 403, "Forbidden", message)
}

#[cfg(test)]
mod tests {
    use boathook_api::words::{APPLICATION_SNAPSHOT_UID, CONSISTENCY, EXECUTION_HOOK_NAMES};
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::test_asks::ask;

    fn snapshot(annotations: &Value) -> Value {
        json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": {"name": "nightly", "annotations": annotations}})
    }

    #[test]
    fn only_boathook_sets_a_verdict() {
        for key in [CONSISTENCY, EXECUTION_HOOK_NAMES, APPLICATION_SNAPSHOT_UID] {
            let (set, other, none) = (json!({key: "Application"}), json!({key: "Crash"}), json!({"a": "b"}));
            let (set, other, none) = (snapshot(&set), snapshot(&other), snapshot(&none));
            for (asked, allowed) in [
                (ask("CREATE", Some(set.clone()), None), false),
                (ask("CREATE", Some(none.clone()), None), true),
                (ask("UPDATE", Some(set.clone()), Some(none.clone())), false),
                (ask("UPDATE", Some(set.clone()), Some(other)), false),
                (ask("UPDATE", Some(set.clone()), Some(set.clone())), true),
                (ask("UPDATE", Some(none), Some(set.clone())), true),
            ] {
                let answer = review(&asked);
                assert_eq!(answer.allowed, allowed, "{key}: {asked:?}");
                assert!(allowed || answer.result.code == 403 && answer.result.message.contains(key), "{answer:?}");
            }
        }
    }
}
