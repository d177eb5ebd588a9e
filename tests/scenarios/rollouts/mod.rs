//! Hooks at the stages of Deployments' rollouts. Nothing of it depends on the executor of notifications, so the controller
//! runs with the one that it has by default.

mod access;
mod admission;
pub(crate) mod faults;
mod hook_pods;
mod killed_at_writes;
mod kubectl;
mod outages;
mod pausing;
mod policies;
mod removal;
mod scaling;
mod stages;
mod superseding;
mod tries;
mod undo;
mod use_cases;
pub(crate) mod walk;

use boathook_api::pod_notification::Executor;
use boathook_tests::{alone, cluster::Choice, shared, suite::Scenarios};

pub(crate) fn suite() -> Scenarios {
    let scenarios = shared![
        stages::hooks_run_at_their_stages_of_a_rolling_update,
        stages::hooks_run_at_their_stages_under_recreate,
        stages::a_first_rollout_that_requires_a_lifecycle_is_held_until_there_is_one,
        stages::a_rollout_under_way_when_it_is_adopted_goes_on_without_hooks,
        stages::every_bound_of_a_rolling_update_is_kept,
        stages::a_manifest_that_is_applied_again_at_every_stage_changes_nothing,
        use_cases::a_migration_runs_when_old_pods_that_take_15_seconds_to_end_have_ended waits 16,
        use_cases::a_migration_runs_while_no_pod_of_either_version_does,
        use_cases::a_test_suite_vetoes_a_bad_version_while_the_old_one_answers,
        use_cases::post_calls_an_api_once_for_each_rollout_and_not_when_it_is_scaled,
        tries::after_an_abort_a_fixed_template_rolls_out,
        tries::after_an_abort_in_mid_a_fixed_template_rolls_out,
        tries::a_hook_whose_image_is_missing_says_so_until_its_time_is_over waits 20,
        tries::a_hook_that_hangs_says_what_it_wrote_when_its_time_is_over waits 20,
        hook_pods::a_hook_has_what_its_container_has_and_more,
        hook_pods::a_hook_whose_pod_is_deleted_runs_again,
        hook_pods::a_hook_whose_pod_is_evicted_runs_again,
        hook_pods::a_hook_whose_pod_its_node_evicts_runs_again waits 12,
        admission::a_sidecar_that_never_ends_keeps_no_rollout_waiting,
        admission::a_hook_that_fails_beside_a_sidecar_says_why,
        admission::a_hook_whose_pod_is_refused_says_why_and_goes_on_when_it_is_not,
        admission::a_hook_whose_pod_is_refused_until_its_time_is_over_aborts waits 20,
        access::who_may_not_create_pods_writes_no_lifecycle,
        access::only_boathook_writes_the_record_of_a_rollout,
    ];
    let variants = shared![
        superseding::a_new_template_during_pre_begins_with_its_own_pre,
        superseding::a_new_template_during_mid_begins_with_its_own_pre,
        superseding::a_new_template_while_pods_are_replaced_begins_with_its_own_pre,
        superseding::a_new_template_during_post_begins_with_its_own_pre,
        superseding::going_back_during_pre_cancels_and_runs_no_hooks,
        superseding::going_back_while_pods_are_replaced_runs_hooks,
        superseding::going_back_to_a_version_whose_post_was_ended_runs_its_post,
        undo::an_undo_during_pre_cancels,
        undo::an_undo_during_pre_of_a_recreate_goes_by_the_versions_that_served,
        undo::an_undo_during_mid_is_a_rollout_of_its_own,
        undo::an_undo_while_pods_are_replaced_is_a_rollout_of_its_own,
        undo::an_undo_during_post_is_a_rollout_of_its_own,
        undo::an_undo_after_an_abort_cancels,
        undo::an_undo_after_an_abort_in_mid_is_a_rollout_of_its_own,
        undo::an_undo_after_an_abort_in_post_is_a_rollout_of_its_own,
        undo::an_undo_to_a_revision_from_before_the_adoption_is_held_too,
        undo::with_one_revision_kept_rollouts_and_an_undo_are_held,
        pausing::what_is_paused_begins_nothing,
        pausing::what_is_paused_during_pre_is_held_until_the_resume,
        pausing::what_is_paused_during_mid_is_held_until_the_resume,
        pausing::what_is_paused_while_pods_are_replaced_goes_on_after_the_resume_with_each_hook_once,
        pausing::what_is_paused_while_pods_are_replaced_or_during_post_goes_on_as_far_as_it_has_begun,
        scaling::scaling_during_pre_is_for_the_old_version,
        scaling::scaling_during_mid_starts_nothing,
        scaling::scaling_while_pods_are_replaced_goes_on,
        scaling::scaling_to_zero_while_pods_are_replaced_completes,
        scaling::scaling_during_post_runs_it_once,
        scaling::what_is_scaled_to_zero_rolls_out_with_hooks,
        scaling::a_replica_set_scaled_by_hand_stays_held,
        scaling::a_replica_set_scaled_by_hand_moves_only_where_its_rollout_is,
        scaling::a_replica_set_whose_deployment_is_gone_is_scaled_by_hand,
        removal::a_lifecycle_deleted_during_pre_lets_go_and_made_again_holds,
        removal::a_lifecycle_deleted_during_mid_lets_go_and_made_again_holds,
        removal::a_lifecycle_deleted_during_post_lets_go_and_made_again_holds,
        removal::a_lifecycle_deleted_while_pods_are_replaced_lets_go_and_made_again_holds,
        removal::a_deployment_deleted_during_mid_or_post_takes_its_hook_with_it,
        removal::a_deployment_deleted_while_pods_are_replaced_runs_no_more_hooks,
        removal::a_deployment_deleted_midway_takes_its_hooks_with_it,
        removal::a_dropped_annotation_is_put_back,
    ];
    let of_boathook_itself = shared![
        stages::what_is_adopted_runs_no_hooks_until_its_next_template,
        stages::hooks_that_are_edited_during_a_rollout_count_from_the_next_one,
        policies::every_policy_at_every_stage_of_a_rolling_update waits 60,
        policies::every_policy_at_every_stage_under_recreate waits 60,
        tries::a_hook_is_retried_until_it_succeeds waits 10,
        tries::a_hook_of_a_container_that_is_not_there_fails_at_once,
        tries::a_mid_of_a_container_that_is_not_there_fails_while_the_old_version_serves,
        tries::a_person_has_a_failed_stage_retried,
        tries::a_person_has_a_failed_stage_skipped,
        removal::what_requires_a_lifecycle_that_never_comes_can_take_that_back,
    ];
    // The real kubectl does not come with the embedded cluster.
    let with_kubectl = match Choice::of_the_environment() {
        Ok(Choice::Kubeconfig) => {
            shared![kubectl::kubectl_rollout_status_fails_when_a_hook_aborts_and_not_after]
        }
        _ => Scenarios::default(),
    };
    let alone = alone![
        faults::killed_in_each_stage_of_a_recreate_each_hook_runs_once,
        faults::killed_in_each_stage_of_a_rolling_update_each_hook_runs_once,
        faults::killed_while_a_hook_is_tried_again_it_runs_as_often_as_it_fails waits 10,
        outages::with_boathook_down_rollouts_hold_and_then_complete_by_themselves waits 5,
        outages::with_the_webhooks_made_anew_rollouts_go_on_with_their_hooks,
        outages::a_leader_stopped_during_pre_comes_back_and_runs_no_second_hook waits 33,
    ];
    let alone_embedded = alone![killed_at_writes::killed_at_any_write_each_hook_runs_once waits 14];
    // Four users who write without a pause leave little of the machine to others.
    let on_time = alone![walk::whatever_users_do_at_random_every_promise_is_kept waits 15];
    let lists = [
        scenarios,
        variants.variants(),
        of_boathook_itself.of_boathook_itself(),
        with_kubectl,
        alone,
        alone_embedded.of_boathook_itself(),
        on_time.on_time(),
    ];
    Scenarios::suite("rollouts", lists.map(|list| list.with(Executor::Api)))
}
