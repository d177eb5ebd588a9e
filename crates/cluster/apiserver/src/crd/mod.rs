//! CustomResourceDefinitions: what they define, read once into a [`Definition`] that cannot be wrong.
//!
//! What Kubernetes refuses is refused in its words. What Kubernetes takes and this server does not serve (webhook
//! conversion) is refused too, and what it does not check is warned of ([`Definition::warnings`]).

mod names;
mod status;
mod version;

use std::sync::Arc;

use serde_json::{Value, json};

pub use names::{Names, check_label};
pub use version::Version;

use crate::object::{self, map_mut, text};
use crate::status::FieldError;

/// A custom kind: its names, its place and its versions.
#[derive(Debug)]
pub struct Definition {
    pub group: String,
    pub names: Names,
    pub namespaced: bool,
    /// Served or not, in the order of the definition. Exactly one is the storage version.
    pub versions: Vec<Arc<Version>>,
    /// What the author is to be told in `Warning:` headers.
    pub warnings: Vec<String>,
}

impl Definition {
    /// Reads a CRD object, or says all that is wrong with it. Whether the object's fields have the right types was
    /// checked before ([`crate::schema::decode_check`]).
    pub fn from_crd(crd: &Value) -> Result<Self, Vec<FieldError>> {
        let spec = &crd["spec"];
        let mut errors = Vec::new();
        let names = Names::read(spec);
        names::check(crd, &names, &mut errors);
        check_storage(spec, &mut errors);
        check_conversion(spec, &mut errors);
        check_stored(crd, &mut errors);
        let group = text(spec, "/group").to_owned();
        let versions = version::read_all(spec, &group, &names.kind, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut warnings: Vec<String> = Vec::new();
        for warning in versions.iter().flat_map(|version| version.schema.warnings()) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        let versions = versions.into_iter().map(Arc::new).collect();
        Ok(Self { group, names, namespaced: text(spec, "/scope") == "Namespaced", versions, warnings })
    }

    pub fn served(&self) -> impl Iterator<Item = &Arc<Version>> {
        self.versions.iter().filter(|version| version.served)
    }

    /// The version that objects are stored in.
    pub fn storage(&self) -> &Version {
        self.versions.iter().find(|version| version.storage).expect("a definition has one, or is refused")
    }
}

/// Fills what Kubernetes fills in a CRD that is written.
pub fn default_crd(crd: &mut Value) {
    let names = Names::read(&crd["spec"]);
    let stored = object::list(&crd["spec"], "/versions").iter().find(|version| is_true(version, "storage"));
    let stored = stored.map(|version| version["name"].clone());
    let status = map_mut(map_mut(crd).entry("status").or_insert(Value::Null));
    status.entry("acceptedNames").or_insert_with(|| json!({"plural": "", "kind": ""}));
    status.entry("conditions").or_insert(Value::Null);
    let versions = status.entry("storedVersions").or_insert(Value::Null);
    match (versions.as_array_mut(), stored) {
        (Some(versions), Some(stored)) if !versions.contains(&stored) => versions.push(stored),
        (None, Some(stored)) => *versions = json!([stored]),
        _ => {}
    }
    let spec = map_mut(map_mut(crd).entry("spec").or_insert(Value::Null));
    let written = map_mut(spec.entry("names").or_insert(Value::Null));
    for (field, name) in [("singular", names.singular), ("listKind", names.list_kind)] {
        if !name.is_empty() {
            written.insert(field.to_owned(), name.into());
        }
    }
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
}

fn check_storage(spec: &Value, errors: &mut Vec<FieldError>) {
    let names = |versions: Vec<&Value>| versions.into_iter().map(|version| version["name"].clone()).collect::<Vec<_>>();
    let all = names(object::list(spec, "/versions").iter().collect());
    let stored = names(object::list(spec, "/versions").iter().filter(|it| is_true(it, "storage")).collect());
    // Kubernetes prints the versions whole here.
    let shown = spec.get("versions").map_or(Value::Null, |_| json!(all));
    let mut refuse = |why: &str| errors.push(FieldError::invalid("spec.versions", &shown, why));
    if all.iter().enumerate().any(|(index, name)| all[..index].contains(name)) {
        refuse("must contain unique version names");
    }
    if stored.len() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
}

fn check_conversion(spec: &Value, errors: &mut Vec<FieldError>) {
    match text(spec, "/conversion/strategy") {
        "" | "None" => {}
        "Webhook" => {
            let why = "conversion by webhook is not served by this cluster";
            errors.push(FieldError::forbidden("spec.conversion.strategy", why));
        }
        other => {
            errors.push(FieldError::not_supported("spec.conversion.strategy", &other.into(), &["None", "Webhook"]));
        }
    }
    if is_true(spec, "preserveUnknownFields") {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &Value::Bool(true), why));
    }
}

fn is_true(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}

/// No version may go that objects are stored in.
fn check_stored(new: &Value, errors: &mut Vec<FieldError>) {
    let names: Vec<&Value> = object::list(new, "/spec/versions").iter().map(|version| &version["name"]).collect();
    let Some(written) = new.pointer("/status/storedVersions") else { return };
    if written.is_null() {
        errors.push(FieldError::invalid("status.storedVersions", written, "must have at least one stored version"));
    }
    let stored = object::list(new, "/status/storedVersions").iter();
    for version in object::list(new, "/spec/versions").iter().filter(|version| is_true(version, "storage")) {
        if !written.is_null() && !stored.clone().any(|stored| *stored == version["name"]) {
            let why = format!("must have the storage version {}", text(version, "/name"));
            errors.push(FieldError::invalid("status.storedVersions", written, &why));
        }
    }
    for (index, version) in stored.enumerate().filter(|(_, version)| !names.contains(version)) {
        let name = version.as_str().unwrap_or_default();
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a \
             storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("status.storedVersions[{index}]"), version, &why));
    }
}

#[cfg(test)]
mod tests;
