//! What the conditions of an object say.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Status and reason of the condition of this type.
pub fn said(conditions: &[Condition], kind: &str) -> Option<(String, String)> {
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.status.clone(), found.reason.clone()))
}

/// The message of the condition of this type; empty if there is none.
pub fn message(conditions: &[Condition], kind: &str) -> String {
    let found = conditions.iter().find(|condition| condition.type_ == kind);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// The condition of this type is true.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    said(conditions, kind).is_some_and(|(status, _)| status == "True")
}
