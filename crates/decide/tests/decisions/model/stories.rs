//! Stories that a random run has found once, and what was wrong.

use boathook_api::pod_notification::Executor;

use super::{Plan, look::Sight, properties::play, step::Step};
use crate::world::{process::Who, run::End};

/// The model was: it asked for a reason when the undo began, and not when it was decided on. Who has lost the lease takes
/// back what it has done, because the next leader may have called it unknown by then; that it leads again when it acts
/// changes nothing.
#[test]
fn whoever_decides_without_the_lease_to_undo_does_so_though_it_has_it_back() {
    let plan =
        Plan { executor: Executor::Api, declaring: 1, undo: Some(None), holds: None, ttl: None, node_dies: false };
    let steps = [
        Step::Pass(1),
        Step::HandlersEnd(Who::First, [End::Succeeded; 2]),
        Step::Lease(Some(Who::Second)),
        Step::Look(Who::First, Sight::Clear),
        Step::Lease(Some(Who::First)),
        Step::Look(Who::First, Sight::Clear),
    ];
    play(plan, steps.into());
}

/// The agent was: it called closed what it had undone, though it had not ended all that it had started. Nobody took back
/// what that did later.
#[test]
fn what_an_agent_could_not_end_is_taken_back_at_the_end_of_its_time() {
    for undo in [None, Some(8)] {
        let plan = || Plan {
            executor: Executor::Agent,
            declaring: 1,
            undo: Some(undo),
            holds: None,
            ttl: None,
            node_dies: false,
        };
        let begin = [Step::Pass(1), Step::HandlersEnd(Who::Agent, [End::Unknown; 2])];
        play(plan(), begin.into());
        play(plan(), [begin.as_slice(), &[Step::Crash(Who::Agent)]].concat());
        let undone = [Step::Pass(1), Step::UndosEnd(Who::Agent, [End::Succeeded; 2]), Step::Pass(1)];
        play(plan(), [begin.as_slice(), &undone, &[Step::CutAgentOff(true), Step::Pass(79)]].concat());
        for end in [Step::PodDeleted, Step::PodEnds] {
            play(plan(), [begin.as_slice(), &undone, &[end, Step::Pass(79)]].concat());
        }
    }
}
