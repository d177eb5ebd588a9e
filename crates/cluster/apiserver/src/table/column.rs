//! The columns of a table.

use serde_json::{Value, json};

/// One of a custom kind's `additionalPrinterColumns`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    pub format: String,
    pub description: String,
    /// 0 is always shown, more only in wide output.
    pub priority: i64,
    pub json_path: String,
}

impl Column {
    pub(super) fn definition(&self) -> Value {
        let description = match self.description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {}", self.json_path),
            description => description.to_owned(),
        };
        definition(&self.name, &self.kind, &self.format, &description, self.priority)
    }
}

/// A column of a built-in kind. It has no description: nobody is shown it.
#[derive(Debug)]
pub(super) struct BuiltInColumn {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    priority: i64,
}

pub(super) const NAME: BuiltInColumn = BuiltInColumn { name: "Name", kind: "string", format: "name", priority: 0 };
pub(super) const AGE: BuiltInColumn = text("Age");

pub(super) const fn text(name: &'static str) -> BuiltInColumn {
    BuiltInColumn { name, kind: "string", format: "", priority: 0 }
}

pub(super) const fn integer(name: &'static str) -> BuiltInColumn {
    BuiltInColumn { name, kind: "integer", format: "", priority: 0 }
}

pub(super) const fn boolean(name: &'static str) -> BuiltInColumn {
    BuiltInColumn { name, kind: "boolean", format: "", priority: 0 }
}

pub(super) const fn date(name: &'static str) -> BuiltInColumn {
    BuiltInColumn { name, kind: "date", format: "", priority: 0 }
}

/// Shown only in wide output.
pub(super) const fn wide(name: &'static str) -> BuiltInColumn {
    BuiltInColumn { name, kind: "string", format: "", priority: 1 }
}

impl BuiltInColumn {
    /// The column holds a name.
    pub(super) const fn named(self) -> Self {
        Self { format: "name", ..self }
    }

    pub(super) fn definition(&self) -> Value {
        definition(self.name, self.kind, self.format, "", self.priority)
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}
