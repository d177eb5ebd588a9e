//! The command line: parses, and calls what does the work.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::{commands, output};

/// The version of this build and the commit it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BOATHOOK_COMMIT"), ")");

const AFTER_HELP: &str = "\
Examples:
  boathook demo                                                  # see everything, without a cluster of your own
  boathook up --ephemeral --agent                                # start a small Kubernetes on this machine
  boathook snapshot create nightly --pvc data --template mysql   # freeze, snapshot, thaw

Exit codes:
  0    success
  1    failure; the last line on stderr says why
  2    the command line is wrong
  130  ended by Ctrl-C
Some commands have more: see `boathook COMMAND --help`.";

/// Run commands in Kubernetes pods around volume snapshots, at the stages of rollouts and on demand, with a guaranteed
/// thaw
#[derive(Parser)]
#[command(name = "boathook", version = VERSION, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Option<commands::Command>,
}

/// The name by which kubectl finds this program as its own: `kubectl boathook` runs it.
const PLUGIN: &str = "kubectl-boathook";

/// The reader closed the pipe: the code that a shell reports for SIGPIPE.
const PIPE_CLOSED: u8 = 141;

/// All of the program: what `main` is, and what a test runs in a process of its own.
pub fn main() -> ExitCode {
    // Before anything else: in a container this program becomes the container's command.
    boathook_node::container_init::run_if_asked();
    let called_as = called_as();
    let mut parser = commands::with_usage(Cli::command().bin_name(called_as), called_as);
    let matches = parser.get_matches_mut();
    let parsed = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut parser).exit());
    let Some(command) = parsed.command else {
        output::to_stderr(parser.render_help().to_string().trim_end());
        return ExitCode::from(2);
    };
    match commands::run(command) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::from(PIPE_CLOSED),
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}

/// What a person types to run this, for what this tells them to type next.
pub(crate) fn called_as() -> &'static str {
    typed_for(std::env::args_os().next())
}

fn typed_for(program: Option<OsString>) -> &'static str {
    let program = program.map(PathBuf::from);
    let name = program.as_deref().and_then(Path::file_name);
    if name.is_some_and(|name| name == PLUGIN) { "kubectl boathook" } else { "boathook" }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_calls_it_by_its_own_name() {
        let called = |program: &str| typed_for(Some(program.into()));
        assert_eq!(called("/usr/local/bin/kubectl-boathook"), "kubectl boathook");
        assert_eq!(called("target/debug/boathook"), "boathook");
        assert_eq!(typed_for(None), "boathook");
    }

    #[test]
    fn the_command_line_is_well_formed() {
        commands::with_usage(Cli::command(), "boathook").debug_assert();
    }
}
