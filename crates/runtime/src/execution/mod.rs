//! PodNotifications carried out in this process: what controller and agent share.
//!
//! [`Runs`] keeps what runs here and how it ended, until that is written down, and the sessions that are held; [`Rooms`] says how much may run at once;
//! [`apply`] carries out one effect of a decision.

mod apply;
mod rooms;
mod runs;
mod sessions;

pub use apply::{ApplyError, Latest, apply, apply_here};
pub use rooms::{Limits, Room, Rooms};
pub use runs::{Runs, Subject};
