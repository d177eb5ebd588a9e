//! What a failed wait prints: the objects as YAML without the noise, and the Events of the namespace, oldest first.

use std::{fmt::Write as _, time::Duration};

use k8s_openapi::{
    api::core::v1::Event,
    jiff::{SignedDuration, Timestamp},
};
use kube::{Api, Client, api::ListParams};
use serde::Serialize;
use serde_json::Value;

/// A person reads this in a terminal: past a few objects of a few screens each, more of it helps less.
const MOST_OBJECTS: usize = 12;
const MOST_LINES: usize = 150;

/// The report must come also when the API server is what is broken.
const EVENTS_DEADLINE: Duration = Duration::from_secs(10);

/// One object as YAML, without `managedFields` and what `kubectl apply` remembers.
pub(crate) fn object(object: &impl Serialize) -> String {
    let mut value = match serde_json::to_value(object) {
        Ok(value) => value,
        Err(error) => return format!("(cannot be shown: {error})\n"),
    };
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    let yaml = serde_saphyr::to_string(&value).unwrap_or_else(|_| format!("{value:#}\n"));
    match yaml.lines().count().checked_sub(MOST_LINES) {
        None | Some(0) => yaml,
        Some(more) => {
            let mut shown: String = yaml.lines().take(MOST_LINES).map(|line| format!("{line}\n")).collect();
            let _ = writeln!(shown, "... {more} more lines");
            shown
        }
    }
}

/// Titled objects, each under its title.
pub(crate) fn objects(titled: &[(String, String)]) -> String {
    let mut text = String::new();
    for (title, yaml) in titled.iter().take(MOST_OBJECTS) {
        let _ = write!(text, "--- {title}\n{yaml}");
    }
    if let Some(more @ 1..) = titled.len().checked_sub(MOST_OBJECTS) {
        let _ = writeln!(text, "--- and {more} more");
    }
    text
}

/// The Events of a namespace now, or why they cannot be had.
pub(crate) async fn events_in(client: &Client, namespace: &str) -> String {
    let api = Api::<Event>::namespaced(client.clone(), namespace);
    match tokio::time::timeout(EVENTS_DEADLINE, api.list(&ListParams::default())).await {
        Ok(Ok(list)) => format!("--- Events in namespace `{namespace}`\n{}", events(list.items, Timestamp::now())),
        Ok(Err(error)) => format!("--- the Events in namespace `{namespace}` cannot be listed: {error}\n"),
        Err(_) => format!("--- the Events in namespace `{namespace}` did not come within {EVENTS_DEADLINE:?}\n"),
    }
}

fn events(mut events: Vec<Event>, now: Timestamp) -> String {
    if events.is_empty() {
        return "(none)\n".to_owned();
    }
    events.sort_by_key(last_seen);
    let mut text = String::new();
    for event in &events {
        let age = last_seen(event).map_or("?".to_owned(), |then| age(now.duration_since(then)));
        let about = &event.involved_object;
        let count = event.count.filter(|count| *count > 1).map(|count| format!(" (x{count})")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{age:>7} ago  {:7} {:22} {}/{}: {}{count}",
            event.type_.as_deref().unwrap_or("-"),
            event.reason.as_deref().unwrap_or("-"),
            about.kind.as_deref().unwrap_or("-"),
            about.name.as_deref().unwrap_or("-"),
            event.message.as_deref().unwrap_or("-").trim_end(),
        );
    }
    text
}

/// Old style Events have `lastTimestamp`, new style ones `eventTime`.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    last.or(event.event_time.as_ref().map(|time| time.0)).or(event
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0))
}

fn age(age: SignedDuration) -> String {
    format!("{:.1}s", age.as_secs_f64().max(0.0))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::{ConfigMap, ObjectReference},
        apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, MicroTime, Time},
    };

    use super::*;

    #[test]
    fn an_object_is_shown_as_yaml_without_its_managed_fields() {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("chart".into());
        map.metadata.managed_fields = Some(vec![ManagedFieldsEntry::default()]);
        map.data = Some([("depth".to_owned(), "7 fathoms".to_owned())].into());
        let yaml = object(&map);
        assert!(yaml.contains("kind: ConfigMap\n"), "{yaml}");
        assert!(yaml.contains("depth: 7 fathoms\n"), "{yaml}");
        assert!(!yaml.contains("managedFields"), "{yaml}");
    }

    #[test]
    fn a_long_object_is_cut_and_says_so() {
        let mut map = ConfigMap::default();
        map.data = Some((0..MOST_LINES + 50).map(|n| (format!("key-{n:04}"), "v".to_owned())).collect());
        let yaml = object(&map);
        assert_eq!(yaml.lines().count(), MOST_LINES + 1);
        assert!(yaml.ends_with(" more lines\n"), "{yaml}");
    }

    #[test]
    fn events_are_shown_oldest_first_with_their_age_and_count() {
        let now = Timestamp::from_second(1_000).unwrap();
        let event = |reason: &str, count| Event {
            type_: Some("Warning".into()),
            reason: Some(reason.into()),
            message: Some("no such volume\n".into()),
            count,
            involved_object: ObjectReference {
                kind: Some("Pod".into()),
                name: Some("box".into()),
                ..Default::default()
            },
            ..Default::default()
        };
        let late = Event { last_timestamp: Some(Time(Timestamp::from_second(998).unwrap())), ..event("Late", Some(3)) };
        let early = Event { event_time: Some(MicroTime(Timestamp::from_second(990).unwrap())), ..event("Early", None) };
        let text = events(vec![late, early], now);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            ["10.0s ago Warning Early Pod/box: no such volume", "2.0s ago Warning Late Pod/box: no such volume (x3)"]
        );
    }

    #[test]
    fn no_events_are_said_to_be_none() {
        assert_eq!(events(vec![], Timestamp::UNIX_EPOCH), "(none)\n");
    }
}
