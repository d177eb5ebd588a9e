//! Events, of both groups: the newer one says the same in other fields.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{BuiltInColumn, made, text};
use super::read::{is_there, number};
use crate::{object, time};

pub(super) const COLUMNS: &[BuiltInColumn] = &[
    made("Last Seen", |event, now| match (is_there(event, "/series"), either(event, LAST)) {
        (true, _) => time::age(object::text(event, "/series/lastObservedTime"), now).into(),
        (false, "") => first_seen(event, now),
        (false, last) => time::age(last, now).into(),
    }),
    text("Type", "/type"),
    text("Reason", "/reason"),
    made("Object", |event, _| {
        let kind = either(event, ["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
        match either(event, ["/involvedObject/name", "/regarding/name"]) {
            "" => kind.into(),
            name => format!("{kind}/{name}").into(),
        }
    }),
    made("Subobject", |event, _| either(event, ["/involvedObject/fieldPath", "/regarding/fieldPath"]).into()).wide(),
    made("Source", |event, _| source(event).into()).wide(),
    made("Message", |event, _| either(event, ["/message", "/note"]).trim().into()),
    made("First Seen", first_seen).wide(),
    made("Count", |event, _| match is_there(event, "/series") {
        true => number(event, "/series/count").into(),
        false => (number(event, "/count") + number(event, "/deprecatedCount")).max(1).into(),
    })
    .wide(),
    text("Name", "/metadata/name").wide().named(),
];

const LAST: [&str; 2] = ["/lastTimestamp", "/deprecatedLastTimestamp"];

/// The first of some fields that is there: one of the core group, then its name in `events.k8s.io`.
fn either<'a, const N: usize>(event: &'a Value, pointers: [&str; N]) -> &'a str {
    pointers.into_iter().map(|pointer| object::text(event, pointer)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn first_seen(event: &Value, now: Timestamp) -> Value {
    time::age(either(event, ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]), now).into()
}

fn source(event: &Value) -> String {
    let component = ["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"];
    match (either(event, component), either(event, ["/source/host", "/deprecatedSource/host", "/reportingInstance"])) {
        (component, "") => component.to_owned(),
        (component, host) => format!("{component}, {host}"),
    }
}
