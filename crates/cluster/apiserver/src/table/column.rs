//! The columns of a table.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::read;
use crate::{object, time};

/// One of a custom kind's `additionalPrinterColumns`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
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
    cell: Cell,
}

/// How a cell comes about.
#[derive(Clone, Copy, Debug)]
enum Cell {
    /// The text at a JSON pointer, and what is shown if there is none.
    Text(&'static str, &'static str),
    Number(&'static str),
    Flag(&'static str),
    /// How many items a list has, or how many keys a map.
    Count(&'static str),
    Made(fn(&Value, Timestamp) -> Value),
}

pub(super) const NAME: BuiltInColumn = text("Name", "/metadata/name").named();
pub(super) const AGE: BuiltInColumn =
    made("Age", |object, now| time::age(object::text(object, "/metadata/creationTimestamp"), now).into());

const fn column(name: &'static str, kind: &'static str, cell: Cell) -> BuiltInColumn {
    BuiltInColumn { name, kind, format: "", priority: 0, cell }
}

pub(super) const fn text(name: &'static str, pointer: &'static str) -> BuiltInColumn {
    column(name, "string", Cell::Text(pointer, ""))
}

/// A text, and what is shown if there is none.
pub(super) const fn text_or(name: &'static str, pointer: &'static str, absent: &'static str) -> BuiltInColumn {
    column(name, "string", Cell::Text(pointer, absent))
}

pub(super) const fn integer(name: &'static str, pointer: &'static str) -> BuiltInColumn {
    column(name, "integer", Cell::Number(pointer))
}

pub(super) const fn boolean(name: &'static str, pointer: &'static str) -> BuiltInColumn {
    column(name, "boolean", Cell::Flag(pointer))
}

pub(super) const fn count(name: &'static str, pointer: &'static str) -> BuiltInColumn {
    column(name, "integer", Cell::Count(pointer))
}

pub(super) const fn made(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> BuiltInColumn {
    column(name, "string", Cell::Made(cell))
}

impl BuiltInColumn {
    /// The column holds a name.
    pub(super) const fn named(self) -> Self {
        Self { format: "name", ..self }
    }

    /// Shown only in wide output.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// Said to be of another type than its cells are.
    pub(super) const fn called(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    pub(super) fn definition(&self) -> Value {
        definition(self.name, self.kind, self.format, "", self.priority)
    }

    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match self.cell {
            Cell::Text(pointer, absent) => read::text_or(object, pointer, absent).into(),
            Cell::Number(pointer) => read::number(object, pointer).into(),
            Cell::Flag(pointer) => object::is_true(object, pointer).into(),
            Cell::Count(pointer) => {
                object::list(object, pointer).len().max(object::fields(object, pointer).count()).into()
            }
            Cell::Made(make) => make(object, now),
        }
    }
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}
