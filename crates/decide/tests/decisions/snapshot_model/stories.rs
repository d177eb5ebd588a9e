//! Stories that a random run has found once, and what was wrong.

use boathook_api::{
    application_snapshot::{Consistency, Phase},
    pod_notification::Executor,
};

use super::{
    Plan, Wish, World,
    objects::{Kind, Object},
    people::Person,
    properties::play,
    step::Step,
    storage::Mode,
};
use crate::world::run::End;

/// The model was: it counted a person's own request, and the answer to it, among the writes that an undo may take.
#[test]
fn whoever_cannot_wait_for_an_undo_that_fails_hears_how_the_next_round_went() {
    for wish in [Wish::Hook, Wish::Snapshot] {
        for executor in [Executor::Api, Executor::Agent] {
            let hooks = vec![(None, true)];
            let (crash_consistent, skews, last_first) = (false, [0, 0], false);
            let plan = Plan { wish, executor, hooks, pods: 1, crash_consistent, skews, last_first };
            let steps = [
                Step::Storage(Mode::Hangs),
                Step::Usually(End::Failed, false),
                Step::Pass(4),
                Step::Person(Person::CannotWait(0)),
                Step::Storage(Mode::Cuts),
                Step::Pass(5),
            ];
            play(plan, steps.into());
        }
    }
}

/// The model was: it let no verdict change, and this one is to.
#[test]
fn a_session_that_is_said_to_be_lost_while_it_is_thawed_takes_the_verdict_back() {
    for executor in [Executor::Api, Executor::Agent] {
        let (crash_consistent, skews, last_first) = (false, [0, 0], false);
        let plan = Plan {
            wish: Wish::Snapshot,
            executor,
            hooks: vec![(None, true)],
            pods: 1,
            crash_consistent,
            skews,
            last_first,
        };
        let mut world = World::new(plan);
        world.step(Step::Pass(4));
        assert_eq!(world.verdict(), (Phase::Thawing, Some(Consistency::Application)));
        world.step(Step::Person(Person::LosesSession(0)));
        world.settle();
        assert_eq!(world.verdict(), (Phase::Complete, Some(Consistency::Crash)));
    }
}

impl World {
    fn verdict(&self) -> (Phase, Option<Consistency>) {
        let snapshot = self.server.get(&(Kind::Snapshot, "one".to_owned()));
        let Some(Object::Snapshot(snapshot)) = snapshot.as_deref() else { panic!("there is one") };
        let status = snapshot.status.clone().unwrap_or_default();
        (status.phase, status.consistency)
    }
}
