//! The options of a request, as its query or body says them: refused as an object of their own kind is refused.

use serde_json::{Value, json};

use crate::body::media_type;
use crate::request::{Query, Target, Verb};
use crate::status::{FieldError, FieldErrorKind, Result, Status};

const LONGEST_MANAGER: usize = 128;

/// Checks the options in the query of a request.
pub(crate) fn check(target: &Target, query: &Query, content_type: &str) -> Result<()> {
    let mut errors = Vec::new();
    let kind = match target.verb {
        Verb::List | Verb::Watch => {
            looks(target.verb, query, &mut errors);
            return refused("ListOptions", &errors);
        }
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // Read by the handler: they may also come as a body.
        Verb::Delete | Verb::DeleteCollection | Verb::Get => return Ok(()),
    };
    dry_run(&json!(query.all("dryRun")), &mut errors);
    let (manager, validation) = (query.get("fieldManager"), query.get("fieldValidation"));
    if target.verb == Verb::Patch {
        let applies = media_type(content_type).starts_with("application/apply-patch");
        if applies && manager.is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        } else if !applies && query.is_set("force") {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
    }
    if manager.len() > LONGEST_MANAGER {
        let detail = format!("Too long: may not be more than {LONGEST_MANAGER} bytes");
        errors.push(FieldError { kind: FieldErrorKind::TooLong, field: "fieldManager".to_owned(), detail });
    }
    if let Some((at, wrong)) = manager.char_indices().find(|(_, char)| char.is_control()) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(wrong));
        errors.push(FieldError::invalid("fieldManager", &json!(manager), &detail));
    }
    let supported = ["", "Ignore", "Strict", "Warn"];
    if !supported.contains(&validation) {
        errors.push(FieldError::not_supported("fieldValidation", &json!(validation), &supported));
    }
    refused(kind, &errors)
}

/// The options of a list or a watch.
fn looks(verb: Verb, query: &Query, errors: &mut Vec<FieldError>) {
    let (field, initial) = ("resourceVersionMatch", "sendInitialEvents");
    let (matching, version) = (query.get(field), query.get("resourceVersion"));
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    let begins = !query.get(initial).is_empty();
    if verb == Verb::Watch && begins && matching != "NotOlderThan" {
        forbid(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if !matching.is_empty() {
        if verb == Verb::List && version.is_empty() {
            forbid(field, "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if verb == Verb::Watch && !begins {
            forbid(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        if !query.get("continue").is_empty() {
            forbid(field, "resourceVersionMatch is forbidden when continue is provided");
        }
        if verb == Verb::List && matching == "Exact" && version == "0" {
            forbid(field, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        let known: &[&str] = if verb == Verb::Watch { &["NotOlderThan"] } else { &["Exact", "NotOlderThan", ""] };
        if !known.contains(&matching) {
            errors.push(FieldError::not_supported(field, &json!(matching), known));
        }
    }
    if verb == Verb::List && begins {
        errors.push(FieldError::forbidden(initial, "sendInitialEvents is forbidden for list"));
    }
}

/// The only thing that a dry run can be is one of everything.
pub(crate) fn dry_run(wanted: &Value, errors: &mut Vec<FieldError>) {
    let stages = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
    if stages.iter().any(|stage| stage != "All") {
        errors.push(FieldError::not_supported("dryRun", wanted, &["All"]));
    }
}

pub(crate) fn refused(kind: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", kind, "", errors)) }
}
