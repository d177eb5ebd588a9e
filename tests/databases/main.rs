//! Real databases under load, by the recipes of `docs/databases.md`, on the embedded cluster: its pods are processes of
//! this machine, which must have Debian's `postgresql` and `mariadb-server`. So `.ci/run` runs it, not a plain
//! `cargo test`.

mod database;
mod load;
mod mariadb;
mod postgresql;
mod recipe;

use std::{path::Path, process::ExitCode};

use boathook_api::pod_notification::Executor;
use boathook_tests::{
    boathook::phases::{self, Scenarios},
    common,
};

fn main() -> ExitCode {
    // Each database with either executor, and each scenario once: they take long.
    let with_api = common![
        mariadb::a_lock_of_mariadb_that_is_lost_before_the_cut_fails_the_snapshot,
        postgresql::what_postgresql_had_committed_is_in_every_snapshot,
    ];
    let with_agent = common![
        mariadb::what_mariadb_had_committed_is_in_every_snapshot,
        postgresql::a_backup_of_postgresql_that_is_lost_before_the_cut_fails_the_snapshot,
    ];
    let suite = [
        Scenarios { common: with_api, ..Scenarios::with(Executor::Api) },
        Scenarios { common: with_agent, ..Scenarios::with(Executor::Agent) },
    ];
    phases::main(Path::new(env!("CARGO_BIN_EXE_lantern")), &suite)
}
