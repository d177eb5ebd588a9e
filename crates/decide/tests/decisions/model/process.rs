//! A process of Boathook's: what it is, what it remembers, what it is about to do.

use std::collections::{BTreeMap, VecDeque};

use boathook_api::PodNotification;
use boathook_decide::pod_notification::{Effect, Session};
use jiff::Timestamp;

use super::{api_server::Fate, run::Run};

/// Which process: two controllers, and the node's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    First,
    Second,
    Agent,
}

impl Who {
    pub(crate) const ALL: [Self; 3] = [Self::First, Self::Second, Self::Agent];
}

#[derive(Debug)]
pub(crate) struct Process {
    /// How often it was started: with this its identity is one that no other process has.
    starts: u32,
    pub(crate) up: bool,
    /// It is there, and gets no time.
    pub(crate) paused: bool,
    /// Since when nothing has gone wrong for it.
    pub(crate) steady_since: Timestamp,
    pub(crate) memory: Memory,
    /// What survives a crash: the agent's record of what it must undo.
    pub(crate) ledger: Option<Record>,
}

/// What a crash takes away.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) run: Run,
    pub(crate) undo: Run,
    pub(crate) undo_rounds: u32,
    /// The sessions of its handlers, by container.
    pub(crate) sessions: BTreeMap<String, Session>,
    /// It has held the lease.
    pub(crate) has_led: bool,
    /// The newest version that it has seen or written: a watch never goes back.
    pub(crate) known: Option<usize>,
    /// The object, as it last saw or wrote it.
    pub(crate) last: Option<PodNotification>,
    pub(crate) doing: Option<Doing>,
    /// What becomes of the next thing that it does by itself.
    pub(crate) luck: Option<Luck>,
    /// When its keeper starts the next round of an undo that has expired.
    pub(crate) keeper: Option<Timestamp>,
    /// When to look.
    pub(crate) wake: Option<Timestamp>,
    /// The handlers that it has started, by their place in the record.
    pub(crate) handlers: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Luck {
    Fate(Fate),
    Crash,
}

/// A decision that is being carried out.
#[derive(Debug)]
pub(crate) struct Doing {
    pub(crate) object: PodNotification,
    pub(crate) version: usize,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) again: Option<Timestamp>,
}

/// One armed undo.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) pod: String,
    pub(crate) containers: Vec<String>,
    pub(crate) expires: Option<Timestamp>,
    /// It is about sessions, which end with the process that holds them.
    pub(crate) holds: bool,
}

impl Process {
    pub(crate) fn new(now: Timestamp) -> Self {
        let memory = Memory { wake: Some(now), ..Memory::default() };
        Self { starts: 0, up: true, paused: false, steady_since: now, memory, ledger: None }
    }

    pub(crate) fn identity(&self, who: Who) -> String {
        format!("{who:?}-{}", self.starts)
    }

    /// Whether it can act at all.
    pub(crate) fn is_awake(&self) -> bool {
        self.up && !self.paused
    }

    /// Returns what it had in mind.
    pub(crate) fn crash(&mut self) -> Memory {
        self.up = false;
        std::mem::take(&mut self.memory)
    }

    pub(crate) fn restart(&mut self, now: Timestamp) {
        if !self.up {
            self.starts += 1;
            self.up = true;
            if let Some(record) = self.ledger.as_mut().filter(|record| record.holds) {
                record.expires = Some(now);
            }
            self.disturbed(now);
        }
    }

    /// Something went wrong, or began anew: it looks at once, and promises count from here.
    pub(crate) fn disturbed(&mut self, now: Timestamp) {
        self.steady_since = now;
        self.wake(now);
    }

    pub(crate) fn wake(&mut self, at: Timestamp) {
        self.memory.wake = Some(self.memory.wake.map_or(at, |earlier| earlier.min(at)));
    }
}
