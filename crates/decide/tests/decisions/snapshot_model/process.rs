//! What a process remembers, and what it is about to do.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use boathook_api::PodNotification;
use boathook_decide::{application_snapshot, execution_hook, pod_notification};
use jiff::Timestamp;

use super::objects::{Key, Kind, Object};
use crate::world::{process, run::Run};

/// Its ledger is by the name of the PodNotification.
pub(crate) type Process = process::Process<Memory, BTreeMap<String, Record>>;

/// What a crash takes away.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The newest revision of each kind that it has seen: a watch never goes back.
    pub(crate) known: BTreeMap<Kind, usize>,
    /// When to look at what.
    pub(crate) wake: BTreeMap<Key, Timestamp>,
    pub(crate) doing: BTreeMap<Key, Doing>,
    /// What it runs, by the name of the PodNotification.
    pub(crate) children: BTreeMap<String, Child>,
}

/// What this process runs for one PodNotification.
#[derive(Debug, Default)]
pub(crate) struct Child {
    pub(crate) run: Run,
    pub(crate) undo: Run,
    pub(crate) rounds: u32,
    /// The object, as it last saw or wrote it, and in which revision.
    pub(crate) last: Option<PodNotification>,
    pub(crate) known: usize,
    /// The handlers that it has started, by their place in the record.
    pub(crate) handlers: Vec<usize>,
    /// Since when it has seen the undo due that the agent has not reported.
    pub(crate) agent_due_since: Option<Timestamp>,
    /// When its keeper starts the next round of an undo that has expired.
    pub(crate) keeper: Option<Timestamp>,
}

/// A decision that is being carried out.
#[derive(Debug)]
pub(crate) struct Doing {
    pub(crate) object: Rc<Object>,
    pub(crate) effects: VecDeque<Effect>,
    pub(crate) again: Option<Timestamp>,
    /// The newest revision when it was made.
    pub(crate) decided: usize,
}

#[derive(Debug)]
pub(crate) enum Effect {
    Notification(pod_notification::Effect),
    Hook(execution_hook::Effect),
    Snapshot(application_snapshot::Effect),
}

/// One armed undo.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) pod: String,
    /// By the real time: the agent counts seconds, and does not ask what time it is.
    pub(crate) expires: Option<Timestamp>,
}

impl Process {
    pub(crate) fn wake(&mut self, key: &Key, at: Timestamp) {
        let earlier = self.memory.wake.get(key).copied();
        self.memory.wake.insert(key.clone(), earlier.map_or(at, |earlier| earlier.min(at)));
    }

    pub(crate) fn child(&mut self, name: &str) -> &mut Child {
        self.memory.children.entry(name.to_owned()).or_default()
    }
}
