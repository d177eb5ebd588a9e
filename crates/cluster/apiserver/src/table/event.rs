//! Events, of both groups: the newer one says the same in other fields.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{BuiltInColumn, text, wide};
use super::read::{is_there, number, text_or};
use crate::{object, time};

pub(super) const COLUMNS: &[BuiltInColumn] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name").named(),
];

pub(super) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    // A field of the core group, or its name in `events.k8s.io`.
    let either = |core: &str, newer: &'static str| text_or(event, core, object::text(event, newer)).to_owned();
    let or_event_time = |time: String| match time.as_str() {
        "" => object::text(event, "/eventTime").to_owned(),
        _ => time,
    };
    let first = time::age(&or_event_time(either("/firstTimestamp", "/deprecatedFirstTimestamp")), now);
    let last = match (is_there(event, "/series"), either("/lastTimestamp", "/deprecatedLastTimestamp").as_str()) {
        (true, _) => time::age(object::text(event, "/series/lastObservedTime"), now),
        (false, "") => first.clone(),
        (false, last) => time::age(last, now),
    };
    let count = match is_there(event, "/series") {
        true => number(event, "/series/count"),
        false => (number(event, "/count") + number(event, "/deprecatedCount")).max(1),
    };
    let kind = either("/involvedObject/kind", "/regarding/kind").to_lowercase();
    let about = match either("/involvedObject/name", "/regarding/name").as_str() {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        object::text(event, "/type").into(),
        object::text(event, "/reason").into(),
        about.into(),
        either("/involvedObject/fieldPath", "/regarding/fieldPath").into(),
        source(event).into(),
        either("/message", "/note").trim().into(),
        first.into(),
        count.into(),
        object::name(event).into(),
    ]
}

fn source(event: &Value) -> String {
    let first_of = |pointers: [&str; 4]| {
        pointers
            .into_iter()
            .map(|pointer| object::text(event, pointer))
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    };
    let component = ["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"];
    let host = ["/source/host", "/deprecatedSource/host", "/reportingInstance", "/reportingInstance"];
    match (first_of(component), first_of(host)) {
        (component, "") => component.to_owned(),
        (component, host) => format!("{component}, {host}"),
    }
}
