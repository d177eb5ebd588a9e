//! `boathook hooks`: the hooks there are, and what became of each.

mod describe;
mod list;
mod state;

pub(crate) use describe::Describe;
#[cfg(test)]
pub(crate) use state::tests;
pub(crate) use state::{State, snapshot_of, state, why};
