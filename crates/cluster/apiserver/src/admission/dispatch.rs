//! All webhooks of a cluster: which are called for a request, in which order, and what comes of it.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::Instant;

use super::call::Resolve;
use super::review;
use super::webhook::{Failure, Phase, Webhook};
use super::{Request, Warning};
use crate::object;
use crate::status::{Result, Status};

#[derive(Default)]
pub struct Webhooks {
    mutating: Vec<Webhook>,
    validating: Vec<Webhook>,
}

impl Webhooks {
    /// From every `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration` there is, in any order.
    pub fn build<'a>(configurations: impl IntoIterator<Item = &'a Value>, resolve: &Resolve) -> Self {
        let mut configurations: Vec<&Value> = configurations.into_iter().collect();
        configurations.sort_by_key(|configuration| object::name(configuration));
        let mut webhooks = Self::default();
        for configuration in configurations {
            let (list, phase) = match object::kind(configuration) {
                "MutatingWebhookConfiguration" => (&mut webhooks.mutating, Phase::Mutating),
                "ValidatingWebhookConfiguration" => (&mut webhooks.validating, Phase::Validating),
                _ => continue,
            };
            let hooks = object::list(configuration, "/webhooks").iter();
            list.extend(hooks.map(|webhook| Webhook::parse(phase, webhook, resolve)));
        }
        webhooks
    }

    pub fn can_mutate(&self) -> bool {
        !self.mutating.is_empty()
    }

    /// The object as the mutating webhooks make it. `object` stands for the request's (`Null` where there is none);
    /// `namespace` is the request's stored Namespace. What comes back must be defaulted and checked again.
    pub async fn mutate(
        &self,
        request: &Request<'_>,
        mut object: Value,
        namespace: Option<&Value>,
    ) -> Result<(Value, Vec<Warning>)> {
        let mut warnings = Vec::new();
        if !self.can_mutate() || is_exempt(request) {
            return Ok((object, warnings));
        }
        let sent = review::request(request);
        // A reinvocable webhook that was called before another one changed the object is called once more.
        let (mut called, mut again) = (BTreeSet::new(), BTreeSet::new());
        let mut is_changed = false;
        for round in 0..2 {
            for (index, webhook) in self.mutating.iter().enumerate() {
                if round == 1 && !again.contains(&index) {
                    continue;
                }
                if !webhook.wants(request, &object, &sent, namespace)? {
                    continue;
                }
                match webhook.call(request, &object, &sent).await {
                    Ok(answer) => {
                        warnings.extend(answer.warnings);
                        let patched = answer.patch.map(|patch| webhook.patched(&object, &patch)).transpose()?;
                        if let Some(patched) = patched.filter(|patched| *patched != object) {
                            object = patched;
                            is_changed = true;
                            again.append(&mut called);
                        }
                    }
                    Err(failure) => settle(webhook, failure, request)?,
                }
                if webhook.is_reinvocable {
                    called.insert(index);
                }
            }
            if !is_changed {
                break;
            }
        }
        Ok((object, warnings))
    }

    /// Whether the validating webhooks let the request's object pass as it is.
    pub async fn validate(&self, request: &Request<'_>, namespace: Option<&Value>) -> Result<Vec<Warning>> {
        if self.validating.is_empty() || is_exempt(request) {
            return Ok(Vec::new());
        }
        let sent = review::request(request);
        let object = request.object.unwrap_or(&Value::Null);
        let mut asked = Vec::new();
        for webhook in &self.validating {
            if webhook.wants(request, object, &sent, namespace)? {
                asked.push(webhook);
            }
        }
        let answers = join_all(asked.iter().map(|webhook| webhook.call(request, object, &sent))).await;
        let mut warnings = Vec::new();
        for (webhook, answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok(answer) => warnings.extend(answer.warnings),
                Err(failure) => settle(webhook, failure, request)?,
            }
        }
        Ok(warnings)
    }
}

/// A webhook must not be able to lock out the change of its own configuration.
fn is_exempt(request: &Request<'_>) -> bool {
    request.resource.group == "admissionregistration.k8s.io"
}

/// Goes on where the failure policy allows it and there is time left.
fn settle(webhook: &Webhook, failure: Failure, request: &Request<'_>) -> Result<()> {
    match failure {
        Failure::Refused(status) => Err(status),
        Failure::Call(why) if !webhook.fails_open => Err(webhook.failed(&why)),
        Failure::Call(_) if Instant::now() >= request.deadline => {
            Err(Status::timeout("Timeout: request did not complete within requested timeout"))
        }
        Failure::Call(_) => Ok(()),
    }
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
