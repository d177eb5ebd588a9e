//! Conflicts between appliers, told as Kubernetes tells them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::element::path_text;
use super::field_set::FieldSet;
use super::managed::{Operation, Owner};
use crate::status::Status;

/// Which fields of which other owners an apply would change.
pub(super) type Conflicts = BTreeMap<Owner, FieldSet>;

pub(super) fn status(conflicts: &Conflicts) -> Status {
    let mut conflicts: Vec<_> = conflicts.iter().collect();
    // The order of their JSON texts, in which a subresource comes before the end.
    conflicts.sort_by_key(|(Owner { manager, operation, api_version, subresource }, _)| {
        (manager, operation, api_version, subresource.is_empty(), subresource)
    });
    let told: Vec<(String, Vec<String>)> = conflicts
        .into_iter()
        .map(|(owner, fields)| (name(owner), fields.paths().iter().map(|path| path_text(path)).collect()))
        .collect();
    let causes = told.iter().flat_map(|(owner, paths)| {
        let message = format!("conflict with {owner}");
        paths.iter().map(move |path| json!({"reason": "FieldManagerConflict", "message": message, "field": path}))
    });
    let causes: Vec<Value> = causes.collect();
    let message = match told.as_slice() {
        [(owner, paths)] if paths.len() == 1 => {
            format!("Apply failed with 1 conflict: conflict with {owner}: {}", paths.concat())
        }
        owners => {
            let lines: Vec<String> = owners
                .iter()
                .map(|(owner, paths)| format!("conflicts with {owner}:\n- {}", paths.join("\n- ")))
                .collect();
            format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n"))
        }
    };
    Status { code: 409, reason: "Conflict".into(), message, details: json!({"causes": causes}) }
}

fn name(owner: &Owner) -> String {
    let mut name = format!("{:?}", owner.manager);
    if !owner.subresource.is_empty() {
        name += &format!(" with subresource {:?}", owner.subresource);
    }
    if owner.operation == Operation::Update {
        name += &format!(" using {}", owner.api_version);
    }
    name
}
