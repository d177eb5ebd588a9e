//! The `boathook` binary: parses the command line and calls the crate that does the work.

use clap::{CommandFactory, Parser};

/// The version of this build and the commit it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BOATHOOK_COMMIT"), ")");

/// Runs commands at the moments that matter in Kubernetes, and guarantees the way back
#[derive(Parser)]
#[command(name = "boathook", version = VERSION)]
struct Cli {}

fn main() -> std::process::ExitCode {
    let Cli {} = Cli::parse();
    // There is no command yet: what a bare call gets is the help, and the exit code of a usage error.
    eprint!("{}", Cli::command().render_help());
    std::process::ExitCode::from(2)
}
