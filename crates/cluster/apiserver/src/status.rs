//! Kubernetes' `Status`: every refusal of the API server, with its code, reason and words.
//!
//! The constructors say what Kubernetes says in the same place, to the letter: kubectl and client libraries read it.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Value, json};

/// What Go's web server says of a path that it does not know.
pub const NO_SUCH_PAGE: &str = "404 page not found\n";

/// What is refused and why. Every handler's error.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub code: u16,
    /// Empty: the answer has none.
    pub reason: Cow<'static, str>,
    pub message: String,
    /// `details`, as Kubernetes fills it for this reason; `Null` where it has none.
    pub details: Value,
}

pub type Result<T> = std::result::Result<T, Status>;

/// Which resource, as messages name it: `deployments.apps`, or `pods` for the core group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupResource<'a> {
    pub group: &'a str,
    pub resource: &'a str,
}

impl fmt::Display for GroupResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => f.write_str(self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

/// One thing that is wrong with an object, at a path like `spec.containers[0].name`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    pub field: String,
    /// The text after the field, as Kubernetes words it (`Required value`, `Invalid value: "x": must be ...`).
    pub detail: String,
}

/// The types of field errors. The `reason` that `details.causes` carries is `FieldValue` and the variant's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldErrorKind {
    Required,
    Invalid,
    Duplicate,
    NotSupported,
    Forbidden,
    TypeInvalid,
    TooLong,
    TooMany,
    NotFound,
}

impl FieldError {
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let detail = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { kind: FieldErrorKind::Required, field: field.into(), detail }
    }

    /// `value` is quoted as Kubernetes quotes it: as JSON.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let detail = format!("Invalid value: {value}: {detail}");
        Self { kind: FieldErrorKind::Invalid, field: field.into(), detail }
    }

    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { kind: FieldErrorKind::Forbidden, field: field.into(), detail: format!("Forbidden: {detail}") }
    }

    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self { kind: FieldErrorKind::NotFound, field: field.into(), detail: format!("Not found: {value}") }
    }

    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self { kind: FieldErrorKind::Duplicate, field: field.into(), detail: format!("Duplicate value: {value}") }
    }

    /// `supported` in the order in which Kubernetes lists them: sorted.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("\"{value}\"")).collect();
        let detail = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self { kind: FieldErrorKind::NotSupported, field: field.into(), detail }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.detail)
    }
}

/// Several texts as Kubernetes joins them: in brackets if there is more than one.
pub(crate) fn joined(texts: Vec<String>) -> String {
    if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: Value::Null }
    }

    fn about(mut self, of: GroupResource<'_>, name: &str) -> Self {
        self.details = json!({"name": name, "group": of.group, "kind": of.resource});
        self
    }

    pub fn not_found(of: GroupResource<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{of} \"{name}\" not found")).about(of, name)
    }

    /// A path that no resource serves.
    pub fn no_such_path() -> Self {
        let mut status = Self::new(404, "NotFound", "the server could not find the requested resource");
        status.details = json!({});
        status
    }

    /// A path that no part of the server knows; it is answered as text.
    pub fn no_such_page() -> Self {
        Self::new(404, "", NO_SUCH_PAGE)
    }

    pub fn already_exists(of: GroupResource<'_>, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{of} \"{name}\" already exists")).about(of, name)
    }

    pub fn conflict(of: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {of} \"{name}\": {why}");
        Self::new(409, "Conflict", message).about(of, name)
    }

    /// The conflict of a write that was made from an old version.
    pub fn modified_meanwhile(of: GroupResource<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(of, name, why)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// A value of a query that cannot be read.
    pub fn bad_request_of(error: impl fmt::Display) -> Self {
        Self::bad_request(error.to_string())
    }

    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// `why` is Kubernetes' sentence, such as `User "x" cannot list resource "pods" in API group "" at the cluster scope`.
    pub fn forbidden(of: GroupResource<'_>, name: &str, why: &str) -> Self {
        let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        Self::new(403, "Forbidden", format!("{of}{named} is forbidden: {why}")).about(of, name)
    }

    pub fn method_not_allowed() -> Self {
        let why = "the server does not allow this method on the requested resource";
        Self { details: json!({}), ..Self::new(405, "MethodNotAllowed", why) }
    }

    /// A custom kind's own refusal of a verb.
    pub fn method_not_supported(of: GroupResource<'_>, why: &str) -> Self {
        Self::new(405, "MethodNotAllowed", why).about(of, "")
    }

    pub fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(406, "NotAcceptable", message)
    }

    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A patch in none of the forms there are.
    pub fn unsupported_patch() -> Self {
        Self { details: json!({}), ..Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type") }
    }

    /// A watch or a paged list from a version that is not kept any more.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub fn internal(message: impl fmt::Display) -> Self {
        let mut status = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        status.details = json!({"causes": [{"message": message.to_string()}]});
        status
    }

    /// What Kubernetes did not foresee either: its own words, and no reason.
    pub fn unforeseen(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// An object that breaks rules of its kind: all that is wrong with it, in one answer.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        // What is found twice is told once.
        let mut texts: Vec<String> = Vec::new();
        for text in errors.iter().map(FieldError::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = joined(texts);
        let mut status = Self::new(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {all}"));
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": format!("FieldValue{:?}", error.kind), "message": error.detail, "field": error.field}))
            .collect();
        status.details = json!({"name": name, "group": group, "kind": kind, "causes": causes});
        status
    }

    /// The body of the answer.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            body["reason"] = (*self.reason).into();
        }
        if let Value::Object(details) = &self.details {
            // The core group has no name, and what is empty is left out.
            let said = details.iter().filter(|(_, value)| value.as_str() != Some(""));
            body["details"] = said.map(|(key, value)| (key.clone(), value.clone())).collect();
        }
        body
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENTS: GroupResource<'_> = GroupResource { group: "apps", resource: "deployments" };

    #[test]
    fn what_is_missing_is_named_as_kubernetes_names_it() {
        let status = Status::not_found(DEPLOYMENTS, "web");
        assert_eq!(status.message, "deployments.apps \"web\" not found");
        assert_eq!(status.body()["details"], json!({"name": "web", "group": "apps", "kind": "deployments"}));
    }

    #[test]
    fn one_mistake_stands_alone_and_several_in_brackets() {
        let required = FieldError::required("spec.selector", "");
        let invalid = FieldError::invalid("metadata.name", &json!("A"), "must be lower case");
        let one = Status::invalid("apps", "Deployment", "A", std::slice::from_ref(&required));
        assert_eq!(one.message, "Deployment.apps \"A\" is invalid: spec.selector: Required value");
        let two = Status::invalid("", "Pod", "A", &[required, invalid]);
        let wanted = "Pod \"A\" is invalid: [spec.selector: Required value, \
                      metadata.name: Invalid value: \"A\": must be lower case]";
        assert_eq!(two.message, wanted);
    }
}
