//! What every controller shares: run loop, lease, events, metrics, webhook server, error classes.

mod client;
pub mod clock;
mod connections;
mod deadlines;
mod elapsed;
pub mod error_class;
mod events;
pub mod execution;
pub mod health;
pub mod identity;
mod in_time;
pub mod lease;
pub mod lenient;
pub mod metrics;
pub mod report;
pub mod rights;
pub mod run;
mod until_answered;
pub mod watches;
pub mod webhook;

#[cfg(test)]
mod test_cluster;

pub use client::client;
pub use clock::Clock;
pub use deadlines::Deadlines;
pub use elapsed::Elapsed;
pub use error_class::{Classified, ErrorClass};
pub use identity::identity;
pub use in_time::in_time;
pub use lease::Lease;
pub use metrics::Metrics;
pub use report::{Reported, Reporter};
pub use run::{Reconcile, RunLoop};
pub use until_answered::until_answered;
pub use watches::Watches;
