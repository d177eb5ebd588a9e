//! VolumeSnapshot: a verdict on it that Boathook did not write says nothing, and is removed.
//!
//! Admission refuses such a value; this finds the values that were written while no webhook was installed. The verdict of
//! an ApplicationSnapshot that was deleted stays: the managed fields still name Boathook as its author.

use boathook_api::words::{CONSISTENCY, EXECUTION_HOOK_NAMES, VERDICT_FIELD_MANAGER};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};

/// The annotations with a verdict that Boathook did not write. The metadata must have its managed fields.
pub fn foreign_verdicts(metadata: &ObjectMeta) -> Vec<&'static str> {
    let by_boathook = |key: &str| {
        let field = format!("/f:metadata/f:annotations/f:{}", key.replace('/', "~1"));
        let owns = |entry: &ManagedFieldsEntry| {
            entry.manager.as_deref() == Some(VERDICT_FIELD_MANAGER)
                && entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer(&field).is_some())
        };
        metadata.managed_fields.iter().flatten().any(owns)
    };
    let is_there = |key: &&str| metadata.annotations.as_ref().is_some_and(|all| all.contains_key(*key));
    [CONSISTENCY, EXECUTION_HOOK_NAMES].into_iter().filter(is_there).filter(|key| !by_boathook(key)).collect()
}
