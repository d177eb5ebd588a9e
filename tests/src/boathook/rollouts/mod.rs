//! Rollouts in scenarios: a Deployment with a lifecycle, what its user does with it, and everything that happened to it
//! meanwhile, by which the promises that hold for every rollout are checked at its end.

mod history;
mod invariants;
mod passed_stages;
mod replica_set_changes;
mod status_writes;
mod story;
mod user;
mod web;

pub use history::{History, hook_stage, is_hook, is_live, is_managed, template_of, version_of, version_of_pod};
pub use story::{Moment, Now, Story, Thing};
pub use web::{BROKEN, Web, short_progress_deadline, template, web};
