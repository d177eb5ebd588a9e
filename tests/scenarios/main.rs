//! Every scenario, on the cluster that the environment chooses. `boathook_tests::suite` says which of them a run includes.

mod adversary;
mod combined;
mod kubernetes;
mod notifications;
mod rollouts;
mod snapshots;

use std::{path::Path, process::ExitCode};

use boathook_tests::{run, suite::Scenarios};

fn main() -> ExitCode {
    let all = [
        adversary::suite(),
        kubernetes::suite(),
        notifications::suite(),
        snapshots::suite(),
        rollouts::suite(),
        combined::suite(),
    ];
    run::main(Path::new(env!("CARGO_BIN_EXE_lantern")), &Scenarios::join(all))
}
