//! Boathook as a program: its command line, what its commands do and print, and the embedded cluster.

// A macro that prints panics when its stream is closed, and ends the task that logs.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod access;
mod cli;
mod commands;
mod demo;
mod drill;
pub mod embedded;
mod hooks;
mod listing;
pub mod log;
mod manifest;
mod mirror;
mod notifiers;
mod notify;
mod objects;
mod output;
mod plan;
mod pods;
mod rights;
mod rollout;
mod server;
mod snapshot;
mod subject;
mod thaw;
mod timeline;
mod unique;
mod waiting;

pub use cli::main;
