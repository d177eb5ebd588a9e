//! The Deployment controller does not look again at what admission has turned into nothing, and gives up after about 15
//! failures. A change of our condition wakes it, survives its writes, and costs no generation.

use jiff::{SignedDuration, Timestamp};

use super::{Deployment, DeploymentCondition, Effect, Look, ReplicaSet, Strategy};
use boathook_api::words::{condition, reason};

/// How long it is left in peace: at first, and at most.
#[derive(Clone, Copy)]
struct Peace {
    first: SignedDuration,
    longest: SignedDuration,
}

/// When it should have done something by now.
const IDLE: Peace = Peace { first: SignedDuration::from_secs(3), longest: SignedDuration::from_secs(60) };

/// When it may well be waiting for pods, of which some may never be ready: it is not told so for ever and often.
const PATIENT: Peace = Peace { first: SignedDuration::from_secs(15), longest: SignedDuration::from_mins(5) };

impl Look<'_> {
    /// Wakes the Deployment controller, if it was left in peace for long enough; each time it is left for longer.
    pub(super) fn nudge(&mut self, deployment: &Deployment) {
        self.nudge_after(deployment, IDLE);
    }

    fn nudge_after(&mut self, deployment: &Deployment, peace: Peace) {
        if self.decision.effects.iter().any(|effect| matches!(effect, Effect::SetCondition(_))) {
            // That wakes it as well.
            self.again(self.now + peace.first);
            return;
        }
        let Some(ours) = &deployment.ours else {
            return self.say(deployment, reason::PRE, "Boathook holds a new version");
        };
        let next = next_nudge(ours, peace);
        // A time in the future was written before the wall clock was stepped back.
        if self.now < next && ours.last_update <= self.now {
            return self.again(next);
        }
        // Times of conditions have whole seconds.
        self.decision.effects.push(Effect::SetCondition(DeploymentCondition { last_update: self.now, ..ours.clone() }));
        self.again(self.now + peace.first);
    }

    /// The same, while ReplicaSets are not as the Deployment controller should have made them by now.
    pub(super) fn nudge_if_idle(&mut self, deployment: &Deployment, target: Option<&ReplicaSet>) {
        let others = || self.others(target);
        let seen = deployment.observed_generation >= deployment.generation;
        let peace = match target {
            _ if !seen => Some(IDLE),
            // While pods of others end, there is nothing that it should have done.
            None => {
                let ending = others().all(|other| other.replicas == 0) && others().any(ReplicaSet::has_pods);
                (deployment.strategy == Strategy::RollingUpdate || !ending).then_some(IDLE)
            }
            Some(target) => {
                let moves = target.replicas < deployment.replicas || others().any(|other| other.replicas > 0);
                moves.then(|| if self.may_wait_for_pods(deployment, target) { PATIENT } else { IDLE })
            }
        };
        if let Some(peace) = peace.filter(|_| !deployment.paused) {
            self.nudge_after(deployment, peace);
        }
    }

    /// Whether a RollingUpdate that has begun lacks pods before the next may go. But these may be pods that it need not
    /// wait for: old ones that are never ready it takes away, and that this has failed it forgets at once.
    fn may_wait_for_pods(&self, deployment: &Deployment, target: &ReplicaSet) -> bool {
        // Of ReplicaSets, because whoever has given up leaves the Deployment's own count as it was.
        let available = self.observed.replica_sets.iter().map(|set| i64::from(set.available_replicas)).sum::<i64>();
        deployment.strategy == Strategy::RollingUpdate
            && target.replicas > 0
            && available < i64::from(deployment.replicas)
    }
}

fn next_nudge(ours: &DeploymentCondition, peace: Peace) -> Timestamp {
    debug_assert_eq!(ours.kind, condition::LIFECYCLE);
    let so_far = ours.last_update.duration_since(ours.last_transition);
    ours.last_update + so_far.clamp(peace.first, peace.longest)
}
