//! One webhook of a configuration, compiled: whether it wants to see a request, and one call of it.

use serde_json::Value;
use tokio::time::Duration;

use super::call::{Endpoint, Resolve, deadline};
use super::conditions::{Conditions, Match};
use super::review::{self, Answer};
use super::rule::Rule;
use super::{Operation, Request};
use crate::object;
use crate::random;
use crate::selector::LabelSelector;
use crate::status::{GroupResource, Result, Status};

const DEFAULT_TIMEOUT: u64 = 10;
const LONGEST_TIMEOUT: u64 = 30;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

pub(super) struct Webhook {
    name: String,
    phase: Phase,
    rules: Vec<Rule>,
    /// Of the namespace, and of the object.
    selectors: std::result::Result<(LabelSelector, LabelSelector), String>,
    conditions: Conditions,
    /// `failurePolicy: Ignore`.
    pub(super) fails_open: bool,
    timeout: Duration,
    has_side_effects: bool,
    accepts_v1: bool,
    /// `reinvocationPolicy: IfNeeded`.
    pub(super) is_reinvocable: bool,
    endpoint: std::result::Result<Endpoint, String>,
}

/// Why a call did not end with leave.
#[derive(Debug)]
pub(super) enum Failure {
    /// It could not be asked, or did not answer properly: the failure policy decides.
    Call(String),
    /// It said no, or what it said cannot be done.
    Refused(Status),
}

impl Failure {
    /// What goes wrong before there is an answer.
    pub(super) fn call(why: String) -> Self {
        Self::Call(format!("failed to call webhook: {why}"))
    }
}

impl Webhook {
    pub(super) fn parse(phase: Phase, webhook: &Value, resolve: &Resolve) -> Self {
        // A webhook without a selector is for everything; elsewhere no selector selects nothing.
        let selector = |key: &str| match &webhook[key] {
            Value::Null => Ok(LabelSelector::everything()),
            written => LabelSelector::from_object(written),
        };
        let selectors =
            selector("namespaceSelector").and_then(|of_namespace| Ok((of_namespace, selector("objectSelector")?)));
        let timeout = webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT).min(LONGEST_TIMEOUT);
        let versions = object::list(webhook, "/admissionReviewVersions").iter();
        Self {
            name: object::text(webhook, "/name").to_owned(),
            phase,
            rules: object::list(webhook, "/rules").iter().map(Rule::parse).collect(),
            selectors,
            conditions: Conditions::parse(&webhook["matchConditions"]),
            fails_open: webhook["failurePolicy"] == "Ignore",
            timeout: Duration::from_secs(timeout),
            has_side_effects: !matches!(object::text(webhook, "/sideEffects"), "None" | "NoneOnDryRun"),
            accepts_v1: versions.into_iter().any(|version| version == "v1"),
            is_reinvocable: webhook["reinvocationPolicy"] == "IfNeeded",
            endpoint: Endpoint::parse(&webhook["clientConfig"], resolve.clone()),
        }
    }

    /// Whether it is to be called. `object` is the request's as it is now (`Null` for none), `sent` its review.
    pub(super) fn wants(
        &self,
        request: &Request<'_>,
        object: &Value,
        sent: &Value,
        namespace: Option<&Value>,
    ) -> Result<bool> {
        if !self.rules.iter().any(|rule| rule.matches(request)) {
            return Ok(false);
        }
        let (of_namespace, of_object) = self.selectors.as_ref().map_err(Status::internal)?;
        let old = request.old.unwrap_or(&Value::Null);
        if !selects_namespace(of_namespace, request, object, namespace)? {
            return Ok(false);
        }
        let labelled = |object: &Value| !object.is_null() && of_object.matches(object);
        if !of_object.is_everything() && !labelled(object) && !labelled(old) {
            return Ok(false);
        }
        if self.conditions.is_empty() {
            return Ok(true);
        }
        match self.conditions.evaluate(object, old, sent) {
            Match::Yes => Ok(true),
            Match::No => Ok(false),
            Match::Failed(_) if self.fails_open => Ok(false),
            Match::Failed(why) => {
                let of = GroupResource { group: request.resource.group, resource: request.resource.plural };
                Err(Status::forbidden(of, request.name, &why))
            }
        }
    }

    /// One call. `sent` is the review's request as [`review::request`] makes it.
    pub(super) async fn call(
        &self,
        request: &Request<'_>,
        object: &Value,
        sent: &Value,
    ) -> std::result::Result<Answer, Failure> {
        let name = &self.name;
        if request.dry_run && self.has_side_effects {
            let message = format!("admission webhook {name:?} does not support dry run");
            return Err(Failure::Refused(Status::bad_request(message)));
        }
        if !self.accepts_v1 {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Failure::Call(format!("could not create admission objects: {why}")));
        }
        let endpoint = self.endpoint.as_ref();
        let endpoint = endpoint.map_err(|why| Failure::Call(format!("could not get REST client: {why}")))?;
        let uid = random::uid();
        let review = review::review(&uid, sent, object, request.old.unwrap_or(&Value::Null));
        let answered = endpoint.post(&review, deadline(self.timeout, request.deadline)).await.map_err(Failure::call)?;
        let answer = review::read(name, self.phase, &uid, &answered)?;
        match answer.refusal {
            Some(status) => Err(Failure::Refused(status)),
            None => Ok(answer),
        }
    }

    /// The answer to the client when a call failed and the policy is to refuse then.
    pub(super) fn failed(&self, why: &str) -> Status {
        Status::internal(format!("failed calling webhook {:?}: {why}", self.name))
    }

    /// The object as the patch makes it.
    pub(super) fn patched(&self, object: &Value, patch: &Value) -> Result<Value> {
        let undecodable = |error| self.failed(&format!("received undecodable patch in webhook response: {error}"));
        let patch: json_patch::Patch = serde_json::from_value(patch.clone()).map_err(undecodable)?;
        if object.is_null() && !patch.is_empty() {
            return Err(Status::internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                self.name
            )));
        }
        let mut patched = object.clone();
        json_patch::patch(&mut patched, &patch).map_err(Status::internal)?;
        Ok(patched)
    }
}

fn selects_namespace(
    selector: &LabelSelector,
    request: &Request<'_>,
    object: &Value,
    namespace: Option<&Value>,
) -> Result<bool> {
    let is_namespace = (request.resource.group, request.resource.plural) == ("", "namespaces");
    if selector.is_everything() || request.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    // A Namespace that is being written counts with the labels it will have.
    if is_namespace
        && request.subresource.is_empty()
        && matches!(request.operation, Operation::Create | Operation::Update)
    {
        return Ok(selector.matches(object));
    }
    let of = GroupResource { group: "", resource: "namespaces" };
    namespace.map(|namespace| selector.matches(namespace)).ok_or_else(|| Status::not_found(of, request.namespace))
}
