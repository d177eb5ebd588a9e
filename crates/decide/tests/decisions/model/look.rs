//! A process looks at the object and decides, as the controllers' and the agent's `observe` do.

use std::collections::BTreeMap;

use boathook_api::PodNotification;
use boathook_decide::{
    Leadership,
    pod_notification::{Me, Observed, Role, SeenPod, Sessions, awaits_agent, decide, decide_gone, needs_pod},
};

use super::{World, process::Doing};
use crate::world::{BACK_OFF, is_closed, process::Who};

/// How well a process sees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sight {
    Clear,
    /// It sees the object as it was so many versions ago.
    Stale(usize),
    /// It cannot learn of the pod.
    Blind,
    /// There is no room for one more handler.
    Crowded,
}

impl World {
    pub(crate) fn look(&mut self, who: Who, sight: Sight) {
        let now = self.now;
        if self.process(who).memory.doing.is_some() {
            return;
        }
        self.process(who).memory.wake = None;
        if !matches!(sight, Sight::Clear) {
            // The watch tells the rest, the room becomes free.
            self.process(who).wake(now + BACK_OFF);
            self.process(who).memory.steady_since = now + BACK_OFF;
        }
        let Some(role) = self.role(who) else { return };
        let Some((object, version)) = self.seen_object(who, sight) else { return };
        let gone = self.server.version(version).is_none();
        let identity = self.process(who).identity(who);
        let me = Me { identity: &identity, role };
        let memory = &self.process(who).memory;
        let (run, undo) = (memory.run.progress(), memory.undo.progress());
        let pinned = object.status.as_ref().and_then(|status| status.pod_uid.clone());
        let pod = match sight {
            _ if role != Role::Agent && !needs_pod(&object, me, &run, &undo) => SeenPod::Unknown,
            // Whether a pod is gone for good is for the controller to say.
            _ if role == Role::Agent && !gone && is_terminal(&object) => SeenPod::Unknown,
            // The agent asks the node's runtime, and goes on without an answer.
            Sight::Blind if role == Role::Agent => SeenPod::Unknown,
            Sight::Blind => return,
            Sight::Clear | Sight::Stale(_) | Sight::Crowded => self.pods.seen(pinned.as_deref()),
        };
        let expires = self.process(who).ledger.as_ref().and_then(|record| record.expires);
        let room = !matches!(sight, Sight::Crowded);
        let sessions = Sessions { of: self.process(who).memory.sessions.clone(), closing: false };
        let (undecided, moved) = (vec![], BTreeMap::new());
        let mut observed = Observed {
            object: &object,
            me,
            pod,
            run,
            undo,
            sessions,
            expires,
            moved,
            agent_due_since: None,
            room,
            author_checked: true,
            undecided,
        };
        let is_awaited = awaits_agent(&observed, now);
        let since = self.processes[who as usize].memory.agent_due_since;
        observed.agent_due_since = is_awaited.then(|| since.unwrap_or(now));
        let agent_due_since = observed.agent_due_since;
        let decision = if gone { decide_gone(&observed, now) } else { decide(&observed, now) };
        let thaw_only = matches!(role, Role::Controller { leadership: Leadership::ThawOnly, .. });
        let (effects, again) = (decision.effects.into(), decision.again);
        self.process(who).memory.agent_due_since = agent_due_since;
        self.process(who).memory.doing = Some(Doing { object, version, effects, again, thaw_only });
        self.finish_doing(who);
    }

    /// Nothing if it is not to look at all: it never led.
    fn role(&mut self, who: Who) -> Option<Role> {
        if who == Who::Agent {
            return Some(Role::Agent);
        }
        let leads = self.lease == Some(who);
        let leadership = self.process(who).leadership(leads)?;
        Some(Role::Controller { leadership, executor: self.plan.executor, enabled: self.enabled })
    }

    fn seen_object(&mut self, who: Who, sight: Sight) -> Option<(PodNotification, usize)> {
        let known = self.process(who).memory.known;
        let version = match (who, sight) {
            // All that it may have otherwise is its ledger, which is the keeper's business.
            (Who::Agent, _) if self.agent_is_cut_off => known?,
            (_, Sight::Stale(ago)) => self.server.newest().saturating_sub(ago).max(known.unwrap_or_default()),
            (_, Sight::Clear | Sight::Blind | Sight::Crowded) => self.server.newest(),
        };
        self.process(who).memory.known = Some(version);
        let object = self.server.version(version).cloned();
        if let Some(object) = object.as_ref().filter(|object| is_closed(object)) {
            self.process(who).close(object);
        }
        let memory = &mut self.process(who).memory;
        if object.is_some() {
            memory.last = object;
        } else if memory.run.is_idle() && memory.undo.is_idle() && memory.sessions.is_empty() {
            // Of an object that is gone it matters only what was begun for it here.
            memory.last = None;
        }
        Some((memory.last.clone()?, version))
    }
}

fn is_terminal(object: &PodNotification) -> bool {
    object.status.as_ref().is_some_and(|status| status.state.is_terminal())
}
