//! Boathook as a program: its command line, and the embedded cluster.

mod cli;
mod commands;
pub mod embedded;
pub mod log;

pub use cli::main;
