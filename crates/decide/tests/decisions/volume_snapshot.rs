//! Which verdicts on a VolumeSnapshot are Boathook's own.

use boathook_api::words::{CONSISTENCY, EXECUTION_HOOK_NAMES, VERDICT_FIELD_MANAGER};
use boathook_decide::volume_snapshot::foreign_verdicts;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Annotations with both verdicts, and who owns which fields.
fn metadata(owners: &[(&str, &[&str])]) -> ObjectMeta {
    let entry = |(manager, keys): &(&str, &[&str])| {
        let fields: serde_json::Map<String, Value> = keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
        json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": fields}}})
    };
    let entries: Vec<_> = owners.iter().map(entry).collect();
    let annotations = json!({CONSISTENCY: "Application", EXECUTION_HOOK_NAMES: "a", "other": "b"});
    serde_json::from_value(json!({"annotations": annotations, "managedFields": entries}))
        .expect("the metadata is valid")
}

#[test]
fn verdict_with_another_author_is_foreign() {
    let (ours, kubectl) = (VERDICT_FIELD_MANAGER, "kubectl-annotate");
    let both: &[&str] = &[CONSISTENCY, EXECUTION_HOOK_NAMES];
    assert_eq!(foreign_verdicts(&metadata(&[(ours, both), (kubectl, both)])), [""; 0]);
    assert_eq!(foreign_verdicts(&metadata(&[(kubectl, both)])), both);
    assert_eq!(
        foreign_verdicts(&metadata(&[(kubectl, &[CONSISTENCY]), (ours, &[EXECUTION_HOOK_NAMES])])),
        [CONSISTENCY]
    );
    assert_eq!(foreign_verdicts(&metadata(&[])), both, "without managed fields nobody vouches for them");
    assert_eq!(foreign_verdicts(&ObjectMeta::default()), [""; 0]);
}
