//! Events (events.k8s.io/v1), written one by one. The same again, by whomever, is counted in the first one's series.

use std::{sync::Arc, time::Duration};

use boathook_decide::{Gravity, Report};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    error_class::{Classified, ErrorClass, chain},
    metrics::Metrics,
};

/// The API server takes no longer ones.
const LONGEST_NOTE: usize = 1024;

/// A name has at most 253 characters; a dot and the digest follow.
const LONGEST_NAME: usize = 253 - 17;

const AT_ONCE: usize = 8;

/// An Event that waits longer for its place is of no use.
const DEADLINE: Duration = Duration::from_secs(10);

/// Whoever is frozen waits for what runs, and nobody for an Event: it gives way to that, no longer than this.
const GIVES_WAY: Duration = Duration::from_secs(3);

/// One Event to be written.
pub(crate) struct Tale {
    /// When it happened.
    pub(crate) time: Timestamp,
    pub(crate) told: Instant,
    pub(crate) regarding: ObjectReference,
    pub(crate) related: Option<ObjectReference>,
    pub(crate) report: Report,
}

pub(crate) struct Writer {
    client: Client,
    component: &'static str,
    identity: String,
    metrics: Arc<Metrics>,
}

impl Writer {
    pub(crate) fn new(client: Client, component: &'static str, identity: &str, metrics: Arc<Metrics>) -> Self {
        Self { client, component, identity: identity.to_owned(), metrics }
    }

    /// Until there is nobody left who could tell anything.
    pub(crate) async fn run(self, mut tales: mpsc::Receiver<Tale>) {
        let tales = stream::poll_fn(move |context| tales.poll_recv(context));
        tales
            .for_each_concurrent(AT_ONCE, async |tale| {
                // Late or in a quiet moment, it is written.
                let _ = tokio::time::timeout_at(tale.told + GIVES_WAY, self.metrics.nothing_in_flight()).await;
                let outcome = tokio::time::timeout(DEADLINE, self.write(&tale)).await;
                let error = match outcome {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) => chain(&error),
                    Err(_) => "the API server did not answer in time".to_owned(),
                };
                tracing::debug!(reason = tale.report.reason, error, "failed to write an Event");
                self.metrics.event_lost();
            })
            .await;
    }

    async fn write(&self, tale: &Tale) -> kube::Result<()> {
        let namespace = tale.regarding.namespace.as_deref().unwrap_or("default");
        let api = Api::<Event>::namespaced(self.client.clone(), namespace);
        let event = self.event(tale);
        match api.create(&PostParams::default(), &event).await {
            Err(error) if error.class() == ErrorClass::AlreadyExists => {}
            outcome => return outcome.map(drop),
        }
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let before = api.get(name).await?.series.map_or(1, |series| series.count);
        let series = json!({"series": {"count": before.saturating_add(1), "lastObservedTime": event.event_time}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(series)).await.map(drop)
    }

    fn event(&self, tale: &Tale) -> Event {
        let Tale { time, told: _, regarding, related, report } = tale;
        let name = regarding.name.as_deref().unwrap_or(self.component);
        let name = name.get(..LONGEST_NAME).unwrap_or(name);
        let type_ = match report.gravity {
            Gravity::Normal => "Normal",
            Gravity::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{}", digest(tale))),
                namespace: regarding.namespace.clone(),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(*time)),
            action: Some(report.action.to_owned()),
            reason: Some(report.reason.clone()),
            note: Some(shortened(&report.note)),
            regarding: Some(regarding.clone()),
            related: related.clone(),
            reporting_controller: Some(format!("boathook.dev/{}", self.component)),
            reporting_instance: Some(self.identity.clone()),
            type_: Some(type_.to_owned()),
            ..Event::default()
        }
    }
}

/// The same for what is told again of the same object.
fn digest(tale: &Tale) -> String {
    let Tale { time: _, told: _, regarding, related, report } = tale;
    let uid = |of: &ObjectReference| of.uid.clone().unwrap_or_default();
    let related = related.as_ref().map(uid).unwrap_or_default();
    let parts = [&uid(regarding), &related, report.action, &report.reason, &report.note];
    let digest = ring::digest::digest(&ring::digest::SHA256, parts.join("\0").as_bytes());
    digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shortened(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    let end = note.floor_char_boundary(LONGEST_NOTE - '…'.len_utf8());
    format!("{}…", &note[..end])
}
