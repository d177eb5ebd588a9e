//! Which writes of other users create a hook pod, or change what Boathook trusts of one: the labels that say which hook it
//! runs, and the images of its containers. Statuses, deletion, finalizers, owner references and annotations stay free.

use boathook_api::words::{HOOK_OF_LABEL, ROLLOUT_LABEL, STAGE_LABEL};

use super::gate::quoted;

const LABELS: [&str; 3] = [HOOK_OF_LABEL, STAGE_LABEL, ROLLOUT_LABEL];

/// Whether another user than Boathook creates or changes a hook pod.
pub(super) fn written(own: &str) -> String {
    let labels = LABELS.map(|key| format!("{} != {}", label("object", key), label("oldObject", key)));
    let lists = ["containers", "initContainers"]
        .map(|list| format!("{} != {}", images("object", list), images("oldObject", list)));
    let changes = [labels.as_slice(), &lists].concat().join(" || ");
    let (is, was) = (has_label("object", HOOK_OF_LABEL), has_label("oldObject", HOOK_OF_LABEL));
    format!("{} && (request.operation == 'CREATE' ? {is} : (({is} || {was}) && ({changes})))", stored_not_by_us(own))
}

/// Whether another user than Boathook sets a label of hook pods on the pod that is bound.
pub(super) fn labelled_by_binding(own: &str) -> String {
    let labels = LABELS.map(|key| has_label("object", key)).join(" || ");
    format!("{} && ({labels})", stored_not_by_us(own))
}

/// A dry run stores nothing: `boathook rollout rehearse` tries the pods of hooks as its caller.
fn stored_not_by_us(own: &str) -> String {
    format!("request.userInfo.username != {} && !request.?dryRun.orValue(false)", quoted(own))
}

fn has_label(object: &str, key: &str) -> String {
    format!("{object}.metadata.?labels[?'{key}'].hasValue()")
}

fn label(object: &str, key: &str) -> String {
    format!("{object}.metadata.?labels[?'{key}'].orValue('')")
}

/// The names and images of the containers in this list. No name contains a space.
fn images(object: &str, list: &str) -> String {
    format!("{object}.spec.?{list}.orValue([]).map(c, c.name + ' ' + c.?image.orValue(''))")
}
