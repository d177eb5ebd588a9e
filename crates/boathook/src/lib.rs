//! Boathook as a program: its command line, what its commands do and print, and the embedded cluster.

mod access;
mod cli;
mod commands;
mod demo;
pub mod embedded;
pub mod log;
mod notifiers;
mod notify;
mod output;
mod pods;

pub use cli::main;
