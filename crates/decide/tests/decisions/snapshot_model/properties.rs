//! Whatever happens in whatever order, the promises hold; and when it stops, everything is as it should be.

use boathook_api::{application_snapshot::Consistency, pod_notification::Executor};
use proptest::prelude::*;

use super::{
    Plan, Wish, World,
    objects::{Kind, Object},
    people::Person,
    step::{Step, steps},
};

fn plan() -> impl Strategy<Value = Plan> {
    let wish = prop_oneof![
        1 => Just(Wish::Hook),
        3 => Just(Wish::Snapshot),
        1 => Just(Wish::Snapshots),
        1 => Just(Wish::DoorTwo),
    ];
    let executor = prop_oneof![Just(Executor::Api), Just(Executor::Agent)];
    let expiration = prop_oneof![1 => Just(None), 2 => (2..12).prop_map(Some)];
    let post_action = prop_oneof![8 => Just(true), 1 => Just(false)];
    let hooks = prop::collection::vec((expiration, post_action), 1..=2);
    let pods = prop_oneof![1 => Just(0_usize), 3 => Just(1), 3 => Just(2)];
    let crash_consistent = prop_oneof![3 => Just(false), 1 => Just(true)];
    let skew = || prop_oneof![1 => Just(0_i64), 1 => -9..9_i64];
    (wish, executor, hooks, pods, crash_consistent, [skew(), skew()], any::<bool>()).prop_map(
        |(wish, executor, hooks, pods, crash_consistent, skews, last_first)| Plan {
            wish,
            executor,
            hooks,
            pods,
            crash_consistent,
            skews,
            last_first,
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
    for kind in [Kind::Snapshot, Kind::Snapshot, Kind::Hook, Kind::Hook] {
        world.step(Step::Person(Person::Deletes(kind, 0)));
        world.settle();
    }
    world.settle();
    world.check_gone();
}

proptest! {
    #![proptest_config(crate::config(1_000))]

    #[test]
    fn whatever_goes_wrong_what_was_frozen_is_thawed_and_nothing_is_called_better_than_it_is(
        plan in plan(),
        steps in steps(),
    ) {
        play(plan, steps);
    }
}

#[test]
fn when_nothing_goes_wrong_it_is_application_consistent() {
    for wish in [Wish::Snapshot, Wish::Snapshots, Wish::DoorTwo] {
        for (executor, pods) in [(Executor::Api, 2), (Executor::Agent, 2), (Executor::Api, 0)] {
            let hooks = vec![(Some(30), true), (None, true)];
            let mut world = World::new(Plan {
                wish,
                executor,
                hooks,
                pods,
                crash_consistent: false,
                skews: [3, -3],
                last_first: false,
            });
            world.settle();
            world.check_settled();
            for object in world.server.now().values() {
                if let Object::Snapshot(snapshot) = &**object {
                    let consistency = snapshot.status.as_ref().and_then(|status| status.consistency);
                    assert_eq!(consistency, Some(Consistency::Application), "{wish:?} {executor:?} {snapshot:#?}");
                }
            }
        }
    }
}
