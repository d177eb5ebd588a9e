//! What really ran: every pod of a hook that there ever was.

use boathook_api::deployment_lifecycle::{Stage, StageState};

use super::World;

#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) rollout: String,
    /// Of which change of the template.
    pub(crate) template: u32,
    pub(crate) stage: Stage,
    pub(crate) uid: String,
    pub(crate) outcome: Outcome,
    /// Another one may run: it was taken away, or a person asked for it.
    pub(crate) excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Runs,
    Succeeded,
    Failed,
    /// It was ended before it had ended.
    Taken,
}

impl World {
    pub(crate) fn excuse(&mut self, uid: &str) {
        self.runs.iter_mut().filter(|run| run.uid == uid).for_each(|run| run.excused = true);
        self.disturbances += 1;
    }

    /// What runs is ended for a new template; if the one before comes back meanwhile, it is begun again. So it is with
    /// what has ended, if nobody has seen that yet.
    pub(crate) fn excuse_unrecorded(&mut self) {
        let rollout = self.lifecycle.as_ref().and_then(|object| object.status.as_ref()?.rollout.as_ref());
        let open = rollout.into_iter().flat_map(|rollout| &rollout.stages);
        let open: Vec<_> =
            open.filter(|record| record.state == StageState::Running).map(|record| record.stage).collect();
        let runs = self.runs.iter_mut().filter(|run| run.outcome == Outcome::Runs || open.contains(&run.stage));
        runs.for_each(|run| run.excused = true);
    }

    pub(crate) fn of_rollout<'a>(&'a self, rollout: &'a str, stage: Stage) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| run.rollout == rollout && run.stage == stage)
    }
}
