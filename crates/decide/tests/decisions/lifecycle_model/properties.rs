//! Whatever happens in whatever order, the promises hold; and when it stops, the rollout comes to its end.

use boathook_api::deployment_lifecycle::{FailurePolicy, RolloutPhase, Stage};
use boathook_decide::deployment_lifecycle::Strategy as Rolls;
use proptest::prelude::*;

use super::{
    Plan, World,
    people::Person,
    step::{Step, steps},
};

fn plan() -> impl Strategy<Value = Plan> {
    let policy = || prop_oneof![Just(FailurePolicy::Retry), Just(FailurePolicy::Abort), Just(FailurePolicy::Ignore)];
    let some = move || prop::option::weighted(0.8, policy());
    let sizes = (1..5_i32, 0..3_i32, 0..3_i32, 0..4_usize);
    let times = (0..4_i64, prop_oneof![Just(0_i64), Just(2), Just(15)]);
    (any::<bool>(), sizes, some(), some(), some(), any::<bool>(), times, prop::bool::weighted(0.2)).prop_map(
        |(recreate, sizes, pre, mid, post, required, (starting, ending), sidecar)| {
            let (replicas, surge, unavailable, history_limit) = sizes;
            let strategy = if recreate { Rolls::Recreate } else { Rolls::RollingUpdate };
            // One of them is never nothing.
            let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
            let post = post.filter(|policy| recreate || *policy != FailurePolicy::Abort);
            let mid = mid.filter(|_| recreate);
            Plan {
                strategy,
                replicas,
                surge,
                unavailable,
                history_limit,
                pre,
                mid,
                post,
                required,
                starting,
                ending,
                sidecar,
            }
        },
    )
}

pub(crate) fn play(plan: Plan, steps: Vec<Step>) {
    let mut world = World::new(plan);
    for step in steps {
        world.step(step);
    }
    world.settle();
    world.check_settled();
    world.step(Step::Person(Person::Pause(false)));
    world.settle();
    world.check_settled();
    world.step(Step::Person(Person::DeletesLifecycle));
    world.settle();
    world.check_let_go();
}

proptest! {
    #![proptest_config(crate::config(2_000))]

    #[test]
    fn whatever_goes_wrong_hooks_run_at_their_stage_and_the_rollout_comes_to_its_end(plan in plan(), steps in steps()) {
        play(plan, steps);
    }
}

#[test]
fn when_nothing_goes_wrong_every_hook_runs_once_in_order_and_not_on_scaling() {
    for strategy in [Rolls::RollingUpdate, Rolls::Recreate] {
        for required in [false, true] {
            let retry = Some(FailurePolicy::Retry);
            let mid = retry.filter(|_| strategy == Rolls::Recreate);
            let mut world = World::new(Plan {
                strategy,
                replicas: 3,
                surge: 1,
                unavailable: 0,
                history_limit: 10,
                pre: retry,
                mid,
                post: retry,
                required,
                starting: 1,
                ending: 2,
                sidecar: false,
            });
            let stages: Vec<_> = Stage::ALL.into_iter().filter(|stage| *stage != Stage::Mid || mid.is_some()).collect();
            let mut expected = if required { stages.clone() } else { vec![] };
            let ran = |world: &World| world.runs.iter().map(|run| run.stage).collect::<Vec<_>>();
            world.settle();
            assert_eq!(ran(&world), expected);
            for template in ['b', 'c', 'a'] {
                world.step(Step::Person(Person::Template(template)));
                world.settle();
                world.check_settled();
                expected.extend(&stages);
                assert_eq!(ran(&world), expected);
                for replicas in [5, 1, 0, 3] {
                    world.step(Step::Person(Person::Scale(replicas)));
                    world.settle();
                    world.check_settled();
                    assert_eq!(ran(&world), expected, "on scaling to {replicas}");
                }
            }
            let phase = world.rollout().map(|rollout| rollout.phase);
            assert_eq!(phase, Some(RolloutPhase::Complete));
        }
    }
}
