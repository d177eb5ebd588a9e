//! The names of a custom kind, its group and its scope.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{object, text};
use crate::status::FieldError;
use crate::strategy;

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                     character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                     validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// `spec.names`, with what Kubernetes fills in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Names {
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

impl Names {
    pub(super) fn read(spec: &Value) -> Self {
        let mut names = Self::deserialize(&spec["names"]).unwrap_or_default();
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() && !names.kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        names
    }
}

pub(super) fn check(crd: &Value, names: &Names, errors: &mut Vec<FieldError>) {
    let spec = &crd["spec"];
    let group = text(spec, "/group");
    let name = object::name(crd);
    // Later neither changes.
    if object::resource_version(crd).is_empty() && name != format!("{}.{group}", names.plural) {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &name.into(), why));
    }
    match group {
        "" => errors.push(FieldError::required("spec.group", "")),
        group if !group.contains('.') => {
            errors.push(FieldError::invalid("spec.group", &group.into(), "should be a domain with at least one dot"));
        }
        group => check_protection(crd, group, errors),
    }
    match text(spec, "/scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Namespaced" | "Cluster" => {}
        other => errors.push(FieldError::not_supported("spec.scope", &other.into(), &["Cluster", "Namespaced"])),
    }
    check_names(names, errors);
}

fn check_names(names: &Names, errors: &mut Vec<FieldError>) {
    let Names { plural, singular, kind, list_kind, short_names, categories } = names;
    for (field, name) in [("plural", plural), ("singular", singular), ("kind", kind), ("listKind", list_kind)] {
        let at = format!("spec.names.{field}");
        let mixed = field.to_lowercase().ends_with("kind");
        if name.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if mixed && !is_label(&name.to_lowercase()) {
            let why = format!("may have mixed case, but should otherwise match: {LABEL}");
            errors.push(FieldError::invalid(at, &name.as_str().into(), &why));
        } else if !mixed && !is_label(name) {
            errors.push(FieldError::invalid(at, &name.as_str().into(), LABEL));
        }
    }
    if !kind.is_empty() && kind == list_kind {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &kind.as_str().into(), why));
    }
    for (field, list) in [("shortNames", short_names), ("categories", categories)] {
        for (index, name) in list.iter().enumerate().filter(|(_, name)| !is_label(name)) {
            errors.push(FieldError::invalid(format!("spec.names.{field}[{index}]"), &name.as_str().into(), LABEL));
        }
    }
}

/// Kubernetes' own domains are for definitions that its reviewers approved, or that say that nobody did.
fn check_protection(crd: &Value, group: &str, errors: &mut Vec<FieldError>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.')));
    if protected && object::annotations(crd).all(|(key, value)| key != ANNOTATION || value.is_empty()) {
        let why = format!(
            "protected groups must have approval annotation \"{ANNOTATION}\", see https://github.com/kubernetes/enhancements/pull/1111"
        );
        errors.push(FieldError::required(format!("metadata.annotations[{ANNOTATION}]"), &why));
    }
}

/// The refusal of a version's name, if it is none.
pub fn check_label(at: &str, name: &str) -> Option<FieldError> {
    (!is_label(name)).then(|| FieldError::invalid(at, &name.into(), LABEL))
}

fn is_label(name: &str) -> bool {
    name.len() <= 63 && name.starts_with(|first: char| first.is_ascii_alphabetic()) && strategy::name::is_label(name)
}
