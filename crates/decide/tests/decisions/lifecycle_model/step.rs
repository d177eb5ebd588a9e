//! What may happen next: small steps, so that a failure shrinks to a story.

use boathook_api::deployment_lifecycle::{Requested, Stage};
use jiff::SignedDuration;
use proptest::prelude::*;

use super::{World, objects::Hook, people::Person};
use crate::world::{
    chance::{fate, luck},
    process::{Luck, Who},
    request::Fate,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// So many tenths of a second pass, and everybody does what is due.
    Pass(u16),
    /// Our controller looks, and forgets what it has decided on before.
    Look(Who),
    /// It reads half of what it looks at.
    BeginLook(Who),
    Act(Who, Fate),
    /// What becomes of the next effect.
    Luck(Who, Luck),
    Crash(Who),
    Restart(Who),
    Lease(Option<Who>),
    /// The Deployment controller syncs, from what it saw last or afresh.
    Native(bool),
    /// The ReplicaSet controller does.
    Sets,
    Webhook(bool),
    Person(Person),
    /// A hook that runs ends so; and so do those after it.
    HookEnds(Hook),
    Usually(Hook),
    Evict,
    /// Somebody deletes the pods of hooks.
    DeleteHookPods,
}

impl World {
    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Pass(tenths) => self.pass(SignedDuration::from_millis(i64::from(tenths) * 100)),
            Step::Look(who) if !self.controller(who).down => {
                self.controller(who).doing = None;
                self.look(who);
            }
            Step::BeginLook(who) if !self.controller(who).down && self.controller(who).doing.is_none() => {
                self.begin_look(who);
            }
            Step::Look(_) | Step::BeginLook(_) => {}
            Step::Act(who, fate) => self.act(who, fate),
            Step::Luck(who, luck) => self.controller(who).luck = Some(luck),
            Step::Crash(who) => self.crash(who),
            Step::Restart(who) if self.controller(who).down => self.restart(who),
            Step::Restart(_) => {}
            Step::Lease(holder) => {
                self.lease = holder;
                let now = self.now;
                self.controllers.iter_mut().for_each(|controller| controller.wake(now));
            }
            Step::Native(stale) => self.native_syncs(stale),
            Step::Sets => self.sets_sync(),
            Step::Webhook(up) => self.webhook = up,
            Step::Person(person) => self.person(person),
            Step::HookEnds(how) => (0..self.hook_pods.len()).for_each(|place| self.hook_ends(place, how)),
            Step::Usually(how) => self.usual = how,
            Step::Evict => (0..self.hook_pods.len()).for_each(|place| self.evict(place)),
            Step::DeleteHookPods => {
                let names: Vec<_> = self.hook_pods.iter().map(|pod| pod.name.clone()).collect();
                names.iter().for_each(|name| self.delete_hook_pod(name, true));
            }
        }
    }
}

/// Many steps at random, or few in which everybody goes on by themselves and some one thing goes wrong.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![1 => prop::collection::vec(step(), 1..50), 2 => prop::collection::vec(calm_step(), 2..24)]
}

fn calm_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => prop_oneof![3 => 1..60_u16, 1 => 1..1200_u16].prop_map(Step::Pass),
        6 => person().prop_map(Step::Person),
        3 => (who(), luck()).prop_map(|(who, luck)| Step::Luck(who, luck)),
        2 => hook().prop_map(Step::Usually),
        1 => any::<bool>().prop_map(Step::Webhook),
        1 => holder().prop_map(Step::Lease),
        2 => step(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..80_u16).prop_map(Step::Pass),
        5 => who().prop_map(Step::Look),
        2 => who().prop_map(Step::BeginLook),
        12 => (who(), fate()).prop_map(|(who, fate)| Step::Act(who, fate)),
        2 => who().prop_map(Step::Crash),
        4 => who().prop_map(Step::Restart),
        2 => holder().prop_map(Step::Lease),
        8 => any::<bool>().prop_map(Step::Native),
        6 => Just(Step::Sets),
        2 => any::<bool>().prop_map(Step::Webhook),
        6 => person().prop_map(Step::Person),
        4 => hook().prop_map(Step::HookEnds),
        1 => hook().prop_map(Step::Usually),
        1 => Just(Step::Evict),
        1 => Just(Step::DeleteHookPods),
    ]
}

fn person() -> impl Strategy<Value = Person> {
    let stage = prop_oneof![Just(Stage::Pre), Just(Stage::Mid), Just(Stage::Post)];
    let what = prop_oneof![Just(Requested::Retry), Just(Requested::Skip)];
    prop_oneof![
        8 => prop_oneof![Just('a'), Just('b'), Just('c'), Just('d')].prop_map(Person::Template),
        3 => Just(Person::Undo),
        3 => (0..6).prop_map(Person::Scale),
        1 => Just(Person::Pause(true)),
        2 => Just(Person::Pause(false)),
        1 => Just(Person::DeletesLifecycle),
        2 => Just(Person::CreatesLifecycle),
        2 => (stage, what).prop_map(|(stage, what)| Person::Asks(stage, what)),
        1 => (0..3_usize, 0..6).prop_map(|(place, replicas)| Person::ScaleSet(place, replicas)),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![3 => Just(Who::First), 1 => Just(Who::Second)]
}

fn holder() -> impl Strategy<Value = Option<Who>> {
    prop_oneof![1 => Just(None), 2 => Just(Some(Who::First)), 2 => Just(Some(Who::Second))]
}

fn hook() -> impl Strategy<Value = Hook> {
    prop_oneof![3 => Just(Hook::Succeeds), 2 => Just(Hook::Fails), 1 => Just(Hook::Hangs)]
}
