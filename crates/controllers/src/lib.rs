//! The controllers: a folder per kind. Each observes, lets `boathook_decide` decide, and acts.

pub mod application_snapshot;
mod author_check;
pub mod deployment_lifecycle;
pub mod execution_hook;
pub mod notification;
mod owner;
pub mod pod_notification;
mod refusals;
pub mod service;
#[cfg(test)]
mod test_container;
#[cfg(test)]
mod test_world;
pub mod volume_snapshot;
pub mod webhooks;
mod writes;

use std::time::Duration;

use jiff::Timestamp;
pub use service::Service;

/// How long it is until then; nothing if it is past.
fn until(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}
