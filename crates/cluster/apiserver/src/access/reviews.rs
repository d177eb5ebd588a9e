//! The reviews: questions about access, asked and answered in one request, stored nowhere.
//!
//! Each function takes the object as sent and gives it back with its `status`.

use serde_json::{Value, json};

use super::token::{ISSUER, Lookup, Tokens};
use super::token_request::time;
use super::{Attributes, Rules, User};
use crate::object;
use crate::status::{FieldError, Result, Status};

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// May the user in the spec do this?
pub fn subject_access_review(rules: &Rules, mut review: Value) -> Result<Value> {
    let mut errors = attribute_errors(&review["spec"]);
    errors.extend(subject_error(&review["spec"]));
    refuse(errors)?;
    let user = subject(&review["spec"]);
    answer(rules, &user, &mut review, "SubjectAccessReview");
    Ok(review)
}

/// The same, of one namespace only.
pub fn local_subject_access_review(rules: &Rules, namespace: &str, mut review: Value) -> Result<Value> {
    let spec = &review["spec"];
    let mut errors = attribute_errors(spec);
    errors.extend(subject_error(spec));
    let asked = object::text(spec, "/resourceAttributes/namespace");
    if !spec["resourceAttributes"].is_null() && asked != namespace {
        let field = "spec.resourceAttributes.namespace";
        errors.push(FieldError::invalid(field, &json!(asked), "must match metadata.namespace"));
    }
    if !spec["nonResourceAttributes"].is_null() {
        errors.push(path_error(spec, "disallowed on this kind of request"));
    }
    refuse(errors)?;
    let user = subject(spec);
    answer(rules, &user, &mut review, "LocalSubjectAccessReview");
    review["metadata"]["namespace"] = json!(namespace);
    Ok(review)
}

/// May I do this? (`kubectl auth can-i`)
pub fn self_subject_access_review(rules: &Rules, user: &User, mut review: Value) -> Result<Value> {
    refuse(attribute_errors(&review["spec"]))?;
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
        let mut shown = rule.to_json();
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
    let mut answered = json!({"metadata": {"creationTimestamp": time(now)}, "status": {"userInfo": user.info()}});
    name_kind(&mut answered, AUTHENTICATION, "SelfSubjectReview");
    answered
}

/// Whose token is this?
pub fn token_review(tokens: &Tokens, mut review: Value, now: i64, lookup: Lookup<'_>) -> Result<Value> {
    let token = object::text(&review, "/spec/token");
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let mut audiences = texts(&review["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    review["status"] = match tokens.authenticate_for(token, &audiences, now, lookup) {
        Ok((user, audiences)) => json!({"authenticated": true, "user": user.info(), "audiences": audiences}),
        Err(error) => json!({"user": {}, "error": error}),
    };
    name_kind(&mut review, AUTHENTICATION, "TokenReview");
    Ok(review)
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
    let path = &spec["nonResourceAttributes"];
    if !path.is_null() {
        return Attributes {
            verb: object::text(path, "/verb"),
            path: object::text(path, "/path"),
            ..Default::default()
        };
    }
    let resource = &spec["resourceAttributes"];
    Attributes {
        verb: object::text(resource, "/verb"),
        group: object::text(resource, "/group"),
        version: object::text(resource, "/version"),
        resource: object::text(resource, "/resource"),
        subresource: object::text(resource, "/subresource"),
        name: object::text(resource, "/name"),
        namespace: object::text(resource, "/namespace"),
        path: "",
    }
}

fn subject(spec: &Value) -> User {
    User {
        name: object::text(spec, "/user").to_owned(),
        uid: object::text(spec, "/uid").to_owned(),
        groups: texts(&spec["groups"]),
        ..User::default()
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn attribute_errors(spec: &Value) -> Vec<FieldError> {
    match (spec["resourceAttributes"].is_null(), spec["nonResourceAttributes"].is_null()) {
        (true, true) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldError::invalid("spec.resourceAttributes", &Value::Null, detail)]
        }
        (false, false) => vec![path_error(spec, "cannot be specified in combination with resourceAttributes")],
        (true, false) | (false, true) => Vec::new(),
    }
}

/// Kubernetes shows the value by its Go names.
fn path_error(spec: &Value, detail: &str) -> FieldError {
    let path = &spec["nonResourceAttributes"];
    let value = json!({"Path": object::text(path, "/path"), "Verb": object::text(path, "/verb")});
    FieldError::invalid("spec.nonResourceAttributes", &value, detail)
}

fn subject_error(spec: &Value) -> Option<FieldError> {
    let nobody = object::text(spec, "/user").is_empty() && texts(&spec["groups"]).is_empty();
    nobody.then(|| FieldError::invalid("spec.user", &json!(""), "at least one of user or group must be specified"))
}

/// The kind is missing from the message in Kubernetes too.
fn refuse(errors: Vec<FieldError>) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(AUTHORIZATION, "", "", &errors)) }
}

#[cfg(test)]
#[path = "reviews_tests.rs"]
mod tests;
