//! Boathook as a program: its command line, what its commands do and print, and the embedded cluster.

mod access;
mod cli;
mod commands;
mod demo;
mod drill;
pub mod embedded;
mod hooks;
pub mod log;
mod manifest;
mod mirror;
mod notifiers;
mod notify;
mod objects;
mod output;
mod plan;
mod pods;
mod snapshot;
mod subject;
mod thaw;
mod timeline;
mod unique;
mod waiting;

pub use cli::main;
