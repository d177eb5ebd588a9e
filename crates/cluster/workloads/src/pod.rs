//! What controllers and the node read of a pod.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(crate) fn goes(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub(crate) fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The names of the claims that it uses.
pub(crate) fn claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str()))
}

/// Whether the condition Ready is true, and if so since when (none: it does not say).
pub(crate) fn ready(pod: &Pod) -> Option<Option<Timestamp>> {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready.next().map(|condition| condition.last_transition_time.as_ref().map(|time| time.0))
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    ready(pod).is_some()
}

/// Ready for at least `min_ready_seconds`.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    match ready(pod) {
        None => false,
        Some(_) if min_ready_seconds == 0 => true,
        Some(None) => false,
        Some(Some(since)) => since + SignedDuration::from_secs(min_ready_seconds.into()) <= now,
    }
}
