//! Events: what controllers and the node tell people about an object. Written in order by one task; a loss harms nobody.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;

/// Events that wait to be written; when the API server is so slow that it fills, further ones are lost.
const WAITING: usize = 1000;

/// Events remembered to count repetitions, as many as the native recorder remembers.
const REMEMBERED: usize = 4096;

/// So many different messages for one reason about one object; further ones become a single event.
const VARIETY: usize = 10;
const COMBINED: &str = "(combined from similar events): ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Normal,
    Warning,
}

/// The pen of one component.
#[derive(Clone)]
pub struct Events {
    source: EventSource,
    sender: mpsc::Sender<Event>,
}

impl Events {
    /// The pen, and what writes with it for ever.
    pub fn new(client: Client) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, mut receiver) = mpsc::channel(WAITING);
        let write = async move {
            let mut written = Written::default();
            while let Some(event) = receiver.recv().await {
                if let Err(error) = written.write(&client, event).await {
                    tracing::debug!("an event was lost: {error}");
                }
            }
        };
        (Self { source: EventSource::default(), sender }, write)
    }

    /// The same pen in the hand of this component, on this host if it has one.
    pub fn of(&self, component: &str, host: Option<&str>) -> Self {
        let source = EventSource { component: Some(component.to_owned()), host: host.map(str::to_owned) };
        Self { source, sender: self.sender.clone() }
    }

    pub fn report<K>(&self, about: &K, weight: Weight, reason: &str, message: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        let about = ObjectReference { resource_version: about.resource_version(), ..about.object_ref(&()) };
        self.report_on(about, weight, reason, message);
    }

    /// For a part of an object.
    pub fn report_on(&self, about: ObjectReference, weight: Weight, reason: &str, message: impl Into<String>) {
        let now = Timestamp::now();
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", about.name.as_deref().unwrap_or_default(), now.as_nanosecond())),
                // Events about cluster objects stand in `default`.
                namespace: about.namespace.clone().or_else(|| Some("default".to_owned())),
                ..ObjectMeta::default()
            },
            involved_object: about,
            type_: Some(format!("{weight:?}")),
            reason: Some(reason.to_owned()),
            message: Some(message.into()),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            reporting_component: self.source.component.clone(),
            reporting_instance: Some(self.source.host.clone().unwrap_or_default()),
            source: Some(self.source.clone()),
            ..Event::default()
        };
        // Nobody reads any more only while everything ends.
        let _ = self.sender.try_send(event);
    }
}

/// What was written lately.
#[derive(Default)]
struct Written {
    /// Name and count of each event, by topic and words.
    events: HashMap<(String, String), (String, i32)>,
    variety: HashMap<String, usize>,
}

impl Written {
    async fn write(&mut self, client: &Client, mut event: Event) -> kube::Result<()> {
        let api: Api<Event> = Api::namespaced(client.clone(), &event.namespace().unwrap_or_default());
        let sameness = self.sameness(&mut event);
        if let Some((name, count)) = self.events.get_mut(&sameness) {
            *count += 1;
            let again = json!({"count": *count, "lastTimestamp": event.last_timestamp, "message": event.message});
            // It may have expired: then this one is new.
            if api.patch(name, &PatchParams::default(), &Patch::Merge(again)).await.is_ok() {
                return Ok(());
            }
        }
        api.create(&PostParams::default(), &event).await?;
        self.events.insert(sameness, (event.name_any(), 1));
        Ok(())
    }

    /// Under which topic and words an event is counted: its own words, or those of all that are too many.
    fn sameness(&mut self, event: &mut Event) -> (String, String) {
        if self.events.len() >= REMEMBERED {
            *self = Self::default();
        }
        let (about, message) = (&event.involved_object, event.message.get_or_insert_default());
        let topic = format!("{:?}", (&about.uid, &event.source, &event.type_, &event.reason));
        let words = format!("{:?}", (&about.field_path, &message));
        let sameness = (topic.clone(), words);
        if self.events.contains_key(&sameness) {
            return sameness;
        }
        let variety = self.variety.entry(topic.clone()).or_default();
        *variety += 1;
        if *variety <= VARIETY {
            return sameness;
        }
        message.insert_str(0, COMBINED);
        (topic, COMBINED.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_about_which_version_of_its_object_it_is() {
        let (sender, mut receiver) = mpsc::channel(1);
        let events = Events { source: EventSource::default(), sender }.of("scheduler", None);
        let mut pod = k8s_openapi::api::core::v1::Pod::default();
        pod.metadata.resource_version = Some("7".to_owned());
        events.report(&pod, Weight::Normal, "Scheduled", "here");
        let event = receiver.try_recv().unwrap();
        assert_eq!(event.involved_object.resource_version.as_deref(), Some("7"));
        assert_eq!(event.reporting_component.as_deref(), Some("scheduler"));
    }

    #[test]
    fn too_many_different_messages_for_one_reason_become_one_event() {
        let mut written = Written::default();
        let mut count = |reason: &str, message: &str| {
            let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
            let mut event = Event { reason, message, ..Event::default() };
            let sameness = written.sameness(&mut event);
            written.events.insert(sameness.clone(), (String::new(), 1));
            (sameness, event.message.unwrap())
        };
        for number in 0..VARIETY {
            let message = format!("no {number}");
            assert_eq!(count("FailedCreate", &message).1, message);
        }
        assert_eq!(count("FailedCreate", "no 0").1, "no 0", "a repetition is counted where it stands");
        let (one, said) = count("FailedCreate", "no more");
        assert_eq!(said, "(combined from similar events): no more");
        assert_eq!(count("FailedCreate", "and no more").0, one);
        assert_eq!(count("SuccessfulCreate", "yes").1, "yes");
    }
}
