//! An undo that an agent owes and does not report. A dead agent cannot say that it is dead, so the controller that leads
//! reports the undo as failed until the agent reports how it ended.

use std::time::Duration;

use boathook_api::{
    outcome::UndoWork,
    pod_notification::Executor,
    words::{condition, reason},
};
use jiff::{SignedDuration, Timestamp};

use super::{Decision, Effect, Object, Observed, Role, SeenPod, earliest, rounds, undo};
use crate::{
    Gravity, Leadership,
    conditions::{self, Saying},
};

/// How much longer than the undo itself may take: the time in which a running agent sees the request and writes the status.
const REPORT_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// An overdue undo is reported again each time it is another minute late.
const REPORT_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Whether an agent is to run the undo now, and has not reported the end of a round.
pub(super) fn is_awaited(observed: &Observed<'_>, object: &Object<'_>, now: Timestamp) -> bool {
    let leads = matches!(observed.me.role, Role::Controller { leadership: Leadership::Leader, .. });
    let has_pod = match &observed.pod {
        SeenPod::There(pod) => !pod.over,
        SeenPod::Unknown => true,
        SeenPod::Gone { .. } => false,
    };
    let is_agents = object.status.executor == Some(Executor::Agent);
    let mut undos = object.status.containers.iter().filter_map(|record| record.undo.as_ref());
    let is_reported = undos.any(|undo| undo.complete_time.is_some());
    leads && is_agents && has_pod && object.owes_undo() && !is_reported && undo::is_due(observed, object, now)
}

/// Adds the report to what is decided otherwise.
pub(super) fn report(observed: &Observed<'_>, object: &Object<'_>, mut decision: Decision, now: Timestamp) -> Decision {
    let Some(since) = observed.agent_due_since.filter(|_| is_awaited(observed, object, now)) else { return decision };
    let patience = longest_undo(object) + REPORT_DELAY;
    let late = now.duration_since(since);
    if late < patience {
        decision.again = earliest(decision.again, Some(since + patience));
        return decision;
    }
    let next = late.as_secs() / REPORT_INTERVAL.as_secs() + 1;
    decision.again = earliest(decision.again, Some(since + REPORT_INTERVAL * i32::try_from(next).unwrap_or(i32::MAX)));
    let message = message(object, patience, late);
    let said = conditions::find(&object.status.conditions, condition::UNDONE);
    let is_said = said.is_some_and(|said| said.reason == reason::UNDO_FAILED && said.message == message);
    let is_writing = decision.effects.iter().any(|effect| matches!(effect, Effect::WriteStatus(_)));
    if is_said || is_writing {
        return decision;
    }
    let mut status = object.status.clone();
    let saying = Saying { kind: condition::UNDONE, status: "False", reason: reason::UNDO_FAILED, message: &message };
    conditions::set(&mut status.conditions, saying, object.generation(), now);
    decision.effects.push(Effect::WriteStatus(Box::new(status)));
    decision.reports.push(undo::report(Gravity::Warning, reason::UNDO_FAILED, message));
    decision
}

fn message(object: &Object<'_>, patience: SignedDuration, late: SignedDuration) -> String {
    let node = object.status.node_name.as_deref().unwrap_or_default();
    let late = match late.as_mins() {
        // The same text until a minute is over: only a new one is written.
        0 => format!("{} seconds", patience.as_secs()),
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    format!(
        "the agent of node `{node}` has not reported the undo that was due {late} ago, and the pod may still be \
         frozen: check that `boathook agent` runs on that node and reaches the API server"
    )
}

/// The longest that one round of the undo may take in any container.
fn longest_undo(object: &Object<'_>) -> SignedDuration {
    let time = |work: &UndoWork| {
        let action = work.action.as_ref().map_or(Duration::ZERO, |work| work.action.timeout);
        work.release.unwrap_or_default() + action
    };
    let longest = rounds::recorded(&object.status, |_| true).iter().map(|(_, work)| time(work)).max();
    SignedDuration::try_from(longest.unwrap_or_default()).unwrap_or(SignedDuration::MAX)
}
