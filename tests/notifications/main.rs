//! Notifications on the cluster that the environment chooses, with both executors. See `boathook_tests::boathook`.

mod endings;
mod handlers;
mod undo;

use std::{path::Path, process::ExitCode};

use boathook_tests::{
    boathook::phases::{self, Suite},
    common,
};

fn main() -> ExitCode {
    let both = common![
        endings::a_missing_program_is_a_failure_with_the_runtimes_words,
        handlers::a_notifier_runs_where_it_is_declared_and_nowhere_else,
        undo::an_undo_runs_when_it_is_asked_for,
    ];
    let suite = Suite { api: both.clone(), agent: vec![], alone: vec![] };
    phases::main(Path::new(env!("CARGO_BIN_EXE_lantern")), &suite)
}
