//! Admission webhooks: others may change or refuse a write before it is stored.
//!
//! [`Webhooks`] is built from the configurations once per change of one of them. Mutating webhooks are called one
//! after the other, in the order of their configurations' names; validating ones all at once. What they do with a
//! request, and what the client reads when they refuse or fail, is as in Kubernetes.
//!
//! Each kind is served in one version here, so `matchPolicy` `Equivalent` and `Exact` mean the same.

mod call;
pub mod conditions;
mod dispatch;
mod review;
mod rule;
pub(crate) mod service_account;
#[cfg(test)]
mod test_server;
mod webhook;

pub use call::Resolve;
pub use dispatch::Webhooks;

use serde_json::Value;
use tokio::time::Instant;

use crate::access::User;

/// A write on its way in, as webhooks are asked about it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub operation: Operation,
    pub resource: Resource<'a>,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// Empty at the cluster scope; for a Namespace its own name.
    pub namespace: &'a str,
    pub name: &'a str,
    pub user: &'a User,
    /// As it is to be stored, with its UID and its final name; none on a delete.
    pub object: Option<&'a Value>,
    /// As it is stored; none on a create.
    pub old: Option<&'a Value>,
    pub dry_run: bool,
    /// `CreateOptions` and the like.
    pub options: &'a Value,
    /// When the client stops waiting. No call takes longer.
    pub deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resource<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub plural: &'a str,
    pub kind: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub fn name(self) -> String {
        format!("{self:?}").to_uppercase()
    }
}

/// A text for the client, sent in a `Warning` header.
pub type Warning = String;
