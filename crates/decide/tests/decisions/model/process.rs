//! What a process remembers, and what it is about to do.

use std::collections::{BTreeMap, VecDeque};

use boathook_api::PodNotification;
use boathook_decide::pod_notification::{Effect, Session, last_round};
use jiff::Timestamp;

use crate::world::{process, run::Run};

pub(crate) type Process = process::Process<Memory, Option<Record>>;

/// What a crash takes away.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) run: Run,
    pub(crate) undo: Run,
    pub(crate) undo_rounds: u32,
    /// The sessions of its handlers, by container.
    pub(crate) sessions: BTreeMap<String, Session>,
    /// Since when nothing has gone wrong for it.
    pub(crate) steady_since: Timestamp,
    /// The newest version that it has seen or written: a watch never goes back.
    pub(crate) known: Option<usize>,
    /// The object, as it last saw or wrote it.
    pub(crate) last: Option<PodNotification>,
    pub(crate) doing: Option<Doing>,
    /// When its keeper starts the next round of an undo that has expired.
    pub(crate) keeper: Option<Timestamp>,
    /// Since when it has seen the undo due that the agent has not reported.
    pub(crate) agent_due_since: Option<Timestamp>,
    /// When to look.
    pub(crate) wake: Option<Timestamp>,
    /// The handlers that it has started, by their place in the record.
    pub(crate) handlers: Vec<usize>,
}

/// A decision that is being carried out.
#[derive(Debug)]
pub(crate) struct Doing {
    pub(crate) object: PodNotification,
    pub(crate) version: usize,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) again: Option<Timestamp>,
    /// It was made without the lease: another may have said meanwhile that the handlers' end is unknown.
    pub(crate) thaw_only: bool,
}

/// One armed undo.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) pod: String,
    pub(crate) containers: Vec<String>,
    pub(crate) expires: Option<Timestamp>,
    /// It is about sessions, which end with the process that holds them.
    pub(crate) holds: bool,
    /// It is undone, and is to be once more then.
    pub(crate) last_round: bool,
}

impl Process {
    /// Nothing is owed any more, but perhaps a last round.
    pub(crate) fn close(&mut self, object: &PodNotification) {
        let Some(due) = last_round(object) else {
            self.ledger = None;
            return;
        };
        if let Some(record) = self.ledger.as_mut().filter(|record| !record.last_round) {
            (record.expires, record.last_round) = (Some(due), true);
            self.memory.keeper = None;
        }
    }

    pub(crate) fn come_back(&mut self, now: Timestamp) {
        if self.restart() {
            if let Some(record) = self.ledger.as_mut().filter(|record| record.holds) {
                record.expires = Some(now);
            }
            self.disturbed(now);
        }
    }

    /// Something went wrong, or began anew: it looks at once, and promises count from here.
    pub(crate) fn disturbed(&mut self, now: Timestamp) {
        self.memory.steady_since = now;
        self.wake(now);
    }

    pub(crate) fn wake(&mut self, at: Timestamp) {
        self.memory.wake = Some(self.memory.wake.map_or(at, |earlier| earlier.min(at)));
    }
}
