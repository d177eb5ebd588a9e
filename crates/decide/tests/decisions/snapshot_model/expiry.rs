//! I2: when a hook's time is over, all that it froze is being taken back.

use boathook_api::pod_notification::Executor;
use jiff::SignedDuration;
use kube::ResourceExt;

use super::{World, objects::Object, promises::status};
use crate::world::{is_closed, process::Who};

/// How late an undo may start.
const LATE: SignedDuration = SignedDuration::from_secs(1);

impl World {
    /// As time passes and nothing goes wrong, by the clock of whoever leads: the time counts from the first PreAction, so
    /// that for the other pods it is not their own expiry that thaws them.
    pub(crate) fn check_expiry(&self) {
        let Some(leader) = self.lease else { return };
        let agent_helps = self.processes[Who::Agent as usize].is_awake() && !self.agent_is_cut_off;
        let executes = self.plan.executor == Executor::Api || agent_helps;
        if !executes || !self.processes[leader as usize].is_awake() || self.now <= self.steady_since + LATE {
            return;
        }
        for object in self.server.now().values() {
            let Object::Hook(hook) = &**object else { continue };
            let Some(seconds) = status(hook).recorded.and_then(|recorded| recorded.expiration_seconds) else {
                continue;
            };
            let children = self.children(hook);
            let claims = children.iter().filter_map(|child| child.status.as_ref()?.claim.as_ref());
            let Some(first) = claims.map(|claim| claim.time.0).min() else { continue };
            let expires = first + SignedDuration::from_secs(seconds.into());
            if self.clock(leader) <= expires + LATE {
                continue;
            }
            // What a person gave up is not taken back, and says so.
            for child in children.iter().filter(|child| child.spec.undo.is_some() && !is_closed(child)) {
                let name = child.name_any();
                for handler in self.pods.handlers.iter().filter(|handler| handler.child == name) {
                    let undone = self.pods.is_being_taken_back(handler);
                    assert!(undone, "I2: it expired at {expires}, and it is {}: {child:#?}", self.clock(leader));
                }
            }
        }
    }
}
