//! Stories that a random run has found once, and what was wrong.

use boathook_api::deployment_lifecycle::FailurePolicy;
use boathook_decide::deployment_lifecycle::Strategy;

use super::{Plan, objects::Hook, people::Person, properties::play, step::Step};
use crate::world::{
    process::{Luck, Who},
    request::Fate,
};

fn plan(strategy: Strategy) -> Plan {
    Plan {
        strategy,
        replicas: 1,
        surge: 0,
        unavailable: 1,
        history_limit: 0,
        pre: Some(FailurePolicy::Retry),
        mid: Some(FailurePolicy::Retry).filter(|_| strategy == Strategy::Recreate),
        post: None,
        required: false,
        starting: 0,
        ending: 2,
        sidecar: false,
    }
}

/// It was let go while its hook still ended, so that pods came beside it.
#[test]
fn whoever_deletes_a_lifecycle_while_mid_runs_gets_no_pods_before_mid_has_ended() {
    let steps = [
        Step::Pass(1),
        Step::Person(Person::Template('b')),
        Step::Pass(50),
        Step::Usually(Hook::Hangs),
        Step::Pass(20),
        Step::Person(Person::DeletesLifecycle),
    ];
    play(plan(Strategy::Recreate), steps.into());
}

/// The old ReplicaSet was marked as done, and so could not shrink; under Recreate the new one was never made, and adopting
/// waited for it.
#[test]
fn a_template_that_comes_while_a_deployment_is_adopted_is_rolled_out() {
    for strategy in [Strategy::RollingUpdate, Strategy::Recreate] {
        let act = Step::Act(Who::First, Fate::Answered);
        let steps = [Step::Look(Who::First), Step::Person(Person::Template('b')), act, act];
        play(plan(strategy), steps.into());
    }
}

/// The Deployment controller made a ReplicaSet just then, annotated as the Deployment had been, and it was held for ever.
#[test]
fn a_replica_set_that_is_made_while_a_lifecycle_goes_is_let_go_too() {
    for replicas in [0, 2] {
        let steps = [
            Step::Pass(1),
            Step::Person(Person::Template('b')),
            Step::Person(Person::Scale(replicas)),
            Step::Person(Person::DeletesLifecycle),
        ];
        play(Plan { replicas: 3, pre: None, ..plan(Strategy::RollingUpdate) }, steps.into());
    }
}

/// Its pod was deleted because of the sidecar, before it was recorded that it had succeeded: so it ran again.
#[test]
fn a_hook_with_a_sidecar_that_has_succeeded_does_not_run_again_after_a_crash() {
    for luck in [Luck::Fate(Fate::AnswerLost), Luck::Fate(Fate::NeverArrives), Luck::Crash] {
        let steps = [
            Step::Pass(1),
            Step::Person(Person::Template('b')),
            Step::Pass(1),
            Step::Luck(Who::First, luck),
            Step::Pass(29),
        ];
        play(Plan { sidecar: true, ending: 0, ..plan(Strategy::RollingUpdate) }, steps.into());
    }
}

/// While it was paused its ReplicaSet was cleaned up; its pre ran all the same, and once more for the next ReplicaSet.
#[test]
fn a_rollout_whose_replica_set_is_gone_has_its_hooks_once_when_the_next_one_is_there() {
    let steps = [
        Step::Pass(1),
        Step::Person(Person::Template('c')),
        Step::Usually(Hook::Fails),
        Step::Pass(1),
        Step::Person(Person::Template('a')),
        Step::Person(Person::Pause(true)),
        Step::Pass(1),
        Step::Person(Person::Template('c')),
    ];
    play(Plan { ending: 15, ..plan(Strategy::RollingUpdate) }, steps.into());
}

/// The gate was opened, and nobody wrote down that pre had passed: it was said to run for ever.
#[test]
fn a_stage_that_has_passed_is_recorded_though_who_opened_the_gate_was_stopped() {
    for (strategy, passes) in [(Strategy::RollingUpdate, 29), (Strategy::Recreate, 60)] {
        let steps = [
            Step::Pass(1),
            Step::Person(Person::Template('b')),
            Step::Pass(1),
            Step::Luck(Who::First, Luck::Fate(Fate::AnswerLost)),
            Step::Pass(passes),
        ];
        play(plan(strategy), steps.into());
    }
}

/// Two rollouts began in the same instant, and were taken for one.
#[test]
fn rollouts_that_begin_at_once_are_two() {
    let never = Step::Luck(Who::First, Luck::Fate(Fate::NeverArrives));
    let steps = [never, Step::Pass(1), Step::Person(Person::Template('b'))];
    play(Plan { pre: None, ..plan(Strategy::RollingUpdate) }, steps.into());
}

/// A write of the adoption arrived when the lifecycle was gone, and the Deployment stayed held for good.
#[test]
fn adoption_that_arrives_after_its_lifecycle_is_gone_holds_nothing() {
    let act = Step::Act(Who::First, Fate::Answered);
    let late = Step::Act(Who::First, Fate::Late);
    // The mark of the ReplicaSet is late; then the annotation of the Deployment.
    for answered in [1, 3] {
        let mut steps = vec![Step::Look(Who::First)];
        steps.extend([act].repeat(answered));
        steps.extend([late, Step::Person(Person::DeletesLifecycle), Step::Pass(1)]);
        play(plan(Strategy::RollingUpdate), steps);
    }
}

/// The same for marks whose lifecycle lost its finalizer.
#[test]
fn lifecycle_without_its_finalizer_holds_nothing() {
    for strategy in [Strategy::RollingUpdate, Strategy::Recreate] {
        let steps = [Step::Pass(1), Step::Person(Person::ForcesLifecycleAway), Step::Person(Person::Template('b'))];
        play(plan(strategy), steps.into());
    }
}
