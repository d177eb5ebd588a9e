//! What may happen next: small steps, so that a failure shrinks to a story.

use boathook_api::words::ABANDON_UNDO;
use jiff::SignedDuration;
use kube::ResourceExt;
use proptest::prelude::*;

use super::{World, look::Sight};
use crate::world::{
    chance::{end, fate, holder, luck},
    process::{Luck, Who},
    request::Fate,
    run::{End, Run},
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Look(Who, Sight),
    Act(Who, Fate),
    HandlersEnd(Who, [End; 2]),
    UndosEnd(Who, [End; 2]),
    /// So many tenths of a second pass, and everybody does what is due.
    Pass(u16),
    /// Time passes, and only the agent's keeper gets any: everything else hangs in a write.
    Hang(u16),
    /// What becomes of the next thing that it does by itself.
    Luck(Who, Luck),
    Crash(Who),
    Restart(Who),
    Pause(Who),
    Resume(Who),
    Lease(Option<Who>),
    CutAgentOff(bool),
    Deliver,
    RequestUndo,
    /// By a person, or by the end of the namespace.
    Delete,
    Abandon,
    Gate(bool),
    PodDeleted,
    PodRecreated,
    /// It is deleted with a grace period, drained or replaced.
    PodToldToEnd,
    PodEnds,
    ContainersRestart,
    /// A session that is open somewhere ends by itself.
    SessionEnds,
    NodeReady(bool),
}

impl World {
    pub(crate) fn step(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Look(who, sight) if self.process(who).is_awake() => self.look(who, sight),
            Step::Act(who, fate) if self.process(who).is_awake() => self.act(who, fate),
            Step::HandlersEnd(who, ends) if self.process(who).up => self.handlers_end(who, ends),
            Step::UndosEnd(who, ends) if self.process(who).up => self.undos_end(who, ends),
            Step::Look(..) | Step::Act(..) | Step::HandlersEnd(..) | Step::UndosEnd(..) => {}
            Step::Pass(tenths) => self.pass(SignedDuration::from_millis(i64::from(tenths) * 100)),
            Step::Hang(tenths) => self.hang(SignedDuration::from_millis(i64::from(tenths) * 100)),
            Step::Luck(who, luck) => self.process(who).luck = Some(luck),
            Step::Crash(who) => self.crash(who),
            Step::Restart(who) => self.process(who).come_back(now),
            Step::Pause(who) => self.process(who).paused = true,
            Step::Resume(who) => {
                self.process(who).paused = false;
                self.process(who).disturbed(now);
            }
            Step::Lease(holder) => {
                self.lease = holder;
                holder.into_iter().for_each(|who| self.process(who).disturbed(now));
            }
            Step::CutAgentOff(cut_off) => {
                self.agent_is_cut_off = cut_off;
                self.process(Who::Agent).wake(now);
            }
            Step::Deliver => self.server.deliver(now),
            Step::RequestUndo => self.server.user(|object| object.spec.undo_requested = true),
            Step::Delete => self.server.delete(now),
            Step::Abandon => {
                self.abandoned = true;
                self.server.user(|object| {
                    object.annotations_mut().insert(ABANDON_UNDO.to_owned(), "true".to_owned());
                });
            }
            Step::Gate(enabled) => {
                self.enabled = enabled;
                // It is a word on the command line.
                for who in [Who::First, Who::Second] {
                    self.step(Step::Crash(who));
                    self.step(Step::Restart(who));
                }
            }
            Step::PodDeleted => self.pods.delete(),
            Step::PodRecreated => self.pods.recreate(),
            Step::PodToldToEnd => {
                self.pods.tell_to_end(now);
                // They watch pods; the agent does not.
                [Who::First, Who::Second].into_iter().for_each(|who| self.process(who).wake(now));
            }
            Step::PodEnds => self.pods.end(),
            Step::ContainersRestart => self.pods.restarts += 1,
            Step::SessionEnds => self.some_session_ends(),
            Step::NodeReady(ready) => self.pods.node_ready = ready,
        }
        if let Step::PodDeleted | Step::PodRecreated | Step::PodEnds | Step::ContainersRestart = step {
            self.sessions_end_with_their_pod();
        }
        self.note_changes();
        self.check_now();
    }

    pub(crate) fn crash(&mut self, who: Who) {
        let forgotten = self.process(who).crash();
        for &place in &forgotten.handlers {
            self.pods.handler_end_is_forgotten(place);
        }
        if let Run::Running(running) = &forgotten.run {
            let begun: Vec<_> = running.containers.iter().filter_map(|(_, place)| *place).collect();
            begun.into_iter().for_each(|place| self.handler_goes_on(place));
        }
    }
}

/// Many steps at random, or few in which everybody goes on by themselves and some one thing goes wrong.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![prop::collection::vec(step(), 1..60), prop::collection::vec(calm_step(), 2..16)]
}

fn calm_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..20_u16).prop_map(Step::Pass),
        4 => (who(), luck()).prop_map(|(who, luck)| Step::Luck(who, luck)),
        4 => (who(), [end(), end()]).prop_map(|(who, ends)| Step::HandlersEnd(who, ends)),
        4 => (who(), [end(), end()]).prop_map(|(who, ends)| Step::UndosEnd(who, ends)),
        2 => holder().prop_map(Step::Lease),
        1 => who().prop_map(Step::Pause),
        1 => who().prop_map(Step::Resume),
        3 => Just(Step::SessionEnds),
        1 => Just(Step::PodToldToEnd),
        2 => step(),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (who(), sight()).prop_map(|(who, sight)| Step::Look(who, sight)),
        16 => (who(), fate()).prop_map(|(who, fate)| Step::Act(who, fate)),
        8 => (who(), [end(), end()]).prop_map(|(who, ends)| Step::HandlersEnd(who, ends)),
        8 => (who(), [end(), end()]).prop_map(|(who, ends)| Step::UndosEnd(who, ends)),
        8 => (1..80_u16).prop_map(Step::Pass),
        2 => (1..80_u16).prop_map(Step::Hang),
        3 => who().prop_map(Step::Crash),
        4 => who().prop_map(Step::Restart),
        2 => who().prop_map(Step::Pause),
        3 => who().prop_map(Step::Resume),
        3 => holder().prop_map(Step::Lease),
        2 => any::<bool>().prop_map(Step::CutAgentOff),
        2 => Just(Step::Deliver),
        2 => Just(Step::RequestUndo),
        1 => Just(Step::Delete),
        1 => prop_oneof![4 => Just(Step::ContainersRestart), 1 => Just(Step::Abandon)],
        1 => any::<bool>().prop_map(Step::Gate),
        1 => prop_oneof![Just(Step::PodDeleted), Just(Step::PodRecreated), Just(Step::PodEnds)],
        1 => Just(Step::PodToldToEnd),
        2 => Just(Step::SessionEnds),
        1 => any::<bool>().prop_map(Step::NodeReady),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![3 => Just(Who::First), 2 => Just(Who::Second), 3 => Just(Who::Agent)]
}

fn sight() -> impl Strategy<Value = Sight> {
    prop_oneof![
        6 => Just(Sight::Clear),
        2 => (1..4_usize).prop_map(Sight::Stale),
        1 => Just(Sight::Blind),
        1 => Just(Sight::Crowded),
    ]
}
