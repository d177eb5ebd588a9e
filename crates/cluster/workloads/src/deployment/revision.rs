//! Revisions: which ReplicaSet is the template's, and what its annotations remember. Pure.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::numbers::{surge, wanted};
use crate::ownership;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
const TEMPLATE_HASH: &str = "pod-template-hash";

/// What a Deployment's ReplicaSets do not take over from it.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

const LONGEST_HISTORY: usize = 2000;
const LONGEST_NAME: usize = 253;

pub(super) fn annotation<'a>(object: &'a impl ResourceExt, key: &str) -> Option<&'a str> {
    object.annotations().get(key).map(String::as_str)
}

/// Writes an annotation; whether that changed anything.
pub(super) fn annotate(meta: &mut ObjectMeta, key: &str, value: &str) -> bool {
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value.to_owned()).as_deref() != Some(value)
}

/// 0 without the annotation, none if it is no number.
pub(super) fn revision(set: &ReplicaSet) -> Option<i64> {
    annotation(set, REVISION).map_or(Some(0), |text| text.parse().ok())
}

pub(super) fn highest(sets: &[ReplicaSet]) -> i64 {
    sets.iter().filter_map(revision).max().unwrap_or_default()
}

/// The wanted size of the Deployment when this ReplicaSet was last scaled.
pub(super) fn desired(set: &ReplicaSet) -> Option<i32> {
    number(set, DESIRED)
}

/// The largest size of the Deployment when this ReplicaSet was last scaled.
pub(super) fn max(set: &ReplicaSet) -> Option<i32> {
    number(set, MAX)
}

fn number(set: &ReplicaSet, key: &str) -> Option<i32> {
    annotation(set, key)?.parse().ok().filter(|number| *number >= 0)
}

/// Notes the sizes that the ReplicaSet is scaled by; whether that changed anything.
pub(super) fn note_sizes(set: &mut ReplicaSet, deployment: &Deployment) -> bool {
    let (desired, max) = (wanted(deployment), wanted(deployment) + surge(deployment));
    let one = annotate(&mut set.metadata, DESIRED, &desired.to_string());
    let other = annotate(&mut set.metadata, MAX, &max.to_string());
    one || other
}

/// The annotations of the template's ReplicaSet: the Deployment's, the revision, and which revisions it was before.
pub(super) fn note_revision(set: &mut ReplicaSet, deployment: &Deployment, revision: i64) -> bool {
    let mut changed = false;
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&key.as_str()) {
            changed |= annotate(&mut set.metadata, key, value);
        }
    }
    let before = annotation(set, REVISION).map(str::to_owned);
    let before_number = before.as_deref().filter(|text| !text.is_empty()).map_or(Ok(0), str::parse::<i64>);
    let Ok(before_number) = before_number else { return false };
    if before_number >= revision {
        return changed;
    }
    annotate(&mut set.metadata, REVISION, &revision.to_string());
    if let Some(before) = before {
        let history = history(annotation(set, HISTORY).unwrap_or_default(), &before);
        annotate(&mut set.metadata, HISTORY, &history);
    }
    true
}

/// `past` and one more; the oldest go when it gets too long.
fn history(past: &str, latest: &str) -> String {
    let mut past = past;
    while past.len() + 1 + latest.len() > LONGEST_HISTORY {
        past = past.split_once(',').map_or("", |(_, younger)| younger);
    }
    if past.is_empty() { latest.to_owned() } else { format!("{past},{latest}") }
}

/// The ReplicaSet of the Deployment's template. `sets` are in the order of their creation: the oldest of equals it is.
pub(super) fn find(deployment: &Deployment, sets: &[ReplicaSet]) -> Option<usize> {
    sets.iter().position(|set| is_of_template(set, deployment))
}

/// Whether its template is the Deployment's, but for the hash.
pub(super) fn is_of_template(set: &ReplicaSet, deployment: &Deployment) -> bool {
    let plain = |template: &PodTemplateSpec| {
        let mut template = template.clone();
        let meta = template.metadata.get_or_insert_default();
        meta.labels.get_or_insert_default().remove(TEMPLATE_HASH);
        meta.annotations.get_or_insert_default();
        template
    };
    let has = set.spec.as_ref().and_then(|spec| spec.template.as_ref()).map(plain);
    has == deployment.spec.as_ref().map(|spec| plain(&spec.template))
}

/// A new ReplicaSet for the Deployment's template, of size 0 for now.
pub(super) fn replica_set(deployment: &Deployment, revision: i64) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = template_hash(&spec.template, collisions);
    let mut template = spec.template;
    let meta = template.metadata.get_or_insert_default();
    meta.labels.get_or_insert_default().insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let labels = meta.labels.clone();
    let mut selector = spec.selector;
    selector.match_labels.get_or_insert_default().insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let mut name = deployment.name_any();
    name.truncate(LONGEST_NAME - 1 - hash.len());
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: deployment.metadata.namespace.clone(),
            labels,
            owner_references: Some(vec![ownership::reference_to(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: spec.min_ready_seconds.filter(|seconds| *seconds != 0),
            selector,
            template: Some(template),
        }),
        status: None,
    };
    note_revision(&mut set, deployment, revision);
    note_sizes(&mut set, deployment);
    set
}

/// A short name for a template that changes with it, spelled in letters that form no words, as Kubernetes does.
fn template_hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    // Struct fields and maps serialize in one order, so equal templates give equal bytes.
    let mut bytes = serde_json::to_vec(template).expect("a template is plain data");
    bytes.extend(collisions.map(i32::to_le_bytes).into_iter().flatten());
    // FNV-1a: stable over versions, which the standard library's hashes are not.
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    hash.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Deployment {
        let template =
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let annotations = json!({"team": "blue", "kubectl.kubernetes.io/last-applied-configuration": "{}"});
        let value = json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "u", "annotations": annotations},
            "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template,
                     "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_new_replica_set_carries_annotations_sizes_revision_and_hash() {
        let set = replica_set(&deployment(), 7);
        let annotations = json!({REVISION: "7", DESIRED: "4", MAX: "5", "team": "blue"});
        assert_eq!(json!(set.metadata.annotations), annotations);
        let hash = set.metadata.labels.as_ref().unwrap()[TEMPLATE_HASH].clone();
        assert_eq!(set.metadata.name, Some(format!("web-{hash}")));
        assert_eq!(set.spec.as_ref().unwrap().selector.match_labels.as_ref().unwrap()[TEMPLATE_HASH], hash);
        assert_eq!(find(&deployment(), &[set]), Some(0));
    }

    #[test]
    fn a_collision_gives_another_name() {
        let mut collided = deployment();
        collided.status.get_or_insert_default().collision_count = Some(1);
        assert_ne!(replica_set(&collided, 1).metadata.name, replica_set(&deployment(), 1).metadata.name);
    }

    #[test]
    fn going_back_to_an_old_revision_remembers_what_it_was() {
        let mut set = replica_set(&deployment(), 1);
        assert!(note_revision(&mut set, &deployment(), 3));
        assert!(note_revision(&mut set, &deployment(), 5));
        assert!(!note_revision(&mut set, &deployment(), 5));
        assert_eq!(annotation(&set, HISTORY), Some("1,3"));
        assert_eq!(revision(&set), Some(5));
    }

    #[test]
    fn a_long_history_loses_its_oldest() {
        let past = vec!["1000"; 400].join(",");
        let longer = history(&past, "2");
        assert!(longer.len() <= LONGEST_HISTORY && longer.ends_with("1000,2"));
    }
}
