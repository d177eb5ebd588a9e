//! The node agent: carries out its node's PodNotifications through the container runtime, and keeps the ledger of what
//! must be undone.
//!
//! It reads what pods declare from their sandboxes, where the kubelet put it when they were created; it needs no right
//! to exec. What it has armed it undoes also while the API server is gone, and after its own death.

mod act;
mod declared;
mod keeper;
pub mod ledger;
mod observe;
mod readiness;
mod reconcile;
mod service;
#[cfg(test)]
mod test_node;
#[cfg(test)]
mod tests;

pub use service::{Agent, Options, StartError};
