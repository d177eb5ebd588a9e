//! How far the record of a rollout confirms the gate's marks.

use boathook_api::deployment_lifecycle::{Rollout, RolloutPhase, Stage};

use super::failing::failed_stage;

/// Which marks a record confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// None: the target is held, and the old version serves.
    Held,
    /// The old version ends, and the target is held.
    Draining,
    /// The target is let in.
    LetIn,
    Complete,
}

pub fn of(rollout: &Rollout) -> Record {
    match (rollout.phase, failed_stage(rollout).map(|record| record.stage)) {
        (RolloutPhase::Complete, _) => Record::Complete,
        (RolloutPhase::Rolling | RolloutPhase::Post, _) | (RolloutPhase::Aborted, Some(Stage::Post)) => Record::LetIn,
        (RolloutPhase::Mid, _) | (RolloutPhase::Aborted, Some(Stage::Mid)) => Record::Draining,
        (RolloutPhase::Pre, _) | (RolloutPhase::Aborted, Some(Stage::Pre) | None) => Record::Held,
    }
}

/// Whether the record of a rollout to the template with this digest lets old versions end.
pub fn lets_drain(rollout: &Rollout, deployment_digest: &str) -> bool {
    rollout.target == deployment_digest && of(rollout) != Record::Held
}
