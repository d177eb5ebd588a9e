//! `boathook rollout`: hooks at the stages of rollouts, followed, looked back on, rehearsed, and helped along.

mod deployment;
mod history;
mod progress;
mod rehearse;
mod request;
mod stages;
mod status;
mod steps;
mod verdict;
mod view;

pub(crate) use deployment::deployment_name;
pub(crate) use history::History;
pub(crate) use rehearse::{Rehearse, parse};
pub(crate) use request::Request;
pub(crate) use status::Status;
