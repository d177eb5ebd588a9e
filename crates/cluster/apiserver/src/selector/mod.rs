//! Label and field selectors: which objects a list, a watch or a webhook is about.
//!
//! Parsed once per request, then matched against many objects. What cannot be parsed is refused in Kubernetes' words.

mod fields;
mod label_syntax;
mod labels;
mod parse;

pub(crate) use label_syntax::{label_key_problems, label_value_problems};

pub use fields::{FieldSelector, SelectableFields};
pub use labels::{LabelSelector, Operator, Requirement};
