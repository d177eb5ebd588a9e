//! `boathook snapshot`: freezes, cuts and thaws, and says at each step how far it has come; and the snapshots there are.

mod create;
mod list;
mod result;
mod steps;
mod view;

pub(crate) use create::{Create, NOT_THAWED};
pub(crate) use view::View;
