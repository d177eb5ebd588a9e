//! Label and field selectors: which objects a list, a watch or a webhook is about.
//!
//! Parsed once per request, then matched against many objects. What cannot be parsed is refused in Kubernetes' words.

mod fields;
pub(crate) mod label_syntax;
mod labels;
mod parse;

pub use fields::{FieldSelector, SelectableFields};
pub use label_syntax::label_key_problems;
pub use labels::LabelSelector;
