//! The real kubectl against the cluster that the environment names, through every command of the list in README's
//! promise: each is checked by what it prints and by what it does.
//!
//! The scenarios pass unchanged on a real cluster and on the embedded one; where they do not, the embedded one is
//! wrong. See `boathook_tests` for how they are run.

mod apply;
mod auth;
mod boats;
mod cp;
mod create;
mod delete;
mod describe;
mod discovery;
mod dry_run;
mod edit;
mod events;
mod exec;
mod get;
mod kubectl;
mod label;
mod logs;
mod manifests;
mod patch;
mod rollout;
mod running;
mod scale;
mod terminal;
mod wait;

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use boathook_tests::{cluster::Choice, plain, run, suite::Scenarios};

fn main() -> ExitCode {
    // kubectl finds its cluster by itself, in KUBECONFIG.
    if !matches!(Choice::of_the_environment(), Ok(Choice::Kubeconfig)) {
        eprintln!("error: kubectl needs BOATHOOK_TEST_CLUSTER=kubeconfig and KUBECONFIG to name its cluster");
        return ExitCode::FAILURE;
    }
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        eprintln!(
            "error: there is no `kubectl` on the PATH; `cargo xtask cluster programs` builds the one of the tests and \
             prints the folder to put there"
        );
        return ExitCode::FAILURE;
    }
    let all = plain![
        discovery::version_names_the_server,
        discovery::api_resources_lists_built_in_and_custom_kinds,
        discovery::explain_knows_built_in_and_custom_fields,
        apply::a_second_apply_removes_what_the_first_had,
        apply::a_custom_object_is_applied_twice_too,
        apply::two_appliers_of_one_field_conflict_until_one_forces,
        apply::what_an_applier_no_longer_says_is_removed,
        create::objects_are_created_from_files_and_by_generators,
        create::what_exists_is_not_created_again,
        create::replace_takes_the_whole_object,
        create::replace_refuses_what_has_changed_meanwhile,
        patch::the_three_patches_treat_a_list_each_in_its_way,
        patch::a_patch_that_changes_nothing_says_so,
        patch::a_bad_patch_is_refused_and_changes_nothing,
        patch::the_status_is_patched_alone,
        edit::an_edit_is_what_the_editor_leaves,
        edit::an_edit_that_is_refused_opens_again_with_the_reason,
        get::pods_are_shown_as_a_table,
        get::yaml_json_and_jsonpath_show_the_object,
        get::selectors_choose_by_label_and_field,
        get::every_namespace_is_listed_with_its_column,
        get::a_watch_shows_each_change_as_it_comes,
        get::custom_objects_have_the_columns_of_their_definition,
        get::what_is_not_there_is_said_as_kubernetes_says_it,
        get::a_long_list_comes_in_chunks,
        describe::a_pod_is_described_with_its_containers_and_events,
        describe::a_deployment_is_described_with_its_sets_and_events,
        describe::the_node_is_described_with_its_pods,
        describe::a_claim_is_described_with_who_uses_it,
        describe::a_snapshot_is_shown_with_what_it_is_of,
        describe::a_service_is_described_with_its_endpoints,
        describe::namespaces_and_small_objects_are_described,
        delete::a_finalizer_holds_an_object_until_it_is_taken_off,
        delete::background_deletion_takes_the_dependents_afterwards,
        delete::foreground_deletion_waits_for_the_dependents,
        delete::orphaned_dependents_stay,
        delete::the_grace_period_is_the_one_that_was_given,
        delete::objects_are_deleted_by_label_by_file_and_all,
        wait::a_condition_is_waited_for,
        wait::a_deletion_is_waited_for,
        wait::a_field_is_waited_for,
        wait::a_wait_in_vain_ends_at_its_timeout,
        label::labels_are_set_overwritten_and_removed,
        label::annotations_are_set_overwritten_and_removed,
        scale::a_deployment_is_scaled,
        scale::a_custom_object_is_scaled,
        rollout::an_image_is_set_rolled_out_and_undone,
        rollout::a_paused_rollout_goes_on_when_resumed,
        rollout::a_restart_replaces_every_pod,
        rollout::a_rollout_that_cannot_go_on_fails,
        logs::a_log_is_followed_to_its_end,
        logs::a_container_is_chosen,
        logs::the_log_before_the_restart_is_kept,
        exec::the_exit_code_is_kubectls_own,
        exec::stdin_is_passed_on,
        exec::a_terminal_is_a_terminal_on_both_sides,
        exec::what_cannot_be_executed_is_said,
        cp::files_are_copied_both_ways,
        events::events_tell_what_happened,
        auth::can_i_answers_for_oneself_and_for_others,
        auth::acting_as_another_has_his_rights,
        dry_run::a_dry_run_on_the_server_changes_nothing,
        dry_run::a_diff_shows_what_an_apply_would_change,
        dry_run::an_unknown_field_is_refused,
    ];
    run::main(Path::new(env!("CARGO_BIN_EXE_lantern")), &Scenarios::suite("kubectl", [all]))
}
