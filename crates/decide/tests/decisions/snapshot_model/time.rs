//! Time passes: every process that gets any does what it has to do, when it has to.

use jiff::{SignedDuration, Timestamp};

use super::{
    World,
    look::Sight,
    objects::{Key, Kind},
    process::Process,
};
use crate::world::{
    process::{Luck, Who},
    request::Fate,
    run::{End, Run},
};

/// More than this without time passing, and they would go on for ever.
const RESTLESS: usize = 1_000;

/// Longer than anything is put off.
const LONG: SignedDuration = SignedDuration::from_hours(2);

impl World {
    pub(crate) fn pass(&mut self, time: SignedDuration) {
        let until = self.now + time;
        loop {
            self.rest();
            self.check_expiry();
            match self.next_event().filter(|next| *next <= until) {
                Some(next) => self.now = next.max(self.now),
                None => break,
            }
        }
        self.now = until;
        self.rest();
        self.check_expiry();
    }

    /// The faults stop: everybody is there, and what runs ends well.
    pub(crate) fn settle(&mut self) {
        (self.settling, self.steady_since) = (true, self.now);
        self.agent_is_cut_off = false;
        (self.usual, self.slow) = (End::Succeeded, false);
        self.pods.start();
        while self.server.deliver(self.now) {
            self.note_changes();
        }
        if self.lease.is_none() {
            self.lease = Some(Who::First);
        }
        for who in Who::ALL {
            let process = self.process(who);
            (process.paused, process.luck) = (false, None);
            process.restart();
        }
        self.wake_all(self.now);
        self.pass(LONG);
        let settled = self.server.newest();
        self.wake_all(self.now);
        self.pass(LONG);
        assert_eq!(self.server.newest(), settled, "I12: writes go on though nothing happens");
    }

    /// Everybody does what is due now, until nobody has anything to do.
    fn rest(&mut self) {
        for _ in 0..RESTLESS {
            let mut restless = self.store() | self.door() | self.server.collect_garbage(self.now);
            self.note_changes();
            for who in Who::ALL {
                restless |= self.process(who).is_awake() && self.go_on(who);
                self.note_changes();
            }
            if !restless {
                return;
            }
        }
        panic!("I12: they do not come to rest: {:#?}", self.processes);
    }

    /// One thing that this process has to do now.
    fn go_on(&mut self, who: Who) -> bool {
        let now = self.now;
        let ended = self.runs_end(who, self.usual, true);
        let kept = who == Who::Agent && self.keep();
        let last_first = self.plan.last_first;
        let memory = &self.process(who).memory;
        let mut due = memory.wake.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone());
        let (act, look) = match last_first {
            false => (memory.doing.keys().next().cloned(), due.next()),
            true => (memory.doing.keys().next_back().cloned(), due.next_back()),
        };
        let busy = ended || kept || act.is_some() || look.is_some();
        match (act, look) {
            (Some(key), _) => match self.process(who).luck.take() {
                None => self.act(who, &key, Fate::Answered),
                Some(luck) => {
                    self.steady_since = now;
                    match luck {
                        Luck::Fate(fate) => self.act(who, &key, fate),
                        Luck::Crash => self.crash(who),
                    }
                }
            },
            (None, Some(key)) => self.look(who, &key, Sight::CLEAR),
            (None, None) => {}
        }
        busy
    }

    fn next_event(&self) -> Option<Timestamp> {
        let awake = self.processes.iter().filter(|process| process.is_awake());
        // What is past was seen to.
        awake.flat_map(events).filter(|event| *event > self.now).min()
    }

    /// Whoever watches is told of a new version.
    pub(crate) fn note_changes(&mut self) {
        if self.checked < self.server.newest() {
            self.check_revisions();
            self.wake_all(self.now);
        }
    }

    pub(crate) fn wake_all(&mut self, at: Timestamp) {
        let keys: Vec<_> = self.server.now().keys().cloned().collect();
        for who in Who::ALL {
            if who == Who::Agent && self.agent_is_cut_off {
                continue;
            }
            let process = self.process(who);
            let begun = process.memory.children.iter();
            let begun = begun.filter(|(_, child)| !child.run.is_idle() || !child.undo.is_idle());
            let begun: Vec<Key> = begun.map(|(name, _)| (Kind::Notification, name.clone())).collect();
            let of_this = |key: &&Key| who != Who::Agent || key.0 == Kind::Notification;
            keys.iter().chain(&begun).filter(of_this).for_each(|key| process.wake(key, at));
        }
    }
}

fn events(process: &Process) -> Vec<Timestamp> {
    let deadline = |run: &Run| match run {
        Run::Running(running) => Some(running.deadline),
        Run::Idle | Run::Ended { .. } => None,
    };
    let children = process.memory.children.values();
    let runs = children.clone().flat_map(|child| [deadline(&child.run), deadline(&child.undo), child.keeper]);
    let ledger = process.ledger.values().map(|record| record.expires);
    runs.chain(ledger).flatten().chain(process.memory.wake.values().copied()).collect()
}
