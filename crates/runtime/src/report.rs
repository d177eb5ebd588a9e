//! What happened, told once: each report becomes a count, a line of the log, and an Event of the object, and of its pod
//! too if it is about that. (Conditions are written with the status, by whoever decided.)
//!
//! Telling never fails and never waits: Events are written by a task of its own, and what it cannot write is counted.

use std::sync::Arc;

use boathook_api::{
    ApplicationSnapshot, DeploymentLifecycle, ExecutionHook, Notification, PodNotification,
    volume_snapshot::VolumeSnapshot,
};
use boathook_decide::{About, Gravity, Report};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, ResourceExt};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    events::{Tale, Writer},
    metrics::Metrics,
};

/// More wait for nobody: a burst of a thousand notifications, each with a few Events, fits.
const MOST_WAITING: usize = 8192;

/// An object that reports are about.
pub trait Reported: Resource<DynamicType = ()> {
    /// What it is about, if that is known: a pod, a Deployment.
    fn subject(&self) -> Option<ObjectReference>;
}

impl Reported for PodNotification {
    fn subject(&self) -> Option<ObjectReference> {
        // Not before it is pinned: until then it may be another one.
        let uid = self.status.as_ref()?.pod_uid.clone()?;
        Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(self.spec.pod_name.clone()),
            namespace: self.namespace(),
            uid: Some(uid),
            ..ObjectReference::default()
        })
    }
}

impl Reported for Notification {
    fn subject(&self) -> Option<ObjectReference> {
        None
    }
}

/// Of each of its pods its PodNotification tells.
impl Reported for ExecutionHook {
    fn subject(&self) -> Option<ObjectReference> {
        None
    }
}

impl Reported for ApplicationSnapshot {
    fn subject(&self) -> Option<ObjectReference> {
        None
    }
}

impl Reported for VolumeSnapshot {
    fn subject(&self) -> Option<ObjectReference> {
        None
    }
}

impl Reported for DeploymentLifecycle {
    fn subject(&self) -> Option<ObjectReference> {
        Some(ObjectReference {
            api_version: Some("apps/v1".to_owned()),
            kind: Some("Deployment".to_owned()),
            name: self.metadata.name.clone(),
            namespace: self.namespace(),
            uid: Some(self.status.as_ref()?.deployment_uid.clone()?),
            ..ObjectReference::default()
        })
    }
}

/// Takes reports; cheap to copy. By default it only counts them.
#[derive(Clone, Default)]
pub struct Reporter {
    metrics: Arc<Metrics>,
    events: Option<mpsc::Sender<Tale>>,
}

impl Reporter {
    /// `component` tells Events by their author, such as `boathook-controller`; `identity` is this process. What is
    /// returned besides is to be run: it writes the Events, until the last copy of the reporter is gone.
    pub fn new(
        client: Client,
        component: &'static str,
        identity: &str,
        metrics: Arc<Metrics>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, tales) = mpsc::channel(MOST_WAITING);
        let writer = Writer::new(client, component, identity, Arc::clone(&metrics));
        (Self { metrics, events: Some(sender) }, writer.run(tales))
    }

    pub fn report<K: Reported>(&self, object: &K, reports: Vec<Report>) {
        let regarding = object.object_ref(&());
        let (time, told) = (Timestamp::now(), Instant::now());
        for report in reports {
            self.metrics.report(&K::kind(&()), &report);
            let named = format!("{} {}/{}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any());
            match report.gravity {
                Gravity::Normal => tracing::info!(object = named, reason = report.reason, "{}", report.note),
                Gravity::Warning => tracing::warn!(object = named, reason = report.reason, "{}", report.note),
            }
            let pod = match report.about {
                About::Object => None,
                About::ObjectAndSubject => object.subject(),
            };
            if let Some(pod) = pod.clone() {
                self.send(Tale {
                    time,
                    told,
                    regarding: pod,
                    related: Some(regarding.clone()),
                    report: report.clone(),
                });
            }
            self.send(Tale { time, told, regarding: regarding.clone(), related: pod, report });
        }
    }

    fn send(&self, tale: Tale) {
        if let Some(events) = &self.events
            && events.try_send(tale).is_err()
        {
            self.metrics.event_lost();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::events::v1::Event;
    use kube::{
        Api,
        api::{ListParams, PostParams},
    };
    use serde_json::json;

    use super::*;
    use crate::test_cluster::{Trouble, client_with_kinds, disturbed};

    fn report(note: &str) -> Report {
        Report {
            about: About::ObjectAndSubject,
            gravity: Gravity::Warning,
            reason: "HandlerFailed".to_owned(),
            action: "Run",
            note: note.to_owned(),
        }
    }

    async fn notification(client: &Client) -> PodNotification {
        let spec = serde_json::from_value(json!({"podName": "db-0", "notifier": "reload"})).unwrap();
        let api = Api::namespaced(client.clone(), "default");
        let mut made = api.create(&PostParams::default(), &PodNotification::new("a", spec)).await.unwrap();
        made.status = Some(serde_json::from_value(json!({"podUID": "1-2-3"})).unwrap());
        made
    }

    async fn in_time(writing: impl Future<Output = ()>) {
        tokio::time::timeout(Duration::from_secs(60), writing).await.expect("the Events are not written");
    }

    #[tokio::test]
    async fn a_report_is_an_event_of_the_object_and_of_its_pod_and_the_same_again_is_a_series() {
        let client = client_with_kinds().await;
        let object = notification(&client).await;
        for _ in 0..3 {
            // Each time another process.
            let (reporter, writing) = Reporter::new(client.clone(), "boathook-controller", "host-1", Arc::default());
            reporter.report(&object, vec![report("exit code 1")]);
            drop(reporter);
            in_time(writing).await;
        }
        let events = Api::<Event>::namespaced(client, "default").list(&ListParams::default()).await.unwrap().items;
        let mut told: Vec<_> = events.iter().map(|event| event.regarding.clone().unwrap()).collect();
        told.sort_by_key(|regarding| regarding.kind.clone());
        assert_eq!(told.len(), 2, "{events:#?}");
        assert_eq!((told[0].kind.as_deref(), told[0].uid.as_deref()), (Some("Pod"), Some("1-2-3")));
        assert_eq!((told[1].kind.as_deref(), told[1].uid.clone()), (Some("PodNotification"), object.uid()));
        for event in events {
            assert_eq!(event.series.map(|series| series.count), Some(3));
            assert_eq!(event.type_.as_deref(), Some("Warning"));
            assert_eq!((event.reason.as_deref(), event.action.as_deref()), (Some("HandlerFailed"), Some("Run")));
        }
    }

    #[tokio::test]
    async fn an_event_gives_way_to_what_runs_and_not_for_long() {
        let client = client_with_kinds().await;
        let object = notification(&client).await;
        let events = Api::<Event>::namespaced(client.clone(), "default");
        let metrics = Arc::new(Metrics::default());
        let run = metrics.run_begun(crate::metrics::Purpose::Handler);
        let (reporter, writing) = Reporter::new(client, "boathook-controller", "host-1", Arc::clone(&metrics));
        let told = Instant::now();
        reporter.report(&object, vec![report("exit code 1")]);
        drop(reporter);
        in_time(writing).await;
        assert!(told.elapsed() >= Duration::from_secs(1), "it did not give way");
        drop(run);
        let listed = events.list(&ListParams::default()).await.unwrap().items;
        assert_eq!(listed.len(), 2, "and is written all the same: {listed:#?}");
    }

    #[tokio::test]
    async fn a_note_of_any_length_is_told_and_what_cannot_be_written_is_counted() {
        let client = client_with_kinds().await;
        let object = notification(&client).await;
        let metrics = Arc::new(Metrics::default());
        let trouble = Arc::new(Trouble::default());
        trouble.lost_requests.store(1, std::sync::atomic::Ordering::SeqCst);
        let line = disturbed(client.clone(), trouble);
        let (reporter, writing) = Reporter::new(line, "boathook-controller", "host-1", Arc::clone(&metrics));
        reporter.report(&object, vec![report(&"ä".repeat(5000))]);
        drop(reporter);
        in_time(writing).await;
        let events = Api::<Event>::namespaced(client, "default").list(&ListParams::default()).await.unwrap().items;
        assert_eq!(events.len(), 1);
        assert!(events[0].note.as_ref().unwrap().ends_with('…'));
        assert!(metrics.render().contains("boathook_events_lost_total 1"));
    }
}
