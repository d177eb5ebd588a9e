//! The conditions of a namespace that is being deleted, with Kubernetes' reasons and sentences. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What a round of deleting found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) discovery_error: Option<String>,
    pub(super) deletion_errors: Vec<String>,
    /// Objects left, by `resource.group`.
    pub(super) remaining: BTreeMap<String, usize>,
    /// Objects left that have this finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
}

/// Each type with what it says while all is well.
const QUIET: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

impl Findings {
    fn said(&self, type_: &str) -> Option<(&'static str, String)> {
        let list = |counts: &BTreeMap<String, usize>, word: &str| {
            let texts: Vec<String> =
                counts.iter().map(|(what, count)| format!("{what} {word} {count} resource instances")).collect();
            texts.join(", ")
        };
        match type_ {
            "NamespaceDeletionDiscoveryFailure" => self.discovery_error.clone().map(|error| ("DiscoveryFailed", error)),
            "NamespaceDeletionContentFailure" if !self.deletion_errors.is_empty() => {
                let (count, errors) = (self.deletion_errors.len(), self.deletion_errors.join(", "));
                let message = format!("Failed to delete all resource types, {count} remaining: {errors}");
                Some(("ContentDeletionFailed", message))
            }
            "NamespaceContentRemaining" if !self.remaining.is_empty() => {
                let message = format!("Some resources are remaining: {}", list(&self.remaining, "has"));
                Some(("SomeResourcesRemain", message))
            }
            "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => {
                let finalizers = list(&self.finalizers, "in");
                let message = format!("Some content in the namespace has finalizers remaining: {finalizers}");
                Some(("SomeFinalizersRemain", message))
            }
            _ => None,
        }
    }
}

/// Brings the conditions up to date; whether that changed anything.
pub(super) fn update(conditions: &mut Vec<NamespaceCondition>, findings: &Findings, now: Timestamp) -> bool {
    let before = conditions.clone();
    for (type_, quiet_reason, quiet_message) in QUIET {
        let (status, reason, message) = match findings.said(type_) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", quiet_reason, quiet_message.to_owned()),
        };
        let known = conditions.iter_mut().find(|condition| condition.type_ == type_);
        let unchanged = known.as_ref().filter(|condition| condition.status == status);
        let since = unchanged.and_then(|condition| condition.last_transition_time.clone());
        let condition = NamespaceCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_transition_time: since.or(Some(Time(now))),
        };
        match known {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
    *conditions != before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_is_counted_in_kubernetes_words_and_forgotten_when_gone() {
        let mut findings = Findings::default();
        findings.remaining.insert("configmaps.".to_owned(), 2);
        findings.finalizers.insert("example.com/hold".to_owned(), 2);
        let mut conditions = Vec::new();
        assert!(update(&mut conditions, &findings, Timestamp::UNIX_EPOCH));
        assert!(!update(&mut conditions, &findings, Timestamp::MAX));
        let messages = |conditions: &[NamespaceCondition]| {
            let of = |condition: &NamespaceCondition| (condition.status.clone(), condition.message.clone().unwrap());
            conditions.iter().map(of).collect::<Vec<_>>()
        };
        let remain = "Some resources are remaining: configmaps. has 2 resource instances";
        let finalizers =
            "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances";
        assert_eq!(messages(&conditions)[3], ("True".to_owned(), remain.to_owned()));
        assert_eq!(messages(&conditions)[4], ("True".to_owned(), finalizers.to_owned()));
        assert!(update(&mut conditions, &Findings::default(), Timestamp::MAX));
        assert!(messages(&conditions).iter().all(|(status, _)| status == "False"));
    }
}
