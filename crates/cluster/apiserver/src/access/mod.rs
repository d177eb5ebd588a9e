//! Who asks, and may they: users, tokens, impersonation, RBAC, and the reviews that tell others.
//!
//! Nothing here reads the store. [`Rules`] is built from the RBAC objects once per change of one of them; whatever
//! else is needed comes through a lookup that the caller gives. The time is an input too.

pub(crate) mod attributes;
pub(crate) mod bootstrap;
pub(crate) mod escalation;
pub(crate) mod impersonation;
pub(crate) mod policy_rule;
pub(crate) mod reviews;
pub(crate) mod rules;
pub(crate) mod token;
pub(crate) mod token_request;
pub(crate) mod user;

pub use attributes::Attributes;
pub use rules::{Decision, Rules};
pub use token::{Lookup, Tokens};
pub use user::User;

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
