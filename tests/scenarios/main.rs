//! The scenarios, each run on the cluster that the environment chooses. See `boathook_tests` for how they are run.

mod access;
mod admission;
mod deployments;
mod exec;
mod images;
mod services;
mod snapshots;

use std::{path::Path, process::ExitCode};

use boathook_tests::{scenario, scenarios};

fn main() -> ExitCode {
    let scenarios = scenarios![
        access::a_user_without_rights_is_refused_until_a_role_allows_it,
        admission::a_mutating_webhook_on_the_host_changes_what_it_selects,
        admission::a_validating_webhook_on_the_host_denies_in_its_own_words,
        deployments::a_rolling_update_keeps_enough_pods_available,
        deployments::a_recreated_deployment_never_runs_two_templates_at_once,
        deployments::an_undone_rollout_uses_its_old_replica_set_again,
        exec::an_exit_code_comes_back_as_it_was,
        exec::a_missing_program_is_a_failure_and_not_an_exit_code,
        exec::stdin_reaches_the_command_and_its_end_does_too,
        exec::twenty_megabytes_of_output_arrive_whole,
        exec::a_stream_cut_in_the_middle_has_no_status,
        images::an_image_without_a_shell_runs_and_is_executed_in,
        services::a_service_reaches_its_pod,
        snapshots::a_claim_is_snapshotted_and_restored_byte_for_byte,
    ];
    scenario::main(Path::new(env!("CARGO_BIN_EXE_lantern")), scenarios)
}
