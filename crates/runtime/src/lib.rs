//! What every controller shares: run loop, lease, events, metrics, webhook server, error classes.

pub mod clock;
mod connections;
pub mod error_class;
pub mod execution;
pub mod identity;
pub mod lease;
pub mod lenient;
pub mod report;
pub mod metrics;
pub mod run;
pub mod webhook;

#[cfg(test)]
mod test_cluster;

pub use clock::Clock;
pub use error_class::{Classified, ErrorClass};
pub use identity::identity;
pub use lease::Lease;
pub use report::Reporter;
pub use metrics::Metrics;
pub use run::{Reconcile, RunLoop};
