//! Execution hooks and application-consistent snapshots on the cluster that the environment chooses, with both executors.
//! See `boathook_tests::boathook`.

mod consistency;
mod cutting;
mod door;
mod hooks;
mod thawing;

use std::{path::Path, process::ExitCode};

use boathook_api::pod_notification::Executor;
use boathook_tests::{
    alone,
    boathook::phases::{self, Scenarios},
    common,
};

use door::{admitted, refused, withdrawn};

fn main() -> ExitCode {
    let both = common![
        consistency::a_snapshot_holds_what_was_frozen_and_says_so,
        cutting::a_cut_that_fails_thaws_and_leaves_nothing,
        cutting::a_cut_that_comes_after_its_time_is_never_called_consistent,
        admitted::a_marked_snapshot_is_held_until_it_is_frozen,
        admitted::what_was_done_for_a_marked_snapshot_goes_with_it,
        admitted::two_marked_snapshots_at_once_are_both_frozen,
        admitted::what_will_not_be_stored_freezes_nothing,
        admitted::a_mark_that_is_added_later_does_nothing,
        refused::why_it_could_not_be_frozen_is_what_the_person_is_told,
        refused::what_cannot_be_done_is_refused_before_anything_is_frozen,
        refused::who_may_not_create_hooks_marks_no_snapshot,
        withdrawn::a_client_that_goes_away_has_everything_thawed,
        withdrawn::a_snapshot_that_never_appears_is_thawed_when_its_time_is_over,
        hooks::a_hook_freezes_what_it_selects_and_thaws_when_it_is_deleted,
        hooks::a_pre_action_that_fails_on_one_of_three_containers_is_taken_back_on_all,
        hooks::a_pre_action_that_hangs_is_given_up_and_taken_back,
        hooks::a_pre_action_is_tried_again_until_its_time_is_over,
        hooks::without_its_template_a_hook_says_which_to_create,
        hooks::without_a_target_a_hook_says_what_to_write,
        thawing::a_post_action_that_fails_is_tried_until_it_succeeds,
    ];
    let only_api_alone = alone![refused::with_boathook_down_plain_snapshots_are_taken_and_marked_ones_refused];
    let suite = [
        Scenarios { executor: Executor::Api, common: both.clone(), alone: only_api_alone },
        Scenarios { executor: Executor::Agent, common: both, alone: vec![] },
    ];
    phases::main(Path::new(env!("CARGO_BIN_EXE_lantern")), &suite)
}
