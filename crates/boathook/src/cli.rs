//! The command line: parses, and calls what does the work.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::commands;

/// The version of this build and the commit it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BOATHOOK_COMMIT"), ")");

/// Runs commands at the moments that matter in Kubernetes, and guarantees the way back
#[derive(Parser)]
#[command(name = "boathook", version = VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Option<commands::Command>,
}

/// All of the program: what `main` is, and what a test runs in a process of its own.
pub fn main() -> ExitCode {
    // Before anything else: in a container this program becomes the container's command.
    boathook_node::container_init::run_if_asked();
    let Some(command) = Cli::parse().command else {
        eprint!("{}", Cli::command().render_help());
        return ExitCode::from(2);
    };
    match commands::run(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
