//! One version of a custom kind: its schema, subresources, columns and selectable fields.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{is_true, names, object, text};
use crate::discovery::version_priority;
use crate::resource::ScalePaths;
use crate::schema::{Schema, Type, object_meta};
use crate::status::{FieldError, FieldErrorKind};
use crate::table::Column;

#[derive(Debug)]
pub struct Version {
    pub name: String,
    pub served: bool,
    pub storage: bool,
    /// What every request for this version is warned of, if it is deprecated.
    pub deprecation: Option<String>,
    /// The whole object, `metadata` as Kubernetes has it.
    pub schema: Arc<Schema>,
    pub has_status: bool,
    pub scale: Option<ScalePaths>,
    pub columns: Vec<Column>,
    /// As field selectors write them: `spec.color`.
    pub selectable_fields: Vec<String>,
    /// The object as the definition wrote it: it may narrow `metadata.name`.
    own: Arc<Schema>,
}

impl Version {
    /// All that is wrong with an object, defaulted and pruned, that an update may have made from `old`: its schema (of a
    /// write to status: that of its status), then its rules, if the schema found nothing that would mislead them.
    pub fn validate(&self, object: &Value, old: Option<&Value>, status: bool) -> Vec<FieldError> {
        let mut errors = match (status, self.own.properties.get("status"), object.get("status")) {
            (true, Some(schema), Some(value)) => {
                let below = |error: FieldError| FieldError { field: format!("status.{}", error.field), ..error };
                let old = old.and_then(|old| old.get("status"));
                schema.validate(value, old).into_iter().map(below).collect()
            }
            (true, _, _) => Vec::new(),
            (false, _, _) => self.own.validate(object, old),
        };
        let misleading = |error: &FieldError| match error.kind {
            FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid => true,
            FieldErrorKind::Invalid
            | FieldErrorKind::Duplicate
            | FieldErrorKind::Forbidden
            | FieldErrorKind::NotFound => false,
        };
        if errors.iter().any(misleading) && self.own.has_rules() {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors \
                       to complete validation";
            errors.push(FieldError::invalid("<nil>", &Value::Null, why));
        } else if !errors.iter().any(misleading) {
            errors.extend(self.own.check_rules(object, old));
        }
        errors
    }
}

/// Where the parts of a version stand in errors. Kubernetes names what all versions share by its old place.
struct Places<'a> {
    versions: &'a [Value],
    index: usize,
}

impl Places<'_> {
    fn of(&self, part: &str, shared: &str) -> String {
        let same = self.versions.windows(2).all(|pair| pair[0].get(part) == pair[1].get(part));
        if same { format!("spec.{shared}") } else { format!("spec.versions[{}].{part}", self.index) }
    }
}

/// All versions that can be read; what is wrong with them goes to `errors`, once where they share it.
pub(super) fn read_all(spec: &Value, group: &str, kind: &str, errors: &mut Vec<FieldError>) -> Vec<Version> {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut all = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let mut wrong = Vec::new();
        all.extend(read(&Places { versions, index }, version, &mut wrong));
        for error in wrong {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
    }
    let others = all.iter().filter(|version| version.served && version.deprecation.is_none());
    let newest = others.map(|version| version.name.clone()).min_by_key(|name| version_priority(name));
    for version in &mut all {
        if let Some(warning) = version.deprecation.as_mut().filter(|warning| warning.is_empty()) {
            *warning = format!("{group}/{} {kind} is deprecated", version.name);
            let newer = newest.iter().filter(|newest| version_priority(newest) < version_priority(&version.name));
            newer.for_each(|newest| *warning += &format!("; use {group}/{newest} {kind}"));
        }
    }
    all
}

fn read(places: &Places<'_>, version: &Value, errors: &mut Vec<FieldError>) -> Option<Version> {
    let at = format!("spec.versions[{}]", places.index);
    let name = text(version, "/name").to_owned();
    errors.extend(names::check_label(&format!("{at}.name"), &name));
    if places.index == 0 {
        errors.extend(names::check_label("spec.version", &name));
    }
    let deprecated = is_true(version, "deprecated");
    let warning = version.get("deprecationWarning").and_then(Value::as_str);
    if let Some(warning) = warning.filter(|_| !deprecated) {
        let why = "can only be set for deprecated versions";
        errors.push(FieldError::invalid(format!("{at}.deprecationWarning"), &warning.into(), why));
    }
    let own = schema(places, version, errors);
    let columns = columns(places, version, errors);
    let scale = scale(places, version, errors);
    let own = Arc::new(own?);
    let selectable_fields = selectable(places, version, &own, errors);
    Some(Version {
        name,
        served: is_true(version, "served"),
        storage: is_true(version, "storage"),
        deprecation: deprecated.then(|| warning.unwrap_or_default().to_owned()),
        schema: Arc::new(own.with_object_meta(&object_meta())),
        has_status: version.pointer("/subresources/status").is_some_and(|status| !status.is_null()),
        scale,
        columns,
        selectable_fields,
        own,
    })
}

fn schema(places: &Places<'_>, version: &Value, errors: &mut Vec<FieldError>) -> Option<Schema> {
    let Some(openapi) = version.pointer("/schema/openAPIV3Schema").filter(|openapi| openapi.is_object()) else {
        let at = format!("spec.versions[{}].schema.openAPIV3Schema", places.index);
        errors.push(FieldError::required(at, ""));
        return None;
    };
    let at = format!("{}.openAPIV3Schema", places.of("schema", "validation"));
    match Schema::from_openapi(openapi) {
        Ok(read) => Some(read),
        Err(wrong) => {
            errors.extend(wrong.into_iter().map(|error| FieldError {
                detail: error.detail.replace("schema within ", &format!("schema within {at}.")),
                field: format!("{at}.{}", error.field),
                kind: error.kind,
            }));
            None
        }
    }
}

fn scale(places: &Places<'_>, version: &Value, errors: &mut Vec<FieldError>) -> Option<ScalePaths> {
    let scale = version.pointer("/subresources/scale").filter(|scale| !scale.is_null())?;
    let at = format!("{}.scale", places.of("subresources", "subresources"));
    let mut path = |field: &str, roots: &[&str], place: &str, required: bool| {
        let path = text(scale, &format!("/{field}"));
        let at = format!("{at}.{field}");
        if path.is_empty() {
            errors.extend(required.then(|| FieldError::required(at, "")));
            return None;
        }
        if !path.starts_with('.') {
            errors.push(FieldError::invalid(at, &path.into(), "must be a simple json path starting with ."));
        } else if !roots.iter().any(|root| path.starts_with(root)) || path.contains(['[', ']']) {
            errors.push(FieldError::invalid(at, &path.into(), &format!("should be a json path under {place}")));
        }
        Some(path.replace('.', "/"))
    };
    let spec_replicas = path("specReplicasPath", &[".spec."], ".spec", true);
    let status_replicas = path("statusReplicasPath", &[".status."], ".status", true);
    let label_selector = path("labelSelectorPath", &[".spec.", ".status."], "either .spec or .status", false);
    Some(ScalePaths { replicas: spec_replicas?, status_replicas: status_replicas?, selector: label_selector })
}

fn columns(places: &Places<'_>, version: &Value, errors: &mut Vec<FieldError>) -> Vec<Column> {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let list = places.of("additionalPrinterColumns", "additionalPrinterColumns");
    let columns = object::list(version, "/additionalPrinterColumns").iter();
    let columns: Vec<Column> = columns.map(|column| Column::deserialize(column).unwrap_or_default()).collect();
    for (index, Column { name, kind, format, json_path, .. }) in columns.iter().enumerate() {
        let is_path = json_path.starts_with('.');
        let types = format!("must be one of {}", TYPES.join(","));
        let formats = format!("must be one of {}", FORMATS.join(","));
        let checks = [
            ("name", name, true, "", ""),
            ("type", kind, TYPES.contains(&kind.as_str()), &types, &types),
            ("format", format, format.is_empty() || FORMATS.contains(&format.as_str()), "", &formats),
            ("JSONPath", json_path, is_path, "", "must be a simple json path starting with ."),
        ];
        for (field, value, right, missing, wrong) in checks {
            let at = format!("{list}[{index}].{field}");
            if value.is_empty() && field != "format" {
                errors.push(FieldError::required(at, missing));
            } else if !right {
                errors.push(FieldError::invalid(at, &value.as_str().into(), wrong));
            }
        }
    }
    columns
}

fn selectable(places: &Places<'_>, version: &Value, schema: &Schema, errors: &mut Vec<FieldError>) -> Vec<String> {
    let list = places.of("selectableFields", "selectableFields");
    let mut fields: Vec<String> = Vec::new();
    for (index, field) in object::list(version, "/selectableFields").iter().enumerate() {
        let at = format!("{list}[{index}].jsonPath");
        let path = text(field, "/jsonPath");
        let dotted = path.trim_start_matches('.').to_owned();
        let found = dotted.split('.').try_fold(schema, |schema, field| schema.properties.get(field).map(|it| &**it));
        let found = found.filter(|_| path.starts_with('.') && !dotted.starts_with("metadata."));
        let why = match found.map(|found| found.kind) {
            _ if path.is_empty() => {
                errors.push(FieldError::required(at, ""));
                continue;
            }
            _ if fields.contains(&dotted) => {
                errors.push(FieldError::duplicate(at, &path.into()));
                continue;
            }
            _ if !path.starts_with('.') => {
                let word = path.split(['.', '[']).next().unwrap_or_default();
                &format!("is an invalid path: expected [ or . but got: {word}")
            }
            _ if path.contains('[') => "is an invalid path: array notation is not allowed",
            None => "is an invalid path: does not refer to a valid field",
            Some(Type::String | Type::Boolean | Type::Integer) => {
                fields.push(dotted);
                continue;
            }
            Some(_) => {
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats \
                 are allowed."
            }
        };
        errors.push(FieldError::invalid(at, &path.into(), why));
    }
    fields
}
