//! One step of a path into an object: a field, or an item of a list by key, value or index.

use std::fmt;

use serde_json::Value;

use crate::go_text;

/// Ordered as Kubernetes orders them: fields, then keys, values, indices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    Field(String),
    /// The item of a list whose key fields have these values; sorted by name.
    Key(Vec<(String, Scalar)>),
    /// The item of a set.
    Value(Scalar),
    Index(i64),
}

/// A JSON value that tells one list item from another. Integers come first, in their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scalar {
    is_other: bool,
    integer: i64,
    json: String,
}

impl From<&Value> for Scalar {
    fn from(value: &Value) -> Self {
        let integer = value.as_i64();
        Self { is_other: integer.is_none(), integer: integer.unwrap_or_default(), json: value.to_string() }
    }
}

impl Element {
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// An element as `fieldsV1` writes it: `f:name`, `k:{"name":"web"}`, `v:"x"`, `i:0`. `None` for a type that is
    /// not known: a later Kubernetes may have written it.
    pub(super) fn parse(text: &str) -> std::result::Result<Option<Self>, String> {
        let (kind, content) = text.split_once(':').ok_or_else(|| format!("missing colon: {text}"))?;
        let json = || serde_json::from_str::<Value>(content).map_err(|error| format!("{text}: {error}"));
        Ok(match kind {
            "f" => Some(Self::field(content)),
            "v" => Some(Self::Value(Scalar::from(&json()?))),
            "i" => Some(Self::Index(content.parse().map_err(|error| format!("{text}: {error}"))?)),
            "k" => {
                let Value::Object(fields) = json()? else { return Err(format!("{text}: the key is no object")) };
                let mut key: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), Scalar::from(value))).collect();
                key.sort();
                Some(Self::Key(key))
            }
            _ => None,
        })
    }

    pub(super) fn print(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), value.json)).collect();
                go_text::escaped(&format!("k:{{{}}}", fields.join(",")))
            }
            Self::Value(value) => format!("v:{}", go_text::escaped(&value.json)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// As messages name a place: `.spec.containers[name="web"].image`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", value.json)).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", value.json),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A whole path as messages name it.
pub(super) fn path_text(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}
