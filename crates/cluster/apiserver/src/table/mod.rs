//! Server-side printing: `meta.k8s.io/v1` Tables, what `kubectl get` shows.
//!
//! Every kind has a [`Printer`], made once: built-in kinds with Kubernetes' own columns and cells, custom ones with
//! their `additionalPrinterColumns`. The time is an input, for the ages.

mod access;
mod builtin;
mod column;
mod custom;
mod event;
mod json_path;
mod network;
mod node;
mod pod;
mod read;
mod storage;
mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use column::Column;

use crate::metadata_only::partial;
use crate::object;
use crate::status::{FieldError, Result, Status};
use column::BuiltInColumn;
use custom::Custom;

/// What of each object goes into its row (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

impl Include {
    /// From the query parameter; empty if it was not given.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "None" => Ok(Self::None),
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            other => {
                let allowed = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid("includeObject", &other.into(), allowed);
                Err(Status::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// How the objects of one kind are printed.
#[derive(Clone, Debug)]
pub struct Printer(Source);

#[derive(Clone, Debug)]
enum Source {
    BuiltIn(&'static [BuiltInColumn]),
    Custom(Custom),
}

impl Printer {
    pub fn of_builtin(group: &str, kind: &str) -> Self {
        Self(Source::BuiltIn(builtin::of(group, kind)))
    }

    /// By a custom kind's `additionalPrinterColumns`; without any it shows the age, as Kubernetes defaults it.
    pub fn of_custom(columns: Option<&[Column]>) -> Self {
        Self(Source::Custom(Custom::new(columns)))
    }

    /// A list; `metadata` is the list's own (`resourceVersion`, `continue`, `remainingItemCount`).
    pub fn list<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Value>,
        metadata: Value,
        include: Include,
        now: Timestamp,
    ) -> Value {
        let rows = objects.into_iter().map(|object| self.row(object, include, now)).collect();
        table(metadata, self.columns(), rows)
    }

    /// One object.
    pub fn one(&self, object: &Value, include: Include, now: Timestamp) -> Value {
        let metadata = json!({"resourceVersion": object::resource_version(object)});
        table(metadata, self.columns(), vec![self.row(object, include, now)])
    }

    /// The object of a watch event; only a watch's first one has columns.
    pub fn event(&self, object: &Value, include: Include, now: Timestamp, is_first: bool) -> Value {
        let mut table = self.one(object, include, now);
        if !is_first {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    fn columns(&self) -> Value {
        match &self.0 {
            Source::BuiltIn(columns) => columns.iter().map(BuiltInColumn::definition).collect(),
            Source::Custom(custom) => custom.definitions(),
        }
    }

    fn row(&self, object: &Value, include: Include, now: Timestamp) -> Value {
        let cells = match &self.0 {
            Source::BuiltIn(columns) => columns.iter().map(|column| column.cell(object, now)).collect(),
            Source::Custom(custom) => custom.cells(object, now),
        };
        // The end of a watch's initial events must be seen whatever is included.
        let marks_end = object.pointer("/metadata/annotations/k8s.io~1initial-events-end").is_some();
        let included = match include {
            Include::Object => object.clone(),
            Include::Metadata => partial(object),
            Include::None if marks_end => partial(object),
            Include::None => Value::Null,
        };
        let mut row = json!({"cells": cells, "object": included});
        if let Some(conditions) = pod::conditions(object) {
            row["conditions"] = conditions;
        }
        row
    }
}

fn table(metadata: Value, columns: Value, rows: Vec<Value>) -> Value {
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

#[cfg(test)]
mod tests;
