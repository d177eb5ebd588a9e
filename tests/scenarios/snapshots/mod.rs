//! Execution hooks and application-consistent snapshots, with both executors.

mod consistency;
mod copies;
mod cut_off;
mod cutting;
mod door;
pub(crate) mod faults;
mod freezing;
mod hooks;
mod leaders;
mod marked_faults;
mod outages;
mod sharing;
mod targets;
mod thawing;
pub(crate) mod two_pods;

use boathook_api::pod_notification::Executor;
use boathook_tests::{alone, shared, suite::Scenarios};

use door::{admitted, refused, withdrawn};

pub(crate) fn suite() -> Scenarios {
    // They take longest, so they are begun first; and what is restored is the same with every executor.
    let only_api = shared![
        copies::snapshots_under_load_are_whole_with_hooks,
        copies::a_snapshot_under_load_is_torn_without_hooks,
    ];
    let both = shared![
        consistency::a_snapshot_holds_what_was_frozen_and_says_so,
        consistency::a_container_restarted_while_frozen_is_thawed_and_not_consistent,
        consistency::a_pod_deleted_while_frozen_is_not_waited_for,
        consistency::a_pod_that_mounts_the_claim_while_frozen_spoils_it,
        consistency::a_running_pod_without_hook_needs_a_voucher,
        consistency::only_boathook_writes_a_verdict,
        consistency::a_hook_that_expires_before_the_cut_fails_the_snapshot waits 20,
        consistency::a_claim_that_nobody_uses_needs_no_hooks,
        consistency::a_claim_that_comes_into_use_before_the_cut_is_not_consistent,
        consistency::a_claim_that_is_attached_to_a_node_is_in_use,
        consistency::a_claim_that_is_attached_before_the_cut_is_not_consistent,
        consistency::a_session_held_until_the_thaw_makes_it_consistent,
        consistency::a_session_lost_before_the_cut_fails_the_snapshot,
        consistency::without_hooks_a_snapshot_of_what_is_used_is_crash_consistent,
        cutting::a_cut_that_fails_thaws_and_leaves_nothing,
        cutting::a_cut_that_comes_after_its_time_is_never_called_consistent waits 15,
        cutting::the_thaw_does_not_wait_until_it_is_ready,
        admitted::a_marked_snapshot_is_held_until_it_is_frozen,
        admitted::what_was_done_for_a_marked_snapshot_goes_with_it,
        admitted::two_marked_snapshots_at_once_share_one_freeze,
        admitted::what_will_not_be_stored_freezes_nothing,
        admitted::a_mark_that_is_added_later_does_nothing,
        refused::why_it_could_not_be_frozen_is_what_the_person_is_told waits 7,
        refused::what_cannot_be_done_is_refused_before_anything_is_frozen,
        refused::who_may_not_create_hooks_marks_no_snapshot,
        withdrawn::a_client_that_goes_away_has_everything_thawed,
        withdrawn::a_snapshot_that_never_appears_is_thawed_when_its_time_is_over waits 60,
        withdrawn::a_marked_snapshot_that_is_cut_too_late_is_marked_a_crash waits 60,
        withdrawn::a_marked_snapshot_whose_cut_fails_is_marked_a_crash,
        withdrawn::a_marked_snapshot_deleted_before_its_cut_thaws,
        cutting::a_snapshot_deleted_before_the_cut_thaws_and_leaves_nothing,
        cutting::a_snapshot_deleted_after_the_cut_thaws_and_keeps_what_was_cut,
        cutting::of_several_claims_all_are_cut_or_none,
        freezing::hooks_freeze_in_order_and_thaw_in_reverse,
        freezing::a_hook_that_does_not_freeze_fails_the_snapshot_and_nothing_is_cut,
        freezing::a_freeze_that_takes_too_long_is_taken_back waits 8,
        freezing::what_may_be_crash_consistent_is_cut_all_the_same_and_says_so,
        freezing::two_snapshots_of_one_claim_come_one_after_the_other,
        freezing::several_claims_are_frozen_together_and_cut_at_once,
        hooks::a_hook_freezes_what_it_selects_and_thaws_when_it_is_deleted,
        hooks::a_pre_action_that_hangs_is_given_up_and_taken_back waits 5,
        hooks::a_pre_action_that_freezes_after_its_time_is_taken_back waits 40,
        hooks::a_hook_deleted_while_its_pre_action_runs_is_thawed,
        hooks::a_hook_that_nobody_thaws_is_thawed_when_its_time_is_over waits 15,
        sharing::everything_stays_frozen_until_those_that_share_the_freeze_are_cut,
        sharing::when_the_first_one_is_deleted_everything_is_thawed_and_nobody_is_called_consistent,
        thawing::a_hanging_inner_thaw_does_not_delay_an_expired_outer_one waits 20,
        thawing::what_is_frozen_in_a_namespace_that_is_deleted_is_thawed,
    ];
    let of_boathook_itself = shared![
        targets::without_its_template_a_hook_says_which_to_create,
        targets::without_a_target_a_hook_says_what_to_write,
        targets::execute_once_runs_on_the_oldest_pod_that_is_ready,
        targets::all_containers_are_meant_unless_one_is_named,
        targets::a_notifier_freezes_the_containers_that_declare_it,
        freezing::a_hook_that_somebody_else_made_first_fails_the_snapshot,
        freezing::what_cannot_be_cut_is_refused_before_anything_is_frozen,
        freezing::without_a_target_the_containers_that_mount_the_claim_are_meant,
        hooks::a_pre_action_that_fails_on_one_of_three_containers_is_taken_back_on_all waits 12,
        hooks::a_pre_action_is_tried_again_until_its_time_is_over waits 7,
        hooks::a_hook_that_is_asked_to_thaw_stays_to_be_read,
        hooks::a_hook_without_a_post_action_is_thawed_by_doing_nothing,
        hooks::a_hook_without_an_expiry_warns_and_stays_frozen,
        hooks::a_template_edited_midway_changes_nothing_under_way,
        thawing::a_post_action_that_fails_is_tried_until_it_succeeds waits 5,
        thawing::whoever_asks_for_the_thaw_again_gets_it_at_once waits 55,
        thawing::a_thaw_that_never_succeeds_can_be_given_up,
    ];
    let only_agent = shared![hooks::a_pre_action_asks_by_http_or_tcp];
    let both_alone = alone![outages::a_pre_action_whose_reply_is_lost_is_taken_back];
    // Where no executor is concerned, or the controller makes the fewer writes the more the agent does. The longest first.
    let only_api_alone = alone![
        cut_off::a_freeze_whose_answer_is_lost_is_taken_back waits 6,
        refused::with_boathook_down_plain_snapshots_are_taken_and_marked_ones_refused,
    ];
    let only_api_embedded = alone![
        faults::killed_before_any_answer_every_promise_is_kept waits 14,
        faults::killed_before_any_write_arrives_every_promise_is_kept waits 14,
        marked_faults::killed_at_any_write_of_a_marked_snapshot_every_promise_is_kept,
    ];
    // Controllers that come and go: with the agent they do no more than without it.
    let of_controllers = alone![
        leaders::a_leader_stopped_while_frozen_comes_back_and_freezes_nothing waits 17,
        outages::a_snapshot_that_outlives_its_controller_is_consistent_only_without_an_expiry,
        outages::a_snapshot_deleted_while_the_controller_is_down_is_thawed,
    ];
    let both_embedded = alone![leaders::a_leader_stopped_between_two_hooks_comes_back_and_freezes_nothing waits 17];
    let only_agent_alone = alone![cut_off::silent_agent_is_reported waits 13];
    let only_agent_on_time = alone![cut_off::what_is_frozen_when_the_api_server_goes_is_thawed_on_time waits 33];
    let (api, agent) = (Executor::Api, Executor::Agent);
    Scenarios::suite(
        "snapshots",
        [
            only_api.with(api),
            both,
            of_boathook_itself.of_boathook_itself(),
            only_agent.with(agent),
            both_alone,
            only_api_alone.with(api),
            only_api_embedded.with(api).of_boathook_itself(),
            of_controllers,
            both_embedded.of_boathook_itself(),
            only_agent_alone.with(agent),
            only_agent_on_time.with(agent).on_time(),
        ],
    )
}
