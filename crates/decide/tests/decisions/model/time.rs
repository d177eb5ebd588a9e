//! Time passes: every process that gets any does what it has to do, when it has to.

use boathook_api::outcome::Ended;
use jiff::{SignedDuration, Timestamp};

use super::{World, look::Sight, promises::expiry, step::Step};
use crate::world::{
    process::{Luck, Who},
    request::Fate,
    run::{End, Run, Running},
};

/// More than this without time passing, and they would go on for ever.
const RESTLESS: usize = 300;

/// What may still run when it is undone is undone once more so long after its end, if its undo waits for ever.
const WITHOUT_EXPIRY: SignedDuration = SignedDuration::from_secs(30);

/// Longer than anything is put off.
const LONG: SignedDuration = SignedDuration::from_mins(30);

impl World {
    pub(crate) fn pass(&mut self, time: SignedDuration) {
        let until = self.now + time;
        loop {
            self.rest();
            self.check_expiry();
            self.check_ending();
            match self.next_event().filter(|next| *next <= until) {
                Some(next) => self.advance(next.max(self.now)),
                None => break,
            }
        }
        self.advance(until);
        self.rest();
        self.check_expiry();
        self.check_ending();
    }

    fn advance(&mut self, until: Timestamp) {
        self.now = until;
        self.pods.time_passes(until);
    }

    pub(crate) fn hang(&mut self, time: SignedDuration) {
        self.advance(self.now + time);
        let now = self.now;
        for process in &mut self.processes {
            process.memory.steady_since = now;
        }
        if self.process(Who::Agent).is_awake() {
            self.keep();
        }
    }

    /// The faults stop: everybody is there, and what runs ends well.
    pub(crate) fn settle(&mut self) {
        self.settling = true;
        self.agent_is_cut_off = false;
        self.pods.node_ready = !self.plan.node_dies;
        while self.server.is_late() {
            self.server.deliver(self.now);
            self.note_changes();
        }
        if self.lease.is_none() {
            self.lease = Some(Who::First);
        }
        for who in Who::ALL {
            let now = self.now;
            let process = self.process(who);
            (process.paused, process.luck) = (false, None);
            process.come_back(now);
            process.disturbed(now);
        }
        if self.plan.node_dies {
            self.step(Step::Crash(Who::Agent));
            self.pass(LONG);
            // Nobody is told: somebody must look.
            self.pods.delete();
            self.sessions_end_with_their_pod();
        }
        self.pass(LONG);
        let settled = self.server.newest();
        self.pass(LONG);
        assert_eq!(self.server.newest(), settled, "writes go on though nothing happens");
    }

    /// Everybody does what is due now, until nobody has anything to do.
    fn rest(&mut self) {
        for _ in 0..RESTLESS {
            let mut restless = false;
            for who in Who::ALL {
                restless |= self.process(who).is_awake() && self.go_on(who);
                self.note_changes();
            }
            if !restless {
                return;
            }
        }
        panic!("they do not come to rest: {:#?}", self.processes);
    }

    /// One thing that this process has to do now.
    fn go_on(&mut self, who: Who) -> bool {
        let (now, settling) = (self.now, self.settling);
        let ending = |run: &Run| match run {
            Run::Running(Running { deadline, cancelled, .. }) => settling || *cancelled || *deadline <= now,
            Run::Idle | Run::Ended { .. } => false,
        };
        let end = if settling { End::Succeeded } else { End::Failed };
        let memory = &self.process(who).memory;
        let (run_ends, undo_ends) = (ending(&memory.run), ending(&memory.undo));
        let (acts, looks) = (memory.doing.is_some(), memory.wake.is_some_and(|wake| wake <= now));
        let keeps = who == Who::Agent && self.keep();
        if run_ends {
            self.handlers_end(who, [end; 2]);
        }
        if undo_ends {
            self.undos_end(who, [end; 2]);
        }
        if acts {
            match self.process(who).luck.take() {
                None => self.act(who, Fate::Answered),
                Some(Luck::Fate(fate)) => self.act(who, fate),
                Some(Luck::Crash) => self.crash(who),
            }
        } else if looks {
            self.look(who, Sight::Clear);
        }
        keeps || run_ends || undo_ends || acts || looks
    }

    fn next_event(&self) -> Option<Timestamp> {
        let awake = self.processes.iter().filter(|process| process.is_awake());
        let deadline = |run: &Run| match run {
            Run::Running(running) => Some(running.deadline),
            Run::Idle | Run::Ended { .. } => None,
        };
        awake
            .flat_map(|process| {
                let memory = &process.memory;
                let expires = process.ledger.as_ref().and_then(|record| record.expires);
                let keeper = memory.keeper.or(expires).filter(|_| process.ledger.is_some());
                let events = [memory.wake, keeper, deadline(&memory.run), deadline(&memory.undo)];
                // What is past was seen to.
                events.map(|event| event.filter(|event| *event > self.now))
            })
            .flatten()
            .min()
    }

    pub(crate) fn handlers_end(&mut self, who: Who, ends: [End; 2]) {
        let run = std::mem::take(&mut self.process(who).memory.run);
        self.process(who).memory.run = match run {
            Run::Running(running) => {
                let results = running.containers.iter().zip(ends).map(|((container, place), end)| {
                    let end = self.really(&running, *place, end);
                    if let Some(place) = *place {
                        self.pods.handler_ends(place, matches!(end, End::Succeeded));
                        if matches!(end, End::Unknown) {
                            self.handler_goes_on(place);
                        }
                    }
                    (container.clone(), end.ended(running.started, self.now))
                });
                let results: Vec<_> = results.collect();
                self.hold(who, &results);
                Run::Ended { results, round: 1 }
            }
            other @ (Run::Idle | Run::Ended { .. }) => other,
        };
        let now = self.now;
        self.process(who).wake(now);
    }

    /// It could not be ended: it does its work at the last moment at which that is promised to be taken back.
    pub(crate) fn handler_goes_on(&mut self, place: usize) {
        let object = self.server.last_seen();
        // Another may have said before that it has ended.
        let completed = object.status.as_ref().and_then(|status| status.complete_time.as_ref()).map(|time| time.0);
        let ended = completed.unwrap_or(self.now);
        let last = match self.plan.undo {
            Some(Some(_)) if expiry(object) > Some(ended) => expiry(object),
            Some(_) => Some(ended + WITHOUT_EXPIRY),
            None => None,
        };
        let last = last.map(|last| last - SignedDuration::from_millis(1));
        if let Some(last) = last.filter(|last| self.now < *last) {
            self.pods.handler_goes_on(place, last);
        }
    }

    pub(crate) fn undos_end(&mut self, who: Who, ends: [End; 2]) {
        let run = std::mem::take(&mut self.process(who).memory.undo);
        self.process(who).memory.undo = match run {
            Run::Running(running) => {
                let results = running.containers.iter().zip(ends).map(|((container, place), end)| {
                    let end = self.really(&running, *place, end);
                    let (end, exit_code) = self.release(who, container, end);
                    if let Some(place) = *place {
                        self.pods.undo_ends(place, matches!(end, End::Succeeded));
                    }
                    (container.clone(), Ended { exit_code, ..end.ended(running.started, self.now) })
                });
                let results = results.collect();
                Run::Ended { results, round: self.process(who).memory.undo_rounds }
            }
            other @ (Run::Idle | Run::Ended { .. }) => other,
        };
        let now = self.now;
        self.process(who).wake(now);
    }

    /// Nothing succeeds where nothing runs.
    fn really(&self, running: &Running, place: Option<usize>, end: End) -> End {
        match (place, self.pods.is_there(&running.pod)) {
            (_, false) => End::PodGone,
            (Some(_), true) if self.pods.runs(&running.pod) && self.pods.restarts == running.restarts => end,
            (_, true) => End::Failed,
        }
    }

    /// Whoever watches is told of a new version.
    pub(crate) fn note_changes(&mut self) {
        if self.checked < self.server.newest() {
            self.check_versions();
            let (now, cut_off) = (self.now, self.agent_is_cut_off);
            for who in Who::ALL {
                if who != Who::Agent || !cut_off {
                    self.process(who).wake(now);
                }
            }
        }
    }
}
