//! The `boathook` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    boathook::main()
}
