//! The program of the image with a database: `crates/logbook` and nothing else, so that `rustc` builds both for the real
//! cluster as a static binary, and cargo builds them for the embedded one beside the scenarios.

use std::process::ExitCode;

fn main() -> ExitCode {
    boathook_logbook::run(std::env::args().skip(1))
}
