//! A call of the webhooks through the API server, to know that it knows them, trusts them and reaches them.
//!
//! A PodNotification with an inline action is created in a dry run: nothing comes of it, but the webhook for such
//! objects must be asked. It refuses every probe, in words that say who did: so an API server that does not ask yet is
//! told from one that does. It needs no right but `create podnotifications`, which the controller has anyway.

use std::time::Duration;

use boathook_api::PodNotification;
use boathook_api::{pod_notification::PodNotificationSpec, words};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client, ResourceExt, api::PostParams, core::admission::AdmissionResponse};
use serde_json::json;

use super::server::{Ask, refuse};
use crate::in_time;

const NAME: &str = "webhook-probe";

/// What every refusal of a probe says.
const ANSWER: &str = "the probe was answered by";

/// The API server waits for webhooks 10 s.
const DEADLINE: Duration = Duration::from_secs(12);

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
            Err(_) => Err("no answer in time".to_owned()),
            Ok(Ok(_)) => Err("the API server does not ask the webhooks yet".to_owned()),
            Ok(Err(kube::Error::Api(status))) if status.message.contains(ANSWER) => Ok(()),
            Ok(Err(error)) => Err(crate::error_class::chain(&error)),
        }
    }

    /// The API server's clock, in whole seconds: the creation time of an object that it is asked to create in a dry run.
    /// Nothing in that object is for a webhook to check.
    pub(super) async fn time(&self) -> Result<Timestamp, String> {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let spec = json!({"podName": NAME, "notifier": NAME});
        let spec: PodNotificationSpec = serde_json::from_value(spec).expect("this is a PodNotification");
        let created = in_time(self.api.create(&params, &PodNotification::new(NAME, spec))).await;
        let created = created.map_err(|error| crate::error_class::chain(&error))?;
        let Time(time) = created.creation_timestamp().ok_or("the API server does not tell the time")?;
        Ok(time)
    }

    fn object(&self) -> PodNotification {
        let spec = json!({"podName": NAME, "action": {"exec": {"command": ["true"]}}});
        let spec: PodNotificationSpec = serde_json::from_value(spec).expect("the probe is a PodNotification");
        let mut object = PodNotification::new(NAME, spec);
        object.annotations_mut().insert(words::WEBHOOK_PROBE.to_owned(), self.identity.clone());
        object
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
