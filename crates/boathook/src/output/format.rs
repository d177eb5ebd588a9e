//! `-o json|yaml|wide`: objects as kubectl prints them.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{Value, json, ser::PrettyFormatter};

/// How a command shows what it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table.
    #[default]
    #[value(skip)]
    Table,
    /// The objects, as JSON
    Json,
    /// The objects, as YAML
    Yaml,
    /// A table with more columns
    Wide,
}

impl Format {
    /// Whether it is for a program, so that nothing else may be on stdout.
    pub(crate) fn is_for_programs(self) -> bool {
        match self {
            Self::Json | Self::Yaml => true,
            Self::Table | Self::Wide => false,
        }
    }

    /// The text of a value; a table has none.
    pub(crate) fn text(self, value: &Value) -> Result<Option<String>> {
        match self {
            Self::Json => json_text(value).map(Some),
            Self::Yaml => serde_saphyr::to_string(value).context("failed to write YAML").map(Some),
            Self::Table | Self::Wide => Ok(None),
        }
    }
}

/// With four spaces, as kubectl's.
fn json_text(value: &Value) -> Result<String> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b"    "));
    serde::Serialize::serialize(value, &mut serializer).context("failed to write JSON")?;
    bytes.push(b'\n');
    String::from_utf8(bytes).context("failed to write JSON")
}

/// Several objects as one, as kubectl has them.
pub(crate) fn list(mut items: Vec<Value>) -> Value {
    items.iter_mut().for_each(hide_managed_fields);
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
}

/// One object; who owns which of its fields is left out, as kubectl leaves it.
pub(crate) fn single(mut object: Value) -> Value {
    hide_managed_fields(&mut object);
    object
}

fn hide_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_look_as_kubectl_shows_them() {
        let object = json!({"kind": "A", "metadata": {"name": "a", "managedFields": [1]}, "list": [{"b": "yes"}]});
        let json = Format::Json.text(&single(object.clone())).unwrap().unwrap();
        assert!(json.contains("\n    \"kind\": \"A\",\n") && !json.contains("managedFields"), "{json}");
        let yaml = Format::Yaml.text(&list(vec![object])).unwrap().unwrap();
        let read: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read["items"][0]["list"][0]["b"], "yes", "{yaml}");
        assert!(yaml.starts_with("apiVersion: v1\nitems:\n"), "{yaml}");
        assert_eq!(Format::Wide.text(&json!({})).unwrap(), None);
    }
}
