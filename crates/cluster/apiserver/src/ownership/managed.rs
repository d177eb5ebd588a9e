//! `metadata.managedFields`: who owns what, since when.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::field_set::FieldSet;
use crate::object;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// Who owns fields: the same manager through another door is another owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for an applier: it stays the same one when it moves to another version.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

impl Owner {
    pub(super) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    pub(super) api_version: String,
    /// RFC 3339. None if it became an owner without changing anything.
    pub(super) time: Option<String>,
}

pub(super) type Managed = BTreeMap<Owner, Owned>;

/// The managed fields of an object; none if it has none.
pub(super) fn decode(object: &Value) -> std::result::Result<Managed, String> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries.into_iter().flatten().enumerate().map(|(index, entry)| decode_entry(index, entry)).collect()
}

fn decode_entry(index: usize, entry: &Value) -> std::result::Result<(Owner, Owned), String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
    }
    let owner = Owner {
        manager: text("manager").to_owned(),
        ..Owner::new("", operation, text("apiVersion"), text("subresource"))
    };
    let fields = entry.get("fieldsV1").filter(|fields| !fields.is_null());
    let fields = fields.map_or_else(|| Ok(FieldSet::default()), FieldSet::parse)?;
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((owner, Owned { fields, api_version: text("apiVersion").to_owned(), time }))
}

/// Writes the managed fields into an object, in Kubernetes' order: appliers first, then by time, name and version.
pub(super) fn encode(managed: &Managed, object: &mut Value) {
    let metadata = object::metadata_mut(object);
    if managed.is_empty() {
        metadata.remove("managedFields");
        return;
    }
    let mut entries: Vec<_> = managed.iter().collect();
    entries.sort_by_key(|(owner, owned)| {
        (owner.operation, &owned.time, &owner.manager, &owned.api_version, &owner.subresource)
    });
    let entries = entries.into_iter().map(|(owner, owned)| encode_entry(owner, owned)).collect();
    metadata.insert("managedFields".to_owned(), entries);
}

fn encode_entry(owner: &Owner, owned: &Owned) -> Value {
    let mut entry = json!({
        "operation": format!("{:?}", owner.operation),
        "apiVersion": owned.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields.print(),
    });
    let time = owned.time.as_deref().unwrap_or_default();
    for (name, value) in [("manager", owner.manager.as_str()), ("subresource", &owner.subresource), ("time", time)] {
        if !value.is_empty() {
            entry[name] = value.into();
        }
    }
    entry
}

/// Kubernetes keeps no account of who owns what through another group.
pub(super) fn forget_other_groups(managed: &mut Managed, api_version: &str) {
    let group = |api_version: &str| api_version.rsplit_once('/').map(|(group, _)| group.to_owned());
    managed.retain(|_, owned| group(&owned.api_version) == group(api_version));
}

/// Takes the managed fields out of an object: they are never owned themselves.
pub(super) fn strip(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Whether a client asks to forget all owners: `managedFields` as `[]` or `[{}]`.
pub(super) fn is_reset(object: &Value) -> bool {
    match object.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(Map::is_empty),
        Some(_) | None => false,
    }
}
