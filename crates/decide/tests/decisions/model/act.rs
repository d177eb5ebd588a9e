//! A process carries out what it decided, one effect at a time, as `boathook_runtime::execution` does.

use boathook_api::{PodNotification, outcome::Work};
use boathook_decide::pod_notification::{Effect, may_start};
use jiff::SignedDuration;

use super::{
    World,
    api_server::Write,
    process::{Doing, Record},
};
use crate::world::{
    BACK_OFF,
    process::Who,
    reports_failure_again,
    request::{Failed, Fate},
    run::{Run, Running},
};

/// Longer than a handler or an undo is declared to take.
const HANDLER_TIME: SignedDuration = SignedDuration::from_secs(5);
const UNDO_TIME: SignedDuration = SignedDuration::from_secs(3);

impl World {
    /// The next effect, if there is one.
    pub(crate) fn act(&mut self, who: Who, fate: Fate) {
        let Some(mut doing) = self.process(who).memory.doing.take() else { return };
        let Some(effect) = doing.effects.pop_front() else { return };
        match self.carry_out(who, &mut doing, effect, fate) {
            Ok(()) => {
                self.process(who).memory.doing = Some(doing);
                self.finish_doing(who);
            }
            Err(Failed) => {
                let now = self.now;
                self.process(who).wake(now + BACK_OFF);
                // The agent needs no API server for what it promises.
                if who != Who::Agent {
                    self.process(who).memory.steady_since = now + BACK_OFF;
                }
            }
        }
    }

    /// When all is done, the time to look again counts.
    pub(crate) fn finish_doing(&mut self, who: Who) {
        let memory = &mut self.process(who).memory;
        if let Some(Doing { again, .. }) = memory.doing.take_if(|doing| doing.effects.is_empty())
            && let Some(again) = again
        {
            self.process(who).wake(again);
        }
    }

    fn may_still_start(&self) -> bool {
        self.server.current().is_some_and(|object| may_start(object, self.now))
    }

    fn carry_out(&mut self, who: Who, doing: &mut Doing, effect: Effect, fate: Fate) -> Result<(), Failed> {
        match effect {
            // There are no snapshots here.
            Effect::RecordOn(_) => Ok(()),
            Effect::AddFinalizer => self.write(who, doing, Write::AddFinalizer, fate),
            Effect::RemoveFinalizer => self.write(who, doing, Write::RemoveFinalizer, fate),
            Effect::RequestUndo => self.write(who, doing, Write::RequestUndo, fate),
            Effect::WriteStatus(status) => self.write(who, doing, Write::Status(status), fate),
            Effect::Delete => self.write(who, doing, Write::Delete, fate),
            // Asked again at the last moment: the writes before may have taken long.
            Effect::Start(_) if who != Who::Agent && self.lease != Some(who) => Err(Failed),
            Effect::Start(_) if who != Who::Agent && !self.may_still_start() => Err(Failed),
            Effect::Start(work) => {
                self.arm(who, doing, &work);
                match (who, fate) {
                    // The ledger's disk is slow: what is armed is not yet started.
                    (Who::Agent, Fate::Late) => doing.effects.push_front(Effect::Start(work)),
                    (_, Fate::Answered | Fate::AnswerLost | Fate::NeverArrives | Fate::Late) => {
                        self.start(who, doing, work);
                    }
                }
                Ok(())
            }
            Effect::Cancel => {
                if let Run::Running(running) = &mut self.process(who).memory.run {
                    running.cancelled = true;
                }
                Ok(())
            }
            // Every handler here has one attempt.
            Effect::BeginNoMore => Ok(()),
            Effect::StartUndo(work) => {
                let containers = work.into_iter().map(|(container, _)| container).collect();
                self.start_undo(who, target(&doing.object), containers, doing.thaw_only);
                Ok(())
            }
            Effect::ForgetRun => {
                self.process(who).memory.run = Run::Idle;
                Ok(())
            }
            Effect::ForgetUndo => {
                let process = self.process(who);
                (process.memory.undo, process.memory.undo_rounds) = (Run::Idle, 0);
                process.memory.sessions.clear();
                process.close(&doing.object);
                Ok(())
            }
        }
    }

    fn write(&mut self, who: Who, doing: &mut Doing, write: Write, fate: Fate) -> Result<(), Failed> {
        if who == Who::Agent && self.agent_is_cut_off {
            return Err(Failed);
        }
        // That an object goes when its time is over belongs to neither phase.
        let counts = !matches!(write, Write::Delete);
        let phase = doing.object.status.as_ref().is_some_and(|status| status.state.is_terminal());
        let version = self.server.write(doing.version, write, fate, self.now)?;
        let written = self.server.version(version).cloned();
        let counts = counts && !written.as_ref().is_some_and(|after| reports_failure_again(&doing.object, after));
        self.writes[usize::from(phase)] += usize::from(counts);
        doing.version = version;
        self.process(who).memory.known = Some(version);
        match written {
            Some(object) => {
                doing.object = object.clone();
                self.process(who).memory.last = Some(object);
            }
            None => doing.effects.clear(),
        }
        Ok(())
    }

    /// What will undo it is durable before anything is done.
    fn arm(&mut self, who: Who, doing: &Doing, work: &[(String, Work)]) {
        if who == Who::Agent && doing.object.spec.undo.is_some() {
            let after = doing.object.spec.undo.as_ref().and_then(|undo| undo.after_seconds);
            let expires = after.map(|after| self.now + SignedDuration::from_secs(after.into()));
            let containers = work.iter().map(|(container, _)| container.clone()).collect();
            let holds = self.plan.holds.is_some();
            self.process(who).ledger =
                Some(Record { pod: target(&doing.object), containers, expires, holds, last_round: false });
        }
    }

    fn start(&mut self, who: Who, doing: &Doing, work: Vec<(String, Work)>) {
        if !self.process(who).memory.run.is_idle() {
            return;
        }
        self.check_start(who, &work);
        let pod = target(&doing.object);
        let mut containers = vec![];
        for (container, _) in work {
            let place = self.pods.handler_starts(&pod, &container);
            self.process(who).memory.handlers.extend(place);
            containers.push((container, place));
        }
        self.process(who).memory.run = self.running(pod, containers, HANDLER_TIME);
    }

    /// Unless it runs already.
    pub(crate) fn start_undo(&mut self, who: Who, pod: String, containers: Vec<String>, thaw_only: bool) {
        if matches!(self.process(who).memory.undo, Run::Running(_)) {
            return;
        }
        self.check_undo(who, thaw_only);
        let reached = |container: String| {
            let place = self.pods.undo_starts(&pod, &container);
            (container, place)
        };
        let containers = containers.into_iter().map(reached).collect();
        let running = self.running(pod, containers, UNDO_TIME);
        let memory = &mut self.process(who).memory;
        memory.undo = running;
        memory.undo_rounds += 1;
    }

    fn running(&self, pod: String, containers: Vec<(String, Option<usize>)>, time: SignedDuration) -> Run {
        let (started, restarts) = (self.now, self.pods.restarts);
        Run::Running(Running { containers, pod, started, deadline: started + time, restarts, cancelled: false })
    }
}

/// The pod that was pinned.
pub(crate) fn target(object: &PodNotification) -> String {
    object.status.as_ref().and_then(|status| status.pod_uid.clone()).expect("nothing runs before a pod is pinned")
}
