//! Events. Both groups show the same ones, stored as the core group has them: `events.k8s.io` names some fields
//! otherwise, and is stricter with what is written through it.

use serde_json::{Value, json};

use super::fill::fill;
use crate::object;
use crate::selector::label_key_problems;
use crate::status::FieldError;

/// Fields of the core group, and their names in `events.k8s.io`.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// What the core group shows also when it is empty, and `events.k8s.io` does not.
const SHOWN_EMPTY: [&str; 2] = ["reportingComponent", "reportingInstance"];

/// What is said once and for all in `events.k8s.io`; the reason counts twice.
const IMMUTABLE: &str = "involvedObject reason message source firstTimestamp lastTimestamp count reason type eventTime \
    action related reportingComponent reportingInstance";

/// How long the texts of an Event may be, in bytes.
const LONGEST: [(&str, usize); 4] = [("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024)];

/// An Event of `events.k8s.io` as one of the core group.
pub(crate) fn to_core(event: &mut Value) {
    event["apiVersion"] = "v1".into();
    for (core, newer) in RENAMED {
        rename(event, newer, core);
    }
    SHOWN_EMPTY.into_iter().for_each(|field| fill(event, field, json!("")));
}

/// An Event of the core group as one of `events.k8s.io`.
pub(crate) fn from_core(event: &mut Value) {
    event["apiVersion"] = "events.k8s.io/v1".into();
    object::map_mut(event).retain(|field, value| value != "" || !SHOWN_EMPTY.contains(&field.as_str()));
    for (core, newer) in RENAMED {
        rename(event, core, newer);
    }
}

fn rename(event: &mut Value, from: &str, to: &str) {
    let map = object::map_mut(event);
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), value);
    }
}

pub(crate) fn validate(event: &Value, errors: &mut Vec<FieldError>) {
    check(event, "reportingComponent", errors);
}

pub(crate) fn validate_newer(event: &Value, errors: &mut Vec<FieldError>) {
    check(&in_core(event), "reportingController", errors);
}

/// A new Event of `events.k8s.io` has nothing of what was there before that group.
pub(crate) fn validate_new_newer(event: &Value, errors: &mut Vec<FieldError>) {
    let event = in_core(event);
    check_series(&event, errors);
    if event["eventTime"].is_null() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let weight = object::text(&event, "/type");
    if !matches!(weight, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", &json!(""), &format!("has invalid value: {weight}")));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if ![json!(null), json!({}), json!(0)].contains(&event[field]) {
            errors.push(FieldError::invalid(field, &json!(""), "needs to be unset"));
        }
    }
}

pub(crate) fn changes_newer(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (new, old) = (in_core(new), in_core(old));
    if new["series"] != old["series"] {
        check_series(&new, errors);
    }
    for field in IMMUTABLE.split(' ').filter(|field| new[field] != old[field]) {
        let told = if field == "reportingComponent" { "reportingController" } else { field };
        errors.push(FieldError::invalid(told, &new[field], "field is immutable"));
    }
}

fn in_core(event: &Value) -> Value {
    let mut event = event.clone();
    to_core(&mut event);
    event
}

fn check_series(event: &Value, errors: &mut Vec<FieldError>) {
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else { return };
    if series["count"].as_i64().unwrap_or(0) < 2 {
        errors.push(FieldError::invalid("series.count", &json!(""), "should be at least 2"));
    }
    if series["lastObservedTime"].is_null() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

/// What holds in both groups. An Event that says when it happened is a newer one, through whichever it is written.
fn check(event: &Value, controller: &str, errors: &mut Vec<FieldError>) {
    let text = |field: &str| object::text(event, &format!("/{field}"));
    let (about, own) = (text("involvedObject/namespace"), object::namespace(event));
    let is_newer = !text("eventTime").is_empty();
    let agree = match about {
        // What is in no namespace is told of in `default`.
        "" => own == "default" || (is_newer && own == "kube-system"),
        about => is_newer || about == own,
    };
    if !agree {
        errors.push(FieldError::invalid("involvedObject.namespace", &json!(about), "does not match event.namespace"));
    }
    if !is_newer {
        return;
    }
    if text("reportingComponent").is_empty() {
        errors.push(FieldError::required(controller, ""));
    }
    let by = json!(text("reportingComponent"));
    let problems = label_key_problems(text("reportingComponent"));
    errors.extend(problems.iter().map(|why| FieldError::invalid(controller, &by, why)));
    for (field, longest) in LONGEST {
        if text(field).is_empty() && field != "message" {
            errors.push(FieldError::required(field, ""));
        }
        if text(field).len() > longest {
            let why = format!("can have at most {longest} characters");
            errors.push(FieldError::invalid(field, &json!(""), &why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_same_after_a_stay_in_the_core_group() {
        let newer = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "sighting"}, "note": "land ahead",
            "regarding": {"kind": "Pod", "name": "web"}, "related": {"kind": "Node"}, "deprecatedSource": {},
            "reason": "Land", "series": {"count": 2}, "deprecatedFirstTimestamp": null, "reportingController": "a/b",
        });
        let mut event = newer.clone();
        to_core(&mut event);
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "sighting"}, "message": "land ahead",
            "involvedObject": {"kind": "Pod", "name": "web"}, "related": {"kind": "Node"}, "source": {},
            "reason": "Land", "series": {"count": 2}, "firstTimestamp": null, "reportingComponent": "a/b",
            "reportingInstance": "",
        });
        assert_eq!(event, core);
        from_core(&mut event);
        assert_eq!(event, newer);
    }
}
