//! Execution hooks and application-consistent snapshots on the cluster that the environment chooses, with both executors.
//! See `boathook_tests::boathook`.

mod consistency;
mod cutting;
mod faults;
mod hooks;
mod thawing;
mod two_pods;

use std::{path::Path, process::ExitCode};

use boathook_api::pod_notification::Executor;
use boathook_tests::{
    alone,
    boathook::phases::{self, Scenarios},
    common,
};

fn main() -> ExitCode {
    let both = common![
        consistency::a_snapshot_holds_what_was_frozen_and_says_so,
        cutting::a_cut_that_fails_thaws_and_leaves_nothing,
        cutting::a_cut_that_comes_after_its_time_is_never_called_consistent,
        hooks::a_hook_freezes_what_it_selects_and_thaws_when_it_is_deleted,
        hooks::a_pre_action_that_fails_on_one_of_three_containers_is_taken_back_on_all,
        hooks::a_pre_action_that_hangs_is_given_up_and_taken_back,
        hooks::a_pre_action_is_tried_again_until_its_time_is_over,
        hooks::without_its_template_a_hook_says_which_to_create,
        hooks::without_a_target_a_hook_says_what_to_write,
        thawing::a_post_action_that_fails_is_tried_until_it_succeeds,
    ];
    let both_alone = alone![faults::killed_before_any_answer_every_promise_is_kept];
    let only_api_alone = alone![faults::killed_before_any_write_arrives_every_promise_is_kept];
    let suite = [
        Scenarios {
            executor: Executor::Api,
            common: both.clone(),
            alone: [both_alone.clone(), only_api_alone].concat(),
        },
        Scenarios { executor: Executor::Agent, common: both, alone: both_alone },
    ];
    phases::main(Path::new(env!("CARGO_BIN_EXE_lantern")), &suite)
}
