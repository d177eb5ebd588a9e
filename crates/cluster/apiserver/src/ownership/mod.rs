//! Who owns which field of an object: server-side apply, and the bookkeeping of every other write.
//!
//! Pure functions on objects and the schema tree. [`apply`] merges an applied configuration into the live object;
//! [`track_update`] notes what a create, update or patch changed; both keep `metadata.managedFields` as Kubernetes
//! keeps it. After defaulting and admission, [`keep_times`] makes a write that changed nothing really change nothing.
//! All versions of a kind are taken to have the same fields: nothing is converted.

mod apply;
mod compare;
mod conflict;
mod element;
mod field_set;
mod fields_of;
mod last_applied;
mod managed;
mod merge;
mod place;
mod update;
mod validate;

#[cfg(test)]
mod tests;

pub use apply::apply;
pub use field_set::FieldSet;
pub use update::{keep_times, track_update};

use serde_json::Value;

use crate::schema::Schema;

/// Who writes, through which door, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// `fieldManager` of the request, or the start of its user agent up to the first `/`.
    pub manager: &'a str,
    /// `status`, `scale`, ...; empty for the resource itself.
    pub subresource: &'a str,
    /// RFC 3339 in UTC, in whole seconds.
    pub now: &'a str,
}

/// What is tracked of the objects of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Tracked<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub schema: &'a Schema,
    /// What nobody comes to own through this door, because it cannot be written there: `status` through the resource
    /// itself, `spec` through `status`.
    pub reset: &'a FieldSet,
    /// A new object as Go writes it before anything is set: what is always there, such as
    /// `{"spec": {"strategy": {}}}`, becomes nobody's by being created. `{}` for custom resources.
    pub blank: &'a Value,
}
