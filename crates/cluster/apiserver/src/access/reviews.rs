//! The reviews: questions about access, asked and answered in one request, stored nowhere.
//!
//! Each function takes the object as sent and gives it back with its `status`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::token_request::time;
use super::{Attributes, Rules, User};
use crate::object;
use crate::status::{FieldError, Result, Status};

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// May the user in the spec do this?
pub fn subject_access_review(rules: &Rules, mut review: Value) -> Result<Value> {
    let spec = &review["spec"];
    let text = |pointer| object::text(spec, pointer).to_owned();
    let user =
        User { name: text("/user"), uid: text("/uid"), groups: object::texts(spec, "/groups"), ..User::default() };
    let mut error = attribute_error(spec);
    if user.name.is_empty() && user.groups.is_empty() {
        error = Some(FieldError::invalid("spec.user", &json!(""), "at least one of user or group must be specified"));
    }
    refuse(error)?;
    answer(rules, &user, &mut review, "SubjectAccessReview");
    Ok(review)
}

/// May I do this? (`kubectl auth can-i`)
pub fn self_subject_access_review(rules: &Rules, user: &User, mut review: Value) -> Result<Value> {
    refuse(attribute_error(&review["spec"]))?;
    answer(rules, user, &mut review, "SelfSubjectAccessReview");
    Ok(review)
}

/// What may I do in this namespace? (`kubectl auth can-i --list`)
pub fn self_subject_rules_review(rules: &Rules, user: &User, review: &Value) -> Result<Value> {
    let namespace = object::text(review, "/spec/namespace");
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let (granted, unresolved) = rules.rules_for(user, namespace);
    let (mut on_resources, mut on_urls) = (Vec::new(), Vec::new());
    for rule in granted {
        let mut shown = json!(rule);
        if rule.resources.is_empty() {
            on_urls.push(shown)
        } else {
            object::map_mut(&mut shown).remove("nonResourceURLs");
            on_resources.push(shown);
        }
    }
    let mut status = json!({"resourceRules": on_resources, "nonResourceRules": on_urls, "incomplete": false});
    if let Some(unresolved) = unresolved {
        status["evaluationError"] = json!(unresolved);
    }
    let mut answered = json!({"metadata": {}, "spec": {}, "status": status});
    name_kind(&mut answered, AUTHORIZATION, "SelfSubjectRulesReview");
    Ok(answered)
}

/// Who am I? (`kubectl auth whoami`) `now` is in seconds since the epoch.
pub fn self_subject_review(user: &User, now: i64) -> Value {
    let mut answered = json!({"metadata": {"creationTimestamp": time(now)}, "status": {"userInfo": user}});
    name_kind(&mut answered, AUTHENTICATION, "SelfSubjectReview");
    answered
}

fn answer(rules: &Rules, user: &User, review: &mut Value, kind: &str) {
    let decision = rules.authorize(user, &attributes(&review["spec"]));
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    review["status"] = status;
    name_kind(review, AUTHORIZATION, kind);
}

fn name_kind(review: &mut Value, group: &str, kind: &str) {
    review["kind"] = json!(kind);
    review["apiVersion"] = json!(format!("{group}/v1"));
    object::metadata_mut(review);
}

fn attributes(spec: &Value) -> Attributes<'_> {
    let asked = if spec["nonResourceAttributes"].is_null() { "resourceAttributes" } else { "nonResourceAttributes" };
    Attributes::deserialize(&spec[asked]).unwrap_or_default()
}

fn attribute_error(spec: &Value) -> Option<FieldError> {
    let path = &spec["nonResourceAttributes"];
    match (spec["resourceAttributes"].is_null(), path.is_null()) {
        (true, true) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Some(FieldError::invalid("spec.resourceAttributes", &Value::Null, detail))
        }
        (false, false) => {
            // Kubernetes shows the value by its Go names.
            let value = json!({"Path": object::text(path, "/path"), "Verb": object::text(path, "/verb")});
            let detail = "cannot be specified in combination with resourceAttributes";
            Some(FieldError::invalid("spec.nonResourceAttributes", &value, detail))
        }
        (true, false) | (false, true) => None,
    }
}

/// The kind is missing from the message in Kubernetes too.
fn refuse(error: Option<FieldError>) -> Result<()> {
    error.map_or(Ok(()), |error| Err(Status::invalid(AUTHORIZATION, "", "", &[error])))
}

#[cfg(test)]
#[path = "reviews_tests.rs"]
mod tests;
