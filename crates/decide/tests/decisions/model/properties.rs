//! Whatever happens in whatever order, the promises hold; and when it stops, everything is as it should be.

use boathook_api::pod_notification::Executor;
use proptest::prelude::*;

use super::{
    Follows, Plan, World,
    step::{Step, steps},
};

fn plan() -> impl Strategy<Value = Plan> {
    let executor = prop_oneof![Just(Executor::Api), Just(Executor::Agent)];
    let undo = prop_oneof![
        1 => Just(None),
        2 => Just(Some(None)),
        4 => (1..9).prop_map(|after| Some(Some(after))),
    ];
    let declaring = prop_oneof![1 => Just(0_usize), 6 => 1..=2_usize];
    let ttl = prop_oneof![3 => Just(None), 1 => (0..9).prop_map(Some)];
    let node_dies = prop_oneof![6 => Just(false), 1 => Just(true)];
    let holds = prop_oneof![2 => Just(None), 1 => Just(Some(Follows::Nothing)), 1 => Just(Some(Follows::Thaw))];
    let plan = (executor, declaring, undo, holds, ttl, node_dies);
    plan.prop_map(|(executor, declaring, undo, holds, ttl, node_dies)| Plan {
        executor,
        declaring,
        undo,
        // Only what is undone somewhere can be held there.
        holds: holds.filter(|_| undo.is_some() && declaring > 0),
        ttl,
        node_dies,
    })
}

pub(crate) fn play(plan: Plan, steps: Vec<Step>) {
    let mut world = World::new(plan);
    for step in steps {
        world.step(step);
    }
    world.settle();
    world.check_settled();
    world.step(Step::Delete);
    world.settle();
    world.check_gone();
}

proptest! {
    #![proptest_config(crate::config(2_000))]

    #[test]
    fn whatever_goes_wrong_what_was_done_is_taken_back(plan in plan(), steps in steps()) {
        play(plan, steps);
    }
}
