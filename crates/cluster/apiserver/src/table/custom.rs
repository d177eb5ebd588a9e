//! Custom kinds, by their `additionalPrinterColumns`.

use jiff::Timestamp;
use serde_json::Value;

use super::column::{Column, NAME};
use super::json_path::JsonPath;
use crate::{go_text, object, time};

#[derive(Clone, Debug)]
pub(super) struct Custom {
    columns: Vec<(Column, Option<JsonPath>)>,
}

impl Custom {
    pub(super) fn new(columns: Option<&[Column]>) -> Self {
        let age = Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            json_path: ".metadata.creationTimestamp".to_owned(),
            ..Column::default()
        };
        let columns = columns.filter(|columns| !columns.is_empty()).map_or_else(|| vec![age], <[Column]>::to_vec);
        let parse = |column: Column| {
            let path = JsonPath::parse(&column.json_path);
            (column, path)
        };
        Self { columns: columns.into_iter().map(parse).collect() }
    }

    pub(super) fn definitions(&self) -> Value {
        let columns = self.columns.iter().map(|(column, _)| column.definition());
        std::iter::once(NAME.definition()).chain(columns).collect()
    }

    pub(super) fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let cell = |(column, path): &(Column, Option<JsonPath>)| {
            let value = path.as_ref().and_then(|path| path.first(object));
            value.map_or(Value::Null, |value| cell(&column.kind, value, now))
        };
        std::iter::once(object::name(object).into()).chain(self.columns.iter().map(cell)).collect()
    }
}

/// A value as its column's type shows it; `Null` if it is of another type.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", value) => as_text(value).into(),
        // A fraction is cut off.
        ("integer", Value::Number(number)) => {
            number.as_i64().or_else(|| number.as_f64().map(|float| float as i64)).into()
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) if text.parse::<Timestamp>().is_err() => "<invalid>".into(),
        ("date", Value::String(text)) => time::age(text, now).into(),
        _ => Value::Null,
    }
}

/// As Go prints it: maps and lists as JSON that is safe in HTML, large fractions with an exponent.
fn as_text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => float_as_text(float),
            _ => number.to_string(),
        },
        Value::Array(_) | Value::Object(_) => go_text::json(value),
    }
}

fn float_as_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) if !(-4..6).contains(&exponent.parse().unwrap_or(0)) => {
            let (sign, size) = exponent.strip_prefix('-').map_or(("+", exponent), |size| ("-", size));
            format!("{digits}e{sign}{size:0>2}")
        }
        _ => float.to_string(),
    }
}
