//! The table of an object's fields.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{
    Found,
    differences::{Difference, Proposal},
    shared,
};

/// A list of more values than this is not spelt out.
const FEW: usize = 14;

/// An object with this many of the fields of the object around it is the same again.
const MANY: usize = 5;

/// How the description of a misspelt field begins, which the API server always rejects.
const MISSPELT: &str = "Not a field:";

/// Separates the default from the description: it has its place in the type column.
const DEFAULT: &str = "Default: ";

/// The rows of an object, and the paths in them.
pub(super) struct Table {
    pub(super) text: String,
    pub(super) fields: Vec<String>,
    differences: Vec<&'static Difference>,
}

impl Table {
    pub(super) fn of(schema: &Value, differences: &[&'static Difference], found: &mut Found) -> Self {
        let text = "| field | type | description |\n|---|---|---|\n".to_owned();
        let mut table = Self { text, fields: Vec::new(), differences: differences.to_vec() };
        table.rows("", schema, &Value::Null, found);
        table
    }

    /// A row for each field of this object and of those in it, required ones first.
    fn rows(&mut self, prefix: &str, object: &Value, around: &Value, found: &mut Found) {
        let nothing = Map::new();
        let fields = object["properties"].as_object().unwrap_or(&nothing);
        let is_required = |name: &str| {
            object["required"].as_array().is_some_and(|required| required.iter().any(|one| one.as_str() == Some(name)))
        };
        // The undo of a container is described as its handler is.
        let alike: Vec<_> = fields.keys().filter(|name| !around["properties"][*name].is_null()).collect();
        let alike = if alike.len() >= MANY { alike } else { Vec::new() };
        let rows = fields.iter().filter(|(name, _)| !alike.contains(name));
        let (required, optional): (Vec<_>, Vec<_>) = rows.partition(|(name, _)| is_required(name));
        for (name, field) in required.into_iter().chain(optional) {
            if !text(field, "description").starts_with(MISSPELT) {
                self.row(&format!("{prefix}{name}"), is_required(name), field, object, found);
            }
        }
        if !alike.is_empty() {
            let names: Vec<_> = alike.iter().map(|name| format!("`{name}`")).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "| `{prefix}*` | | As in the enclosing object: {}. |", names.join(", "));
        }
    }

    /// The row of a field of the object `around`.
    fn row(&mut self, path: &str, required: bool, field: &Value, around: &Value, found: &mut Found) {
        let (inner, many) = match field["type"].as_str() {
            Some("array") => (&field["items"], true),
            _ => (field, false),
        };
        let shared = shared::find(inner);
        if let Some((shared, extra)) = &shared
            && extra.is_empty()
        {
            found.entry(shared.name).or_insert_with(|| inner.clone());
        }
        let link = shared.as_ref().map(|(shared, _)| format!("[{}](#{})", shared.name, shared.name.to_lowercase()));
        let link = link.or_else(|| shared::of_kubernetes(inner));
        let is_linked = link.is_some();
        let kind = match (link, many) {
            (Some(link), true) => format!("{link}[]"),
            (Some(link), false) => link,
            (None, many) if is_reference(inner) => format!("`name`, `uid`{}", if many { "[]" } else { "" }),
            (None, _) => kind(field),
        };
        let (mut about, default) = about(field);
        let default = default.map(|default| format!(", default {default}")).unwrap_or_default();
        let mut shown = if required { format!("**`{path}`**") } else { format!("`{path}`") };
        for difference in self.differences.iter().filter(|difference| difference.fields.contains(&path)) {
            match difference.proposal {
                Proposal::HasNone => shown.push('†'),
                Proposal::Differs(_) => about = format!("{about} {}", difference.sentence()),
            }
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "| {shown} | {kind}{default} | {about} |");
        self.fields.push(path.to_owned());
        let prefix = if many { format!("{path}[].") } else { format!("{path}.") };
        match shared {
            Some((_, extra)) => {
                for name in extra {
                    self.row(&format!("{prefix}{name}"), true, &inner["properties"][name], inner, found);
                }
            }
            None if is_linked || is_reference(inner) => {}
            None => self.rows(&prefix, inner, around, found),
        }
    }
}

/// Whether this names another object, and nothing else.
fn is_reference(object: &Value) -> bool {
    object["properties"].as_object().is_some_and(|fields| fields.keys().eq(["name", "uid"]))
}

/// What may be written there.
fn kind(field: &Value) -> String {
    let values = field["enum"].as_array().filter(|values| values.len() <= FEW);
    let kind = match (field["type"].as_str(), values) {
        (_, Some(values)) => {
            let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
            let about = text(field, "description");
            match values.iter().all(|value| about.contains(&format!("`{value}`"))) {
                true => "enum".to_owned(),
                false => values.join(", "),
            }
        }
        (Some("array"), None) => format!("{}[]", kind(&field["items"])),
        (Some(kind), None) => kind.to_owned(),
        (None, None) if field["x-kubernetes-int-or-string"] == true => "integer or string".to_owned(),
        (None, None) => "any".to_owned(),
    };
    let kind = match field["format"].as_str() {
        Some("date-time") => "time".to_owned(),
        Some(_) | None => kind,
    };
    match field["minimum"].as_f64() {
        Some(least) => format!("{kind}, at least {least}"),
        None => kind,
    }
}

/// The description and, apart from it, the default if it is a value.
fn about(field: &Value) -> (String, Option<String>) {
    let about = text(field, "description");
    match about.rsplit_once(DEFAULT) {
        Some((about, default)) if !default.contains(' ') => {
            (about.trim_end().to_owned(), Some(default.strip_suffix('.').unwrap_or(default).to_owned()))
        }
        Some(_) | None => (about, None),
    }
}

/// A text for a cell: on one line.
pub(super) fn text(of: &Value, field: &str) -> String {
    let words = of[field].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>();
    words.join(" ").replace('|', "\\|")
}
