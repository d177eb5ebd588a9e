//! Events: what a controller tells people about an object. Written in order by one task; a loss harms nobody.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::sync::mpsc;

/// Events remembered to count repetitions.
const REMEMBERED: usize = 1000;

/// So many different messages for one reason about one object; further ones become a single event.
const VARIETY: usize = 10;
const COMBINED: &str = "(combined from similar events): ";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Weight {
    Normal,
    Warning,
}

struct Report {
    component: &'static str,
    about: ObjectReference,
    weight: Weight,
    reason: &'static str,
    message: String,
}

/// The pen of one controller.
#[derive(Clone)]
pub(crate) struct Events {
    component: &'static str,
    sender: mpsc::UnboundedSender<Report>,
}

impl Events {
    pub(crate) fn of(&self, component: &'static str) -> Self {
        Self { component, sender: self.sender.clone() }
    }

    pub(crate) fn report<K>(&self, about: &K, weight: Weight, reason: &'static str, message: String)
    where
        K: Resource<DynamicType = ()>,
    {
        let mut about = about.object_ref(&());
        about.resource_version = about.resource_version.filter(|version| !version.is_empty());
        // Nobody reads any more only while everything ends.
        let _ = self.sender.send(Report { component: self.component, about, weight, reason, message });
    }
}

/// The pen, and what writes with it for ever.
pub(crate) fn channel(client: Client) -> (Events, impl Future<Output = ()>) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let write = async move {
        let mut written = Written::default();
        while let Some(report) = receiver.recv().await {
            if let Err(error) = write(&client, &report, &mut written).await {
                tracing::debug!("an event was lost: {error}");
            }
        }
    };
    (Events { component: "", sender }, write)
}

/// About which object, for which reason.
type Topic = (Option<String>, Weight, &'static str);

/// What was written lately.
#[derive(Default)]
struct Written {
    /// Name and count of each event, by topic and words.
    events: HashMap<(Topic, String), (String, i32)>,
    variety: HashMap<Topic, usize>,
}

impl Written {
    /// The words under which a report is counted: its own, or those of all that are too many.
    fn words(&mut self, topic: &Topic, message: &str) -> String {
        if self.events.len() >= REMEMBERED {
            *self = Self::default();
        }
        if self.events.contains_key(&(topic.clone(), message.to_owned())) {
            return message.to_owned();
        }
        let variety = self.variety.entry(topic.clone()).or_default();
        *variety += 1;
        if *variety > VARIETY { COMBINED.to_owned() } else { message.to_owned() }
    }
}

async fn write(client: &Client, report: &Report, written: &mut Written) -> Result<(), kube::Error> {
    let now = Timestamp::now();
    // Events about cluster objects stand in `default`.
    let namespace = report.about.namespace.as_deref().unwrap_or("default");
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let topic = (report.about.uid.clone(), report.weight, report.reason);
    let words = written.words(&topic, &report.message);
    let prefix = if words == COMBINED { COMBINED } else { "" };
    let message = format!("{prefix}{}", report.message);
    let sameness = (topic, words);
    if let Some((name, count)) = written.events.get_mut(&sameness) {
        *count += 1;
        let again = json!({"count": *count, "lastTimestamp": Time(now), "message": message});
        let outcome = api.patch(name, &PatchParams::default(), &Patch::Merge(again)).await;
        if outcome.is_err() {
            // It may have expired: the next one is new.
            written.events.remove(&sameness);
        }
        return outcome.map(drop);
    }
    let event = Event { message: Some(message), ..event(report, namespace, now) };
    let name = event.metadata.name.clone().unwrap_or_default();
    api.create(&PostParams::default(), &event).await?;
    written.events.insert(sameness, (name, 1));
    Ok(())
}

fn event(report: &Report, namespace: &str, now: Timestamp) -> Event {
    let name = format!("{}.{:x}", report.about.name.as_deref().unwrap_or_default(), now.as_nanosecond());
    Event {
        metadata: ObjectMeta { name: Some(name), namespace: Some(namespace.to_owned()), ..ObjectMeta::default() },
        involved_object: report.about.clone(),
        reason: Some(report.reason.to_owned()),
        source: Some(EventSource { component: Some(report.component.to_owned()), host: None }),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        type_: Some(format!("{:?}", report.weight)),
        reporting_component: Some(report.component.to_owned()),
        reporting_instance: Some(String::new()),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_different_messages_for_one_reason_become_one_event() {
        let mut written = Written::default();
        let topic: Topic = (Some("uid".to_owned()), Weight::Warning, "FailedCreate");
        for number in 0..VARIETY {
            let message = format!("no {number}");
            assert_eq!(written.words(&topic, &message), message);
            written.events.insert((topic.clone(), message), (String::new(), 1));
        }
        assert_eq!(written.words(&topic, "no 0"), "no 0", "a repetition is counted where it stands");
        assert_eq!(written.words(&topic, "no more"), COMBINED);
        let other: Topic = (Some("uid".to_owned()), Weight::Normal, "SuccessfulCreate");
        assert_eq!(written.words(&other, "yes"), "yes");
    }
}
