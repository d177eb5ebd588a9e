//! Processes of this host: found, looked into, and a tree of them ended whole.
//!
//! A process is known by its number and the time it started ([`Identity`]), and signalled through a descriptor that is
//! checked against both: a number that was given to another process meanwhile never gets what was meant for the first.
//! [`Tree`] is everything that came of one process, as far as it can be known: by its cgroup if it was given one; else by
//! session, descent, the pipes it prints into, and a mark in the environment.

mod cgroup;
mod dispositions;
mod family;
mod handle;
mod inspect;
mod left_behind;
mod outputs;
pub mod private;
mod snapshot;
mod tree;

pub use cgroup::Cgroup;
pub use dispositions::Dispositions;
pub use handle::Handle;
pub use inspect::{arguments, carries, find_by_argument, has_program, pid_namespace};
pub use left_behind::LeftBehind;
pub use rustix::process::Signal;
pub use snapshot::{Identity, Process, numbers, processes};
pub use tree::{Remaining, Tree};
