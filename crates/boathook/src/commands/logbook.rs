//! `boathook logbook`: the database of the demo, in whose pods there is no other program. Hidden: it is for the demo and the docs.

use std::process::ExitCode;

use clap::Args;

const AFTER_HELP: &str = "\
The logbook is the demo database of the documentation: it writes records into DIR until it is frozen. It is not a tool
for your own data.

Commands:
  serve DIR [--pace N] [--thaw-after SECONDS]  write N records a second (50)
  freeze DIR                                   finish the current record, sync, and write no more
  thaw DIR                                     continue writing
  hold DIR                                     stay frozen until stdin ends
  status DIR [-o json]                         report whether it is frozen, and how many records there are
  verify DIR [-o json]                         check a copy: 0 whole, 1 torn, 2 unreadable

Examples:
  boathook logbook serve data
  boathook logbook freeze data

Exit codes:
  0    success
  1    failure; for verify: the copy is torn
  2    the command line is wrong; for verify: the copy is unreadable";

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Logbook {
    /// A command and its directory: serve, freeze, thaw, hold, status or verify, and DIR
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

impl Logbook {
    pub(crate) fn run(self) -> ExitCode {
        boathook_logbook::run(self.arguments)
    }
}
