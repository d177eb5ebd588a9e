//! One version of a custom kind: its schema, subresources, columns and selectable fields.

use std::sync::Arc;

use serde_json::Value;

use super::{is_true, names, text};
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
    /// All that is wrong with an object, defaulted and pruned, that an update may have made from `old`: its schema,
    /// then its rules, if the schema found nothing that would mislead them.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = self.own.validate(object, old);
        let misleading = |error: &FieldError| match error.kind {
            FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid => true,
            FieldErrorKind::Invalid | FieldErrorKind::Duplicate | FieldErrorKind::Forbidden => false,
        };
        if errors.iter().any(misleading) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors \
                       to complete validation";
            errors.push(FieldError::invalid("<nil>", &Value::Null, why));
        } else {
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
    for version in &mut all {
        if let Some(warning) = version.deprecation.as_mut().filter(|warning| warning.is_empty()) {
            *warning = format!("{group}/{} {kind} is deprecated", version.name);
        }
    }
    all
}

fn read(places: &Places<'_>, version: &Value, errors: &mut Vec<FieldError>) -> Option<Version> {
    let at = format!("spec.versions[{}]", places.index);
    let name = text(version, "/name").to_owned();
    errors.extend(names::check_version_name(&format!("{at}.name"), &name));
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
    let mut path = |field: &str, roots: &[&str], where_: &str| {
        let path = text(scale, &format!("/{field}"));
        if path.is_empty() {
            return None;
        }
        if !roots.iter().any(|root| path.starts_with(&format!("{root}."))) || path.contains(['[', ']']) {
            let why = format!("should be a json path under {where_}");
            errors.push(FieldError::invalid(format!("{at}.{field}"), &path.into(), &why));
        }
        Some(path.replace('.', "/"))
    };
    let spec_replicas = path("specReplicasPath", &[".spec"], ".spec");
    let status_replicas = path("statusReplicasPath", &[".status"], ".status");
    let label_selector = path("labelSelectorPath", &[".spec", ".status"], "either .spec or .status");
    for (field, path) in [("specReplicasPath", &spec_replicas), ("statusReplicasPath", &status_replicas)] {
        if path.is_none() {
            errors.push(FieldError::required(format!("{at}.{field}"), ""));
        }
    }
    Some(ScalePaths { replicas: spec_replicas?, status_replicas: status_replicas?, selector: label_selector })
}

fn columns(places: &Places<'_>, version: &Value, errors: &mut Vec<FieldError>) -> Vec<Column> {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let list = places.of("additionalPrinterColumns", "additionalPrinterColumns");
    let mut columns = Vec::new();
    for (index, column) in version["additionalPrinterColumns"].as_array().into_iter().flatten().enumerate() {
        let at = |field: &str| format!("{list}[{index}].{field}");
        let text = |field: &str| text(column, &format!("/{field}")).to_owned();
        let column = Column {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column["priority"].as_i64().unwrap_or_default(),
            json_path: text("jsonPath"),
        };
        if column.name.is_empty() {
            errors.push(FieldError::required(at("name"), ""));
        }
        let types = format!("must be one of {}", TYPES.join(","));
        match column.kind.as_str() {
            "" => errors.push(FieldError::required(at("type"), &types)),
            kind if TYPES.contains(&kind) => {}
            kind => errors.push(FieldError::invalid(at("type"), &kind.into(), &types)),
        }
        if !column.format.is_empty() && !FORMATS.contains(&column.format.as_str()) {
            let why = format!("must be one of {}", FORMATS.join(","));
            errors.push(FieldError::invalid(at("format"), &column.format.as_str().into(), &why));
        }
        match column.json_path.as_str() {
            "" => errors.push(FieldError::required(at("JSONPath"), "")),
            path if path.starts_with('.') => {}
            path => {
                let why = "must be a simple json path starting with .";
                errors.push(FieldError::invalid(at("JSONPath"), &path.into(), why));
            }
        }
        columns.push(column);
    }
    columns
}

fn selectable(places: &Places<'_>, version: &Value, schema: &Schema, errors: &mut Vec<FieldError>) -> Vec<String> {
    let list = places.of("selectableFields", "selectableFields");
    let mut fields: Vec<String> = Vec::new();
    for (index, field) in version["selectableFields"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{list}[{index}].jsonPath");
        let path = text(field, "/jsonPath");
        let Some(dotted) = path.strip_prefix('.') else {
            if path.is_empty() {
                errors.push(FieldError::required(at, ""));
            } else {
                let why = format!("is an invalid path: expected [ or . but got: {}", first_word(path));
                errors.push(FieldError::invalid(at, &path.into(), &why));
            }
            continue;
        };
        if path.contains('[') {
            errors.push(FieldError::invalid(at, &path.into(), "is an invalid path: array notation is not allowed"));
        } else if fields.iter().any(|field| field == dotted) {
            errors.push(FieldError::duplicate(at, &path.into()));
        } else {
            match dotted.split('.').try_fold(schema, |schema, field| schema.properties.get(field).map(|it| &**it)) {
                Some(found) if !dotted.starts_with("metadata.") => {
                    if !matches!(found.kind, Type::String | Type::Boolean | Type::Integer) {
                        let why = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                                   with formats are allowed.";
                        errors.push(FieldError::invalid(at, &path.into(), why));
                    }
                }
                _ => {
                    let why = "is an invalid path: does not refer to a valid field";
                    errors.push(FieldError::invalid(at, &path.into(), why));
                }
            }
            fields.push(dotted.to_owned());
        }
    }
    fields
}

fn first_word(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}
