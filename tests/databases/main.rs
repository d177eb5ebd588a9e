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
use boathook_tests::{run, shared, suite::Scenarios};

fn main() -> ExitCode {
    // Each database with either executor, and each scenario once: they take long.
    let with_api = shared![
        mariadb::a_lock_of_mariadb_that_is_lost_before_the_cut_fails_the_snapshot,
        postgresql::what_postgresql_had_committed_is_in_every_snapshot,
    ];
    let with_agent = shared![
        mariadb::what_mariadb_had_committed_is_in_every_snapshot,
        postgresql::a_backup_of_postgresql_that_is_lost_before_the_cut_fails_the_snapshot,
    ];
    let all = [with_api.with(Executor::Api), with_agent.with(Executor::Agent)];
    run::main(Path::new(env!("CARGO_BIN_EXE_lantern")), &Scenarios::suite("databases", all))
}
