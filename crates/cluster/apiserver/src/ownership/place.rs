//! How server-side apply sees one place of an object: a leaf that is owned as a whole, a map of fields, or a list
//! whose items are told apart.
//!
//! Where the schema says nothing (kept unknown fields), maps are granular and lists atomic, as Kubernetes deduces.

use serde_json::Value;

use super::element::{Element, Scalar};
use crate::schema::{ListType, Schema, Type};

#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Known {
        schema: &'a Schema,
        /// An ancestor keeps unknown fields: then they are known to nobody, but allowed here too.
        keeps_unknown: bool,
        /// It is a whole object: it has `apiVersion`, `kind` and `metadata` even if its schema does not say so.
        whole: bool,
    },
    Unknown,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form<'a> {
    Leaf,
    Map,
    Set,
    /// A list of objects, told apart by these fields.
    Keyed(&'a [String]),
}

impl<'a> Place<'a> {
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self::Known { schema, keeps_unknown: schema.preserve_unknown, whole: true }
    }

    fn child(schema: &'a Schema, keeps_unknown: bool) -> Self {
        let keeps_unknown = keeps_unknown || schema.preserve_unknown;
        Self::Known { schema, keeps_unknown, whole: schema.embedded }
    }

    pub(super) fn form(self, value: &Value) -> Form<'a> {
        match self {
            Self::Unknown if value.is_object() || value.is_null() => Form::Map,
            Self::Unknown => Form::Leaf,
            Self::Known { schema, .. } => match (schema.kind, value) {
                (Type::Object, _) | (Type::Any, Value::Object(_) | Value::Null) if schema.atomic_map => Form::Leaf,
                (Type::Object, _) | (Type::Any, Value::Object(_) | Value::Null) => Form::Map,
                (Type::Array, _) | (Type::Any, Value::Array(_)) => match &schema.list {
                    ListType::Atomic => Form::Leaf,
                    ListType::Set => Form::Set,
                    ListType::Map(keys) => Form::Keyed(keys),
                },
                (Type::Any | Type::String | Type::Integer | Type::Number | Type::Boolean | Type::IntOrString, _) => {
                    Form::Leaf
                }
            },
        }
    }

    /// Whether the schema names this field; a map's free keys are not named.
    pub(super) fn names(self, field: &str) -> bool {
        match self {
            Self::Known { schema, whole, .. } => {
                schema.properties.contains_key(field) || (whole && matches!(field, "apiVersion" | "kind" | "metadata"))
            }
            Self::Unknown => false,
        }
    }

    /// The place of a field; `None` if the schema does not allow it.
    pub(super) fn declared(self, field: &str) -> Option<Self> {
        let Self::Known { schema, keeps_unknown, .. } = self else { return Some(Self::Unknown) };
        if let Some(known) = schema.properties.get(field).or(schema.additional.as_ref()) {
            return Some(Self::child(known, keeps_unknown));
        }
        (keeps_unknown || schema.properties.is_empty() || self.names(field)).then_some(Self::Unknown)
    }

    /// The place of a field of an object that is already stored.
    pub(super) fn field(self, field: &str) -> Self {
        self.declared(field).unwrap_or(Self::Unknown)
    }

    pub(super) fn items(self) -> Self {
        match self {
            Self::Known { schema, keeps_unknown, .. } => {
                schema.items.as_deref().map_or(Self::Unknown, |items| Self::child(items, keeps_unknown))
            }
            Self::Unknown => Self::Unknown,
        }
    }

    fn default_of(self, field: &str) -> Option<&'a Value> {
        match self {
            Self::Known { schema, .. } => schema.properties.get(field)?.default.as_ref(),
            Self::Unknown => None,
        }
    }

    /// What tells this item of the list from the others; `self` is the list's place. Refuses in Kubernetes' words.
    pub(super) fn element(self, form: Form<'_>, item: &Value) -> Result<Element, String> {
        let keys = match (form, item) {
            (Form::Keyed(keys), Value::Object(_)) => keys,
            (Form::Keyed(_), Value::Null) => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            (Form::Keyed(_), _) => return Err("associative list with keys may not have non-map elements".to_owned()),
            (_, Value::Bool(_) | Value::Number(_) | Value::String(_)) => return Ok(Element::Value(Scalar::from(item))),
            (_, Value::Object(_) | Value::Array(_) | Value::Null) => {
                return Err("associative list without keys may have scalar elements only".to_owned());
            }
        };
        let value_of = |key: &str| item.get(key).or_else(|| self.items().default_of(key)).map(Scalar::from);
        let mut found: Vec<_> = keys.iter().filter_map(|key| Some((key.clone(), value_of(key)?))).collect();
        if found.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            let why = "has an element that omits all key fields";
            let unless = "(and doesn't have default values for any key fields)";
            return Err(format!("associative list with keys {why} [{}] {unless}", keys.join(" ")));
        }
        found.sort();
        Ok(Element::Key(found))
    }
}
