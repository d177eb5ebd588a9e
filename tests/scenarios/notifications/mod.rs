//! Notifications, with both executors.

mod access;
mod authors;
mod declarations;
mod endings;
pub(crate) mod faults;
mod handlers;
mod held;
mod held_alone;
mod notification;
mod orphans;
mod outages;
mod undo;

use boathook_api::pod_notification::Executor;
use boathook_tests::{alone, shared, suite::Scenarios};

pub(crate) fn suite() -> Scenarios {
    let both = shared![
        access::who_may_patch_pods_and_not_exec_runs_what_is_declared_and_no_more,
        declarations::a_declaration_is_what_it_was_when_the_pod_was_created,
        endings::a_handler_that_hangs_is_ended_on_time,
        endings::a_handler_that_ignores_term_is_ended_on_time,
        endings::a_child_that_holds_stdout_does_not_hold_the_notification,
        endings::a_child_in_a_session_of_its_own_is_ended_too,
        endings::of_twenty_megabytes_of_output_the_end_is_kept,
        endings::a_pod_deleted_in_the_middle_ends_its_handler,
        endings::a_container_restarted_in_the_middle_ends_its_handler,
        endings::a_missing_program_is_a_failure_with_the_runtimes_words,
        endings::a_pod_created_again_under_the_same_name_is_another_one,
        handlers::a_log_level_is_changed_and_a_probe_checks_it waits 12,
        handlers::a_database_is_locked_flushed_and_frozen_for_a_snapshot,
        handlers::a_freeze_that_fails_in_the_middle_is_taken_back_step_by_step,
        held::a_session_is_held_from_its_ready_to_its_release,
        held::a_release_comes_before_the_action_of_the_undo,
        held::a_deletion_releases_a_session_and_then_the_object_goes,
        held::a_session_is_released_by_itself_when_its_time_has_come waits 10,
        held::a_command_that_ends_before_it_is_ready_has_failed,
        held::a_session_that_is_lost_is_told_and_undone_at_once,
        held::a_session_ends_with_its_container_and_is_undone_in_the_new_one,
        held::a_release_that_fails_is_told_and_then_the_session_is_over,
        notification::every_running_pod_is_told_and_those_that_come_later_too,
        undo::an_undo_runs_when_it_is_asked_for,
        undo::an_undo_runs_when_the_notification_is_deleted,
        undo::a_frozen_pod_that_is_deleted_is_thawed_before_its_end,
        undo::an_undo_runs_by_itself_when_its_time_has_come waits 10,
        undo::a_handler_that_outlives_its_expiry_is_undone_on_time waits 10,
        undo::an_undo_runs_in_a_terminating_namespace waits 10,
        undo::an_undo_runs_in_the_new_instance_of_a_restarted_container,
    ];
    let of_boathook_itself = shared![
        declarations::broken_template_is_refused_and_its_pods_are_not,
        declarations::each_mistake_is_told_with_its_container_entry_and_field,
        declarations::yaml_and_json_declare_alike,
        endings::a_pod_that_is_not_there_is_not_found,
        handlers::a_notifier_runs_where_it_is_declared_and_nowhere_else,
        handlers::a_sidecar_declares_like_any_container,
        handlers::a_notifier_that_nobody_declares_is_done_at_once,
        handlers::an_undo_that_nobody_declares_keeps_the_handler_from_running,
        held::a_command_that_was_not_ready_is_tried_again_while_there_is_time,
        held::a_command_that_is_never_ready_is_over_with_its_time waits 10,
        held::where_one_session_is_lost_the_others_are_released,
        held::a_release_that_hangs_does_not_hold_up_the_undo waits 11,
        held::a_command_that_is_not_ready_when_it_is_revoked_never_holds,
        notification::pods_that_come_later_are_not_told_when_only_earlier_ones_are_meant,
        notification::no_more_pods_are_told_at_once_than_allowed,
        notification::a_negative_parallelism_fails_at_once,
        notification::what_failed_and_what_succeeded_is_counted,
        notification::a_deleted_notification_tells_nobody_more_and_takes_its_parts_along,
        undo::an_undo_that_fails_is_tried_until_it_succeeds waits 8,
        undo::what_is_revoked_before_it_is_claimed_never_runs,
        undo::a_finished_notification_goes_when_its_time_is_over,
    ];
    let only_api = shared![
        authors::who_may_not_run_commands_writes_none_into_hooks_and_templates,
        handlers::a_signal_needs_the_agent,
    ];
    let only_agent = shared![
        handlers::a_process_without_a_shell_reloads_on_a_signal,
        handlers::a_signal_that_would_kill_or_be_lost_is_not_sent,
    ];
    let both_alone = alone![
        faults::whoever_is_killed_no_handler_runs_twice_and_all_is_undone,
        outages::what_is_asked_while_the_controller_is_down_is_undone,
        outages::what_expires_while_its_executor_is_down_is_undone_when_it_is_back waits 10,
        outages::a_handler_whose_executor_was_killed_is_unknown_and_undone,
        outages::a_process_that_is_told_to_stop_lets_its_handlers_end,
        held_alone::a_session_ends_with_its_executor_and_the_next_one_undoes_it,
        held_alone::a_process_that_is_told_to_stop_releases_what_it_holds,
    ];
    let both_embedded = alone![outages::with_the_gate_off_nothing_runs_but_what_is_owed_is_undone];
    let only_api_alone = alone![
        authors::with_boathook_down_no_command_is_written_and_every_thaw_can_be_asked_for,
        outages::a_leader_that_was_stopped_past_its_lease_runs_nothing_twice waits 16,
    ];
    let only_api_embedded = alone![
        held_alone::a_leader_that_was_stopped_past_its_lease_releases_what_it_holds waits 16,
    ];
    let only_agent_alone = alone![
        outages::an_agent_that_was_killed_undoes_without_an_api_server_too waits 13,
        outages::an_agent_that_was_away_never_runs_what_was_revoked,
        orphans::what_a_killed_agent_left_running_is_ended_before_it_is_undone,
        orphans::what_a_handler_left_running_on_purpose_outlives_the_agent,
        orphans::an_agent_that_is_told_to_stop_ends_what_does_not_end_by_itself waits 30,
        held_alone::what_a_killed_agent_held_is_ended_and_undone_without_an_api_server,
    ];
    let only_agent_on_time = alone![
        outages::an_agent_undoes_on_time_while_the_api_server_is_gone waits 17,
        held_alone::an_agent_releases_on_time_while_the_api_server_is_gone waits 17,
    ];
    let (api, agent) = (Executor::Api, Executor::Agent);
    Scenarios::suite(
        "notifications",
        [
            both,
            of_boathook_itself.of_boathook_itself(),
            only_api.with(api),
            only_agent.with(agent),
            both_alone,
            both_embedded.of_boathook_itself(),
            only_api_alone.with(api),
            only_api_embedded.with(api).of_boathook_itself(),
            only_agent_alone.with(agent),
            only_agent_on_time.with(agent).on_time(),
        ],
    )
}
