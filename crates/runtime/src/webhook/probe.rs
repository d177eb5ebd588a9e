//! A call of the webhooks through the API server, to know that it knows them, trusts them and reaches them.
//!
//! A PodNotification with an inline action is created in a dry run: nothing comes of it, but the webhook for such
//! objects must be asked. It refuses every probe, in words that say who did: so an API server that does not ask yet is
//! told from one that does. It needs no right but `create podnotifications`, which the controller has anyway.
//!
//! The API server generates the name of each probe: an existing object with a fixed name would make every probe fail with
//! `AlreadyExists`, and every user who may create PodNotifications in the namespace may create such an object.

use std::time::Duration;

use boathook_api::PodNotification;
use boathook_api::{pod_notification::PodNotificationSpec, words};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client, ResourceExt, api::PostParams, core::admission::AdmissionResponse};
use serde_json::json;
use tokio::time::Instant;

use super::server::{Ask, refuse};
use crate::in_time;

const NAME: &str = "webhook-probe";

/// What every refusal of a probe says.
const ANSWER: &str = "the probe was answered by";

/// The API server waits for webhooks 10 s.
const DEADLINE: Duration = Duration::from_secs(12);

/// An API server needs some seconds to ask new webhooks: the log warns of failures that last longer.
const WARN_AFTER: Duration = Duration::from_secs(10);

/// How often the log repeats the warning.
const WARN_EVERY: Duration = Duration::from_secs(60);

pub(super) struct Probe {
    api: Api<PodNotification>,
    identity: String,
}

impl Probe {
    pub(super) fn new(client: Client, namespace: &str, identity: String) -> Self {
        Self { api: Api::namespaced(client, namespace), identity }
    }

    /// Whether a webhook of ours was asked; else why not.
    pub(super) async fn call(&self) -> Result<(), String> {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let object = self.object();
        match tokio::time::timeout(DEADLINE, self.api.create(&params, &object)).await {
            Err(_) => Err("the API server did not answer in time".to_owned()),
            Ok(Ok(_)) => Err("the API server does not yet call the webhooks".to_owned()),
            Ok(Err(kube::Error::Api(status))) if status.message.contains(ANSWER) => Ok(()),
            Ok(Err(error)) => Err(crate::error_class::chain(&error)),
        }
    }

    /// The API server's clock, in whole seconds: the creation time of an object that it is asked to create in a dry run.
    /// Nothing in that object is for a webhook to check.
    pub(super) async fn time(&self) -> Result<Timestamp, String> {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let created = in_time(self.api.create(&params, &object(json!({"podName": NAME, "notifier": NAME})))).await;
        let created = created.map_err(|error| crate::error_class::chain(&error))?;
        let Time(time) =
            created.creation_timestamp().ok_or("the API server returned an object without a creation time")?;
        Ok(time)
    }

    fn object(&self) -> PodNotification {
        let mut object = object(json!({"podName": NAME, "action": {"exec": {"command": ["true"]}}}));
        object.annotations_mut().insert(words::WEBHOOK_PROBE.to_owned(), self.identity.clone());
        object
    }
}

/// A PodNotification with a generated name.
fn object(spec: serde_json::Value) -> PodNotification {
    let spec: PodNotificationSpec = serde_json::from_value(spec).expect("the probe is a PodNotification");
    let mut object = PodNotification::new("", spec);
    (object.metadata.name, object.metadata.generate_name) = (None, Some(format!("{NAME}-")));
    object
}

/// Failures of the probe since it last succeeded.
#[derive(Default)]
pub(super) struct Failures {
    first: Option<Instant>,
    warned: Option<Instant>,
}

impl Failures {
    /// Adds one. Returns whether the log should warn of it.
    pub(super) fn add(&mut self, now: Instant) -> bool {
        let first = *self.first.get_or_insert(now);
        let warns = now >= self.warned.map_or(first + WARN_AFTER, |warned| warned + WARN_EVERY);
        if warns {
            self.warned = Some(now);
        }
        warns
    }
}

/// Whose probe it is, if it is one.
pub(super) fn of(ask: &Ask) -> Option<&str> {
    let object = ask.object.as_ref().filter(|_| ask.dry_run)?;
    object.annotations().get(words::WEBHOOK_PROBE).map(String::as_str)
}

/// Nobody gains by a probe: it is always refused.
pub(super) fn answer(ask: &Ask, identity: &str) -> AdmissionResponse {
    refuse(ask, 403, "Forbidden", format!("{ANSWER} `{identity}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_failure_of_the_probe_is_warned_of_once_a_minute() {
        let begun = Instant::now();
        let mut failures = Failures::default();
        let warned: Vec<u64> = (0..200).filter(|second| failures.add(begun + Duration::from_secs(*second))).collect();
        assert_eq!(warned, [10, 70, 130, 190]);
    }
}
