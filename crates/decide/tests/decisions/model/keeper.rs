//! The agent's keeper: undoes what has expired by its ledger alone, with or without an API server.

use super::World;
use crate::world::{KEEPERS_PAUSE, process::Who, run::Run};

impl World {
    /// What the keeper has to do now; whether that was anything.
    pub(crate) fn keep(&mut self) -> bool {
        let (now, gone) = (self.now, self.server.current().is_none() && !self.agent_is_cut_off);
        // Nothing is left to undo it in.
        let ledger = &mut self.processes[Who::Agent as usize].ledger;
        ledger.take_if(|record| gone && !self.pods.runs(&record.pod));
        let process = self.process(Who::Agent);
        let Some(record) = process.ledger.clone() else {
            process.memory.keeper = None;
            if gone && process.memory.last.is_none() && matches!(process.memory.undo, Run::Ended { .. }) {
                // It was begun by the ledger alone, of an object that this process never saw.
                process.memory.undo = Run::Idle;
            }
            return false;
        };
        // Whoever took an object away with force did not take away what it did.
        let due = gone || record.expires.is_some_and(|expires| expires <= now);
        if !due || process.memory.keeper.is_some_and(|next| next > now) {
            return false;
        }
        if let Run::Running(running) = &mut process.memory.run {
            return !std::mem::replace(&mut running.cancelled, true);
        }
        let succeeded = match &process.memory.undo {
            Run::Running(_) => return false,
            Run::Idle => false,
            Run::Ended { results, .. } => results.iter().all(|(_, ended)| ended.outcome.failure().is_none()),
        };
        if succeeded && gone {
            process.ledger = None;
            process.memory.undo = Run::Idle;
        }
        if succeeded {
            return false;
        }
        process.memory.keeper = Some(now + KEEPERS_PAUSE);
        self.start_undo(Who::Agent, record.pod, record.containers, false);
        true
    }
}
