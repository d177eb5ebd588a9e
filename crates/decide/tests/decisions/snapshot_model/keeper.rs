//! The agent's keeper: undoes what has expired by its ledger alone, with or without an API server.

use super::{World, objects::Kind};
use crate::world::{KEEPERS_PAUSE, process::Who, run::Run};

impl World {
    /// What the keeper has to do now; whether that was anything.
    pub(crate) fn keep(&mut self) -> bool {
        let records: Vec<_> = self.process(Who::Agent).ledger.clone().into_iter().collect();
        records.into_iter().any(|(name, record)| {
            let gone = !self.agent_is_cut_off && self.server.get(&(Kind::Notification, name.clone())).is_none();
            if gone && self.pods.get(&record.pod).is_none() {
                // Nothing is left to undo it in.
                self.process(Who::Agent).ledger.remove(&name);
                return false;
            }
            // Whoever took an object away with force did not take away what it did.
            let due = gone || record.expires.is_some_and(|expires| expires <= self.now);
            due && self.keep_one(&name, &record.pod, gone)
        })
    }

    fn keep_one(&mut self, name: &str, pod: &str, gone: bool) -> bool {
        let now = self.now;
        let process = self.process(Who::Agent);
        let child = process.child(name);
        if child.keeper.is_some_and(|next| next > now) {
            return false;
        }
        if let Run::Running(running) = &mut child.run {
            return !std::mem::replace(&mut running.cancelled, true);
        }
        let succeeded = match &child.undo {
            Run::Running(_) => return false,
            Run::Idle => false,
            Run::Ended { results, .. } => results.iter().all(|(_, ended)| ended.outcome.failure().is_none()),
        };
        if succeeded {
            if gone {
                child.undo = Run::Idle;
                process.ledger.remove(name);
            }
            return false;
        }
        process.child(name).keeper = Some(now + KEEPERS_PAUSE);
        self.start_undo(Who::Agent, name, pod);
        true
    }
}
