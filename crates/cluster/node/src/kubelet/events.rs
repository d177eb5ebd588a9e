//! Events about pods, in the kubelet's words. One that repeats is counted, not written again.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use tokio::sync::mpsc;

use super::status::whole_seconds;

/// Events wait here; when the API server is so slow that it fills, further ones are lost, as on any node.
const WAITING: usize = 1000;

#[derive(Clone)]
pub(super) struct Events {
    send: mpsc::Sender<Event>,
    component: &'static str,
    host: String,
}

impl Events {
    pub(super) fn new(client: Client, component: &'static str, host: &str) -> Events {
        let (send, receive) = mpsc::channel(WAITING);
        tokio::spawn(write(client, receive));
        Events { send, component, host: host.to_owned() }
    }

    pub(super) fn normal(&self, pod: &Pod, container: Option<&str>, reason: &str, message: impl Into<String>) {
        self.publish(pod, container, "Normal", reason, message.into());
    }

    pub(super) fn warning(&self, pod: &Pod, container: Option<&str>, reason: &str, message: impl Into<String>) {
        self.publish(pod, container, "Warning", reason, message.into());
    }

    fn publish(&self, pod: &Pod, container: Option<&str>, type_: &str, reason: &str, message: String) {
        let now = Timestamp::now();
        let ObjectReference { api_version, kind, name, namespace, uid, resource_version, .. } = pod.object_ref(&());
        let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        let mut init = init.map(|container| container.name.as_str());
        let field_path = container.map(|container| {
            let list = if init.any(|init| init == container) { "initContainers" } else { "containers" };
            format!("spec.{list}{{{container}}}")
        });
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:x}", name.clone().unwrap_or_default(), now.as_nanosecond())),
                namespace: namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference { api_version, kind, name, namespace, uid, resource_version, field_path },
            type_: Some(type_.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message),
            count: Some(1),
            first_timestamp: Some(whole_seconds(now)),
            last_timestamp: Some(whole_seconds(now)),
            source: Some(EventSource { component: Some(self.component.to_owned()), host: Some(self.host.clone()) }),
            reporting_component: Some(self.component.to_owned()),
            reporting_instance: Some(self.host.clone()),
            ..Event::default()
        };
        self.send.try_send(event).ok();
    }
}

async fn write(client: Client, mut receive: mpsc::Receiver<Event>) {
    let mut written: HashMap<String, (String, i32)> = HashMap::new();
    while let Some(event) = receive.recv().await {
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
        let object = &event.involved_object;
        let key = format!("{:?}", (&object.uid, &object.field_path, &event.type_, &event.reason, &event.message));
        if let Some((name, count)) = written.get_mut(&key) {
            *count += 1;
            let last: &Option<Time> = &event.last_timestamp;
            let change = serde_json::json!({ "count": *count, "lastTimestamp": last });
            if events.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.is_ok() {
                continue;
            }
        }
        // As many as a kubelet remembers.
        if written.len() > 4096 {
            written.clear();
        }
        match events.create(&PostParams::default(), &event).await {
            Ok(_) => {
                written.insert(key, (event.metadata.name.unwrap_or_default(), 1));
            }
            Err(error) => tracing::debug!(%namespace, %error, "an event was lost"),
        }
    }
}
