//! `boathook logbook`: the database of the demo, in whose pods there is no other program. Hidden: it is nobody's tool.

use std::process::ExitCode;

use clap::Args;

#[derive(Args)]
pub(crate) struct Logbook {
    /// As `boathook_logbook` has them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

impl Logbook {
    pub(crate) fn run(self) -> ExitCode {
        boathook_logbook::run(self.arguments)
    }
}
