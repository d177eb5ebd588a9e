//! What Boathook expects of Kubernetes, without Boathook's processes: the real cluster is the oracle, and the embedded one
//! must behave alike.

mod access;
mod accounts;
mod actions;
mod admission;
mod cri;
mod deployments;
mod endings;
mod exec;
mod gate;
mod hook_rules;
mod images;
mod kube_runtime;
mod logbook;
mod malformed;
mod notification_rules;
mod pods;
mod services;
mod signals;
mod snapshots;
mod written;

use boathook_tests::{plain, suite::Scenarios};

pub(crate) fn suite() -> Scenarios {
    let once = plain![
        access::a_user_without_rights_is_refused_until_a_role_allows_it,
        accounts::a_pod_finds_a_token_by_which_the_api_server_knows_it,
        accounts::a_pod_is_told_where_the_api_server_is,
        accounts::a_pod_of_an_account_that_is_not_there_is_forbidden,
        actions::a_handler_ends_as_its_command_does,
        actions::of_twenty_megabytes_the_end_is_told,
        actions::what_fails_is_tried_again_while_there_is_time waits 13,
        actions::a_pod_made_again_under_the_same_name_is_left_alone,
        actions::a_container_that_ends_meanwhile_ends_its_handler,
        actions::a_probe_decides_whether_a_handler_has_done_its_work waits 20,
        actions::a_pod_is_asked_by_http_and_tcp_at_a_port_by_its_name,
        admission::a_mutating_webhook_on_the_host_changes_what_it_selects,
        admission::a_validating_webhook_on_the_host_denies_in_its_own_words,
        cri::a_container_and_its_process_are_found_by_the_pods_uid,
        cri::a_command_has_its_outputs_its_exit_code_and_its_time,
        cri::an_exec_is_offered_where_only_the_node_reaches_it,
        cri::an_unknown_container_is_not_found,
        deployments::a_rolling_update_keeps_enough_pods_available,
        deployments::a_recreated_deployment_never_runs_two_templates_at_once,
        deployments::an_undone_rollout_uses_its_old_replica_set_again,
        endings::nothing_is_left_of_a_handler_that_was_ended_on_its_node waits 13,
        endings::through_the_api_server_an_endless_handler_is_left_on_time_and_told_of waits 12,
        endings::a_cancelled_handler_has_an_unknown_outcome,
        endings::what_a_successful_handler_leaves_behind_stays,
        endings::a_handler_in_an_image_without_a_shell_ends_too,
        exec::a_stream_cut_in_the_middle_has_no_status,
        gate::the_gates_conditions_hold_what_its_rule_holds,
        hook_rules::a_template_says_what_to_run_and_where_it_belongs,
        hook_rules::a_hook_has_a_template_or_actions_of_its_own,
        hook_rules::a_hook_changes_only_by_being_asked_to_thaw,
        hook_rules::what_is_recorded_of_a_hook_is_as_right_as_what_was_written,
        hook_rules::a_snapshot_is_of_one_claim_or_of_those_selected_and_never_changes,
        hook_rules::a_lifecycle_has_a_hook_at_some_stage,
        images::an_image_without_a_shell_runs_and_is_executed_in,
        kube_runtime::a_watcher_goes_on_where_its_connection_was_cut,
        logbook::a_copy_under_load_is_torn_and_one_of_a_frozen_book_is_whole,
        malformed::malformed_requests_are_refused_in_kubernetes_words,
        malformed::objects_too_large_or_too_deep_are_refused,
        malformed::who_cannot_be_known_is_refused,
        malformed::half_a_request_is_in_nobodys_way,
        malformed::broken_frames_end_an_exec_and_nothing_else,
        notification_rules::the_kinds_are_installed_by_many_at_once_and_again,
        notification_rules::a_pod_notification_does_exactly_one_thing_and_so_does_its_undo,
        notification_rules::a_pod_notification_changes_only_in_what_may_change,
        notification_rules::a_notification_never_changes,
        pods::a_container_that_keeps_failing_backs_off_and_tells_why,
        pods::a_command_that_failed_is_run_again_until_it_succeeds,
        pods::a_pod_that_takes_too_long_has_failed,
        pods::init_containers_run_one_after_the_other_before_the_rest,
        pods::a_failed_init_container_fails_a_pod_that_never_restarts,
        pods::a_container_that_is_not_alive_is_restarted,
        pods::a_hook_runs_before_the_signal_and_the_grace_is_not_used_up,
        pods::who_does_not_end_is_killed_after_the_grace,
        pods::variables_come_from_maps_secrets_fields_and_each_other,
        pods::a_container_runs_as_the_user_it_names_and_else_the_pods,
        pods::a_sub_path_is_a_part_of_its_volume,
        services::a_service_reaches_its_pod,
        signals::a_process_in_an_image_without_a_shell_is_told_to_reload,
        signals::a_signal_that_nobody_handles_is_not_sent,
        snapshots::a_claim_is_snapshotted_and_restored_byte_for_byte,
    ];
    let also_in_process = plain![
        exec::an_exit_code_comes_back_as_it_was,
        exec::a_missing_program_is_a_failure_and_not_an_exit_code,
        exec::stdin_reaches_the_command_and_its_end_does_too,
        exec::twenty_megabytes_of_output_arrive_whole,
        kube_runtime::a_controller_follows_its_objects_and_those_they_own,
        kube_runtime::a_finalizer_holds_its_object_until_it_has_cleaned_up,
        kube_runtime::a_watcher_lists_first_and_goes_on_through_watches_that_end,
        kube_runtime::an_applied_field_has_one_owner_until_another_insists,
    ];
    Scenarios::suite("kubernetes", [once, also_in_process.also_in_process()])
}
