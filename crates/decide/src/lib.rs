//! What to do about an object, from what was observed, the time and leadership. Pure: no client, no clock, no I/O.
//!
//! A file per kind. Each has a `decide` that returns a [`Decision`]: effects for the controller to carry out one at a
//! time, in order, stopping at the first that fails; reports, from which conditions, Events and metrics are made; and
//! when to look again. After a crash between any two effects, the next look at the objects is enough to go on.

pub mod application_snapshot;
mod conditions;
pub mod deployment_lifecycle;
pub mod execution_hook;
mod freeze_window;
mod last_lines;
mod maker;
mod moment;
mod naming;
pub mod notification;
pub mod pod_notification;
pub mod report;
mod retries;
mod succeeded;
pub mod volume_snapshot;

pub use report::{About, Gravity, Report};

/// What this process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// It holds the lease.
    Leader,
    /// It has held the lease and lost it: it starts nothing, but takes back what it has done.
    ThawOnly,
}

/// What to do now, and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<Effect> {
    pub effects: Vec<Effect>,
    pub reports: Vec<Report>,
    /// Absent: only when something changes.
    pub again: Option<jiff::Timestamp>,
}

impl<Effect> Default for Decision<Effect> {
    fn default() -> Self {
        Self { effects: vec![], reports: vec![], again: None }
    }
}
