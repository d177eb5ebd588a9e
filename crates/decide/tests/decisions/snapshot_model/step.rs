//! What may happen next: small steps, so that a failure shrinks to a story.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::{World, look::Sight, objects::Kind, people::Person, storage::Mode};
use crate::world::{
    chance::{end, fate, holder, luck},
    process::{Luck, Who},
    request::Fate,
    run::End,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// At one of the objects.
    Look(Who, usize, Sight),
    /// On one of the decisions that it has made.
    Act(Who, usize, Fate),
    RunsEnd(Who, End),
    /// How whatever runs ends by itself, and whether that takes long.
    Usually(End, bool),
    Storage(Mode),
    /// So many tenths of a second pass, and everybody does what is due.
    Pass(u16),
    /// What becomes of the next thing that it does by itself.
    Luck(Who, Luck),
    Crash(Who),
    Restart(Who),
    Pause(Who),
    Resume(Who),
    Lease(Option<Who>),
    CutAgentOff(bool),
    Deliver,
    Person(Person),
    PodRestarts(usize),
    PodIsReplaced(usize),
    /// It uses the claim, and runs later.
    PodComes,
    PodsStart,
}

impl World {
    pub(crate) fn step(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Look(who, which, sight) if self.process(who).is_awake() => {
                let keys: Vec<_> = self.server.now().keys().cloned().collect();
                if !keys.is_empty() {
                    self.look(who, &keys[which % keys.len()], sight);
                }
            }
            Step::Act(who, which, fate) if self.process(who).is_awake() => {
                let keys: Vec<_> = self.process(who).memory.doing.keys().cloned().collect();
                if !keys.is_empty() {
                    self.act(who, &keys[which % keys.len()], fate);
                }
            }
            Step::RunsEnd(who, end) if self.process(who).up => drop(self.runs_end(who, end, false)),
            Step::Look(..) | Step::Act(..) | Step::RunsEnd(..) => {}
            Step::Usually(end, slow) => (self.usual, self.slow) = (end, slow),
            Step::Storage(mode) => self.storage.mode = mode,
            Step::Pass(tenths) => self.pass(SignedDuration::from_millis(i64::from(tenths) * 100)),
            Step::Luck(who, luck) => self.process(who).luck = Some(luck),
            Step::Crash(who) => self.crash(who),
            Step::Restart(who) => drop(self.process(who).restart()),
            Step::Pause(who) => self.process(who).paused = true,
            Step::Resume(who) => self.process(who).paused = false,
            Step::Lease(holder) => self.lease = holder,
            Step::CutAgentOff(cut_off) => self.agent_is_cut_off = cut_off,
            Step::Deliver => drop(self.server.deliver(now)),
            Step::Person(person) => self.person(person),
            Step::PodRestarts(which) => self.pods.restart(which),
            Step::PodIsReplaced(which) => self.pods.replace(which),
            Step::PodComes => self.pods.come(false),
            Step::PodsStart => self.pods.start(),
        }
        if !matches!(step, Step::Pass(_)) {
            self.steady_since = self.now;
        }
        self.note_changes();
        self.wake_all(now);
    }

    pub(crate) fn crash(&mut self, who: Who) {
        for place in self.process(who).crash().children.into_values().flat_map(|child| child.handlers) {
            self.pods.handler_end_is_forgotten(place);
        }
    }
}

/// Many steps at random; or few in which everybody goes on by themselves and some one thing goes wrong; or things go
/// wrong between the freeze and the cut.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        2 => prop::collection::vec(step(), 1..50),
        3 => prop::collection::vec(calm_step(), 2..16),
        3 => around_the_cut(),
    ]
}

fn around_the_cut() -> impl Strategy<Value = Vec<Step>> {
    let wrong = prop_oneof![
        4 => person().prop_map(Step::Person),
        2 => (0..3_usize).prop_map(Step::PodRestarts),
        1 => (0..3_usize).prop_map(Step::PodIsReplaced),
        1 => prop_oneof![Just(Step::PodComes), Just(Step::PodsStart)],
        2 => holder().prop_map(Step::Lease),
        1 => who().prop_map(Step::Crash),
        1 => who().prop_map(Step::Restart),
        1 => who().prop_map(Step::Pause),
        3 => any::<bool>().prop_map(Step::CutAgentOff),
        1 => mode().prop_map(Step::Storage),
        6 => (1..60_u16).prop_map(Step::Pass),
        4 => calm_step(),
    ];
    let before = prop_oneof![4 => Just(Mode::Hangs), 1 => Just(Mode::CutsSilently)];
    let after = prop_oneof![4 => Just(Mode::Cuts), 1 => mode()];
    let first = prop::collection::vec(calm_step(), 0..2);
    let wrong = prop::collection::vec(wrong, 1..6);
    (before, first, 3..25_u16, wrong, after, 1..20_u16).prop_map(|(before, first, freeze, wrong, after, cut)| {
        let mut steps = vec![Step::Storage(before)];
        steps.extend(first);
        steps.push(Step::Pass(freeze));
        steps.extend(wrong);
        steps.extend([Step::Storage(after), Step::Pass(cut)]);
        steps
    })
}

fn calm_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1..20_u16).prop_map(Step::Pass),
        4 => (who(), luck()).prop_map(|(who, luck)| Step::Luck(who, luck)),
        2 => (end(), any::<bool>()).prop_map(|(end, slow)| Step::Usually(end, slow)),
        2 => mode().prop_map(Step::Storage),
        1 => holder().prop_map(Step::Lease),
        1 => who().prop_map(Step::Pause),
        1 => who().prop_map(Step::Resume),
        1 => who().prop_map(Step::Restart),
        3 => step(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (who(), any::<u8>(), sight()).prop_map(|(who, which, sight)| Step::Look(who, which.into(), sight)),
        16 => (who(), any::<u8>(), fate()).prop_map(|(who, which, fate)| Step::Act(who, which.into(), fate)),
        4 => (who(), end()).prop_map(|(who, end)| Step::RunsEnd(who, end)),
        2 => (end(), any::<bool>()).prop_map(|(end, slow)| Step::Usually(end, slow)),
        3 => mode().prop_map(Step::Storage),
        10 => (1..60_u16).prop_map(Step::Pass),
        3 => who().prop_map(Step::Crash),
        4 => who().prop_map(Step::Restart),
        2 => who().prop_map(Step::Pause),
        3 => who().prop_map(Step::Resume),
        3 => holder().prop_map(Step::Lease),
        2 => any::<bool>().prop_map(Step::CutAgentOff),
        2 => Just(Step::Deliver),
        6 => person().prop_map(Step::Person),
        1 => (0..3_usize).prop_map(Step::PodRestarts),
        1 => (0..3_usize).prop_map(Step::PodIsReplaced),
        1 => Just(Step::PodComes),
        1 => Just(Step::PodsStart),
    ]
}

fn person() -> impl Strategy<Value = Person> {
    let kind = || prop_oneof![Just(Kind::Notification), Just(Kind::Hook), Just(Kind::Snapshot), Just(Kind::Volume)];
    let thawed = prop_oneof![Just(Kind::Notification), Just(Kind::Hook)];
    prop_oneof![
        3 => (kind(), 0..4_usize).prop_map(|(kind, which)| Person::Deletes(kind, which)),
        3 => (thawed, 0..4_usize).prop_map(|(kind, which)| Person::AsksForThaw(kind, which)),
        1 => (0..2_usize).prop_map(Person::Abandons),
        1 => (0..2_usize).prop_map(Person::CannotWait),
        1 => Just(Person::EditsTemplates),
        2 => Just(Person::IsStored),
        1 => Just(Person::MakesAnother),
        2 => any::<bool>().prop_map(Person::IsPrompt),
        2 => (0..4_usize).prop_map(Person::LosesSession),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![4 => Just(Who::First), 2 => Just(Who::Second), 2 => Just(Who::Agent)]
}

fn sight() -> impl Strategy<Value = Sight> {
    let ago = || prop_oneof![2 => Just(0_usize), 1 => 1..12_usize];
    prop_oneof![
        4 => Just(Sight::CLEAR),
        4 => (ago(), ago()).prop_map(|(object, others)| Sight { object, others, blind: false }),
        1 => Just(Sight { blind: true, ..Sight::CLEAR }),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        3 => Just(Mode::Cuts),
        2 => Just(Mode::CutsSilently),
        1 => Just(Mode::Fails),
        3 => Just(Mode::Hangs),
    ]
}
