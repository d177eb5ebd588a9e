//! What a client may say beside the object, in the query or in a `DeleteOptions`: checked before anything is done,
//! everything that is wrong with it in one answer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions;
use serde_json::json;

use super::{Call, FieldValidation};
use crate::body;
use crate::request::{Query, Verb};
use crate::status::{FieldError, FieldErrorKind, Result, Status};

/// Kubernetes' longest name of a field manager.
const LONGEST_MANAGER: usize = 128;

/// Whether it is a dry run, and how unknown fields are treated. `applies`: the patch is a server-side apply.
pub(crate) fn of_write(verb: Verb, applies: bool, query: &Query) -> Result<(bool, FieldValidation)> {
    let kind = match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // A deletion has options of its own, a look needs none.
        Verb::Get | Verb::List | Verb::Watch | Verb::Delete | Verb::DeleteCollection => {
            return Ok((false, FieldValidation::Warn));
        }
    };
    let manager = query.get("fieldManager");
    let mut errors = Vec::new();
    if applies && manager.is_empty() {
        errors.push(FieldError::required("fieldManager", "is required for apply patch"));
    }
    if verb == Verb::Patch && !applies && !query.all("force").is_empty() {
        errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    if manager.len() > LONGEST_MANAGER {
        let detail = format!("Too long: may not be more than {LONGEST_MANAGER} bytes");
        errors.push(FieldError { kind: FieldErrorKind::TooLong, field: "fieldManager".to_owned(), detail });
    }
    if let Some((at, wrong)) = manager.char_indices().find(|(_, letter)| letter.is_control()) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(wrong));
        errors.push(FieldError::invalid("fieldManager", &json!(manager), &detail));
    }
    check_dry_run(query.all("dryRun"), &mut errors);
    let validation = match query.get("fieldValidation") {
        "Ignore" => FieldValidation::Ignore,
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            errors.push(FieldError::not_supported("fieldValidation", &json!(other), &supported));
            FieldValidation::Warn
        }
    };
    refuse(kind, &errors)?;
    Ok((!query.all("dryRun").is_empty(), validation))
}

fn check_dry_run(values: &[String], errors: &mut Vec<FieldError>) {
    if values.iter().any(|value| value != "All") {
        errors.push(FieldError::not_supported("dryRun", &json!(values), &["All"]));
    }
}

fn refuse(kind: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", kind, "", errors)) }
}

/// Which version a list or a watch asks for, and how: what contradicts itself is refused.
pub(crate) fn of_list(verb: Verb, query: &Query) -> Result<()> {
    let field = "resourceVersionMatch";
    let (matching, version) = (query.get(field), query.get("resourceVersion"));
    let initial = !query.all("sendInitialEvents").is_empty();
    let paged = !query.get("continue").is_empty();
    let mut errors = Vec::new();
    let mut forbid = |wrong: bool, field: &str, why: &str| {
        if wrong {
            errors.push(FieldError::forbidden(field, why));
        }
    };
    let named = !matching.is_empty();
    let supported: &[&str] = match verb {
        Verb::Watch => {
            let needs = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            forbid(initial && matching != "NotOlderThan", field, needs);
            let alone = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            forbid(named && !initial, field, alone);
            &["NotOlderThan"]
        }
        Verb::List => {
            let alone = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            forbid(named && version.is_empty(), field, alone);
            forbid(named && paged, field, "resourceVersionMatch is forbidden when continue is provided");
            &["Exact", "NotOlderThan", ""]
        }
        Verb::Get | Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => return Ok(()),
    };
    if named && !supported.contains(&matching) {
        errors.push(FieldError::not_supported(field, &json!(matching), supported));
    }
    if verb == Verb::List && matching == "Exact" && version == "0" {
        let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        errors.push(FieldError::forbidden(field, why));
    }
    if verb == Verb::List && initial {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    refuse("ListOptions", &errors)
}

impl Call {
    /// A deletion's options: of the body if there is one, otherwise of the query.
    pub(super) fn read_delete_options(&self) -> Result<DeleteOptions> {
        let text = |key| Some(self.query.get(key).to_owned()).filter(|text| !text.is_empty());
        let mut options = DeleteOptions {
            dry_run: Some(self.query.all("dryRun").to_vec()),
            grace_period_seconds: self.query.number("gracePeriodSeconds")?,
            propagation_policy: text("propagationPolicy"),
            orphan_dependents: text("orphanDependents").map(|_| self.query.is_set("orphanDependents")),
            ..DeleteOptions::default()
        };
        if !self.body.is_empty() {
            let sent = body::object(&self.content_type, &self.body)?;
            options = serde_json::from_value(sent).map_err(|error| {
                Status::bad_request(format!(
                    "the object provided is unrecognized (must be of type DeleteOptions): {error}"
                ))
            })?;
            if let Some(kind) = options.kind.as_deref().filter(|kind| *kind != "DeleteOptions") {
                let version = options.api_version.as_deref().unwrap_or_default();
                return Err(Status::bad_request(format!("no kind \"{kind}\" is registered for version \"{version}\"")));
            }
        }
        let mut errors = Vec::new();
        if let Some(policy) = &options.propagation_policy {
            if options.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", &json!(policy), why));
            }
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            if !supported[..3].contains(&policy.as_str()) {
                errors.push(FieldError::not_supported("propagationPolicy", &json!(policy), &supported));
            }
        }
        check_dry_run(options.dry_run.as_deref().unwrap_or_default(), &mut errors);
        refuse("DeleteOptions", &errors)?;
        Ok(options)
    }
}
