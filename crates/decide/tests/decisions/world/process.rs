//! A process of Boathook's: whether it is there, whether it leads, and what a crash takes away.

use boathook_decide::Leadership;

use super::request::Fate;

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
pub(crate) struct Process<Memory, Ledger> {
    /// How often it was started: with this its identity is one that no other process has.
    starts: u32,
    pub(crate) up: bool,
    /// It is there, and gets no time.
    pub(crate) paused: bool,
    /// It has held the lease.
    has_led: bool,
    /// What becomes of the next thing that it does by itself.
    pub(crate) luck: Option<Luck>,
    pub(crate) memory: Memory,
    /// What survives a crash: the agent's record of what it must undo.
    pub(crate) ledger: Ledger,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Luck {
    Fate(Fate),
    Crash,
}

impl<Memory: Default, Ledger: Default> Process<Memory, Ledger> {
    pub(crate) fn new(memory: Memory) -> Self {
        let ledger = Ledger::default();
        Self { starts: 0, up: true, paused: false, has_led: false, luck: None, memory, ledger }
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
        (self.up, self.has_led, self.luck) = (false, false, None);
        std::mem::take(&mut self.memory)
    }

    /// Whether it was down.
    pub(crate) fn restart(&mut self) -> bool {
        let was_down = !self.up;
        self.starts += u32::from(was_down);
        self.up = true;
        was_down
    }

    /// Nothing if it has never led.
    pub(crate) fn leadership(&mut self, leads: bool) -> Option<Leadership> {
        self.has_led |= leads;
        match (leads, self.has_led) {
            (true, _) => Some(Leadership::Leader),
            (false, true) => Some(Leadership::ThawOnly),
            (false, false) => None,
        }
    }
}
