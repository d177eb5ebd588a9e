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
        let mut written = HashMap::new();
        while let Some(report) = receiver.recv().await {
            if let Err(error) = write(&client, &report, &mut written).await {
                tracing::debug!("an event was lost: {error}");
            }
        }
    };
    (Events { component: "", sender }, write)
}

/// What makes two reports the same: about which object, and in which words.
type Sameness = (Option<String>, Weight, &'static str, String);

async fn write(
    client: &Client,
    report: &Report,
    written: &mut HashMap<Sameness, (String, i32)>,
) -> Result<(), kube::Error> {
    let now = Timestamp::now();
    // Events about cluster objects stand in `default`.
    let namespace = report.about.namespace.as_deref().unwrap_or("default");
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let sameness = (report.about.uid.clone(), report.weight, report.reason, report.message.clone());
    if let Some((name, count)) = written.get_mut(&sameness) {
        *count += 1;
        let again = json!({"count": *count, "lastTimestamp": Time(now)});
        return api.patch(name, &PatchParams::default(), &Patch::Merge(again)).await.map(drop);
    }
    let event = event(report, namespace, now);
    let name = event.metadata.name.clone().unwrap_or_default();
    api.create(&PostParams::default(), &event).await?;
    if written.len() >= REMEMBERED {
        written.clear();
    }
    written.insert(sameness, (name, 1));
    Ok(())
}

fn event(report: &Report, namespace: &str, now: Timestamp) -> Event {
    let name = format!("{}.{:x}", report.about.name.as_deref().unwrap_or_default(), now.as_nanosecond());
    Event {
        metadata: ObjectMeta { name: Some(name), namespace: Some(namespace.to_owned()), ..ObjectMeta::default() },
        involved_object: report.about.clone(),
        reason: Some(report.reason.to_owned()),
        message: Some(report.message.clone()),
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
