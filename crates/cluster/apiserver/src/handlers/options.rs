//! The options of a write, as a query or a body says them: refused as an object of their own kind is refused.

use serde_json::{Value, json};

use crate::body::media_type;
use crate::request::{Query, Target, Verb};
use crate::status::{FieldError, FieldErrorKind, Result, Status};

const LONGEST_MANAGER: usize = 128;

/// Checks the options in the query of a request; those that only look have none of these.
pub(crate) fn check(target: &Target, query: &Query, content_type: &str) -> Result<()> {
    let kind = match target.verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // Read by the handler: they may also come as a body.
        Verb::Delete | Verb::DeleteCollection | Verb::Get | Verb::List | Verb::Watch => return Ok(()),
    };
    let mut errors = Vec::new();
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
