//! The way from client-side to server-side apply: kubectl's annotation says what it applied before.

use serde_json::Value;

use super::Tracked;
use super::compare::Comparison;
use super::field_set::FieldSet;
use super::fields_of::fields_of;
use super::place::Place;
use super::validate::validate;
use crate::{go_text, object};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// kubectl's name as a field manager: only for it is the annotation read and kept up to date.
pub(super) const KUBECTL: &str = "kubectl";

fn annotation(object: &Value) -> Option<&str> {
    object::annotations(object).find(|(name, text)| *name == ANNOTATION && !text.is_empty()).map(|(_, text)| text)
}

/// The fields that kubectl applied on the client's side and nobody changed since: it may take them over.
pub(super) fn unchanged_since(live: &Value, tracked: &Tracked<'_>) -> Option<FieldSet> {
    let place = Place::root(tracked.schema);
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    if object::api_version(&applied) != tracked.api_version || validate(&applied, place).is_err() {
        return None;
    }
    let changed = Comparison::of(&applied, live, place);
    let changed = changed.written().union(&changed.removed);
    Some(fields_of(&applied, place).difference(&changed))
}

/// If the object has the annotation, it now says what was applied: a client-side apply can follow.
pub(super) fn keep_current(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", go_text::json(&applied));
    object["metadata"]["annotations"][ANNOTATION] = Value::from(text);
}
