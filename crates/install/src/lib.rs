//! What Boathook puts into a cluster: its namespace, CRDs, roles, webhook configurations.
//!
//! What is written here by hand is rendered into `deploy/` by `cargo xtask generate`.

pub mod apply;
mod network_policy;
pub mod render;
pub mod roles;
pub mod webhooks;

pub use apply::apply;

/// Where Boathook's own objects live, unless told otherwise.
pub const NAMESPACE: &str = "boathook-system";

/// Under this name Boathook's own parts own the fields that they apply.
pub const FIELD_MANAGER: &str = "boathook-install";
