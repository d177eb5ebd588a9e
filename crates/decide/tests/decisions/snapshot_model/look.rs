//! A process looks at an object and decides, as the controllers' and the agent's `observe` do.

use std::{collections::BTreeMap, rc::Rc};

use boathook_api::{ApplicationSnapshot, ExecutionHook, PodNotification};
use boathook_decide::{
    Leadership,
    application_snapshot::{awaits_end_of, is_undecided, may_freeze},
    execution_hook::{self, Surroundings, child_name, is_accepted, is_settled, pinned_pods},
    pod_notification::{self, Me, Role, SeenPod, Sessions, decide_gone, needs_pod},
};
use jiff::Timestamp;

use super::{
    World,
    look_at_snapshot::snapshot,
    objects::{Key, Kind, Object},
    process::{Child, Doing, Effect},
};
use crate::world::{BACK_OFF, is_closed, process::Who};

/// How well a process sees: the object as it was so many revisions ago, what its watches have of others likewise, and
/// whether it can learn of pods at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) object: usize,
    pub(crate) others: usize,
    pub(crate) blind: bool,
}

impl Sight {
    pub(crate) const CLEAR: Self = Self { object: 0, others: 0, blind: false };
}

impl World {
    pub(crate) fn look(&mut self, who: Who, key: &Key, sight: Sight) {
        let now = self.now;
        if self.process(who).memory.doing.contains_key(key) {
            return;
        }
        self.process(who).memory.wake.remove(key);
        if sight != Sight::CLEAR {
            // The watch tells the rest.
            self.process(who).wake(key, now + BACK_OFF);
        }
        let leads = self.lease == Some(who);
        match (key.0, self.process(who).leadership(leads)) {
            (Kind::Notification, leadership) => self.look_at_notification(who, leadership, &key.1, sight),
            (Kind::Hook, Some(leadership)) => self.look_at_hook(who, leadership, key, sight),
            (Kind::Snapshot, Some(leadership)) => self.look_at_snapshot(who, leadership, key, sight),
            (Kind::Hook | Kind::Snapshot | Kind::Volume, _) => {}
        }
    }

    /// The revision that its watch of a kind has come to.
    pub(crate) fn watched(&mut self, who: Who, kind: Kind, ago: usize) -> usize {
        let newest = self.server.newest();
        let known = self.process(who).memory.known.entry(kind).or_default();
        *known = newest.saturating_sub(ago).max(*known);
        *known
    }

    /// What is decided is to be done.
    pub(crate) fn begin(&mut self, who: Who, object: Rc<Object>, effects: Vec<Effect>, again: Option<Timestamp>) {
        let (key, decided) = (object.key(), self.server.newest());
        let again = again.map(|again| again - self.skew(who));
        let doing = Doing { object, effects: effects.into(), again, decided };
        self.process(who).memory.doing.insert(key.clone(), doing);
        self.finish(who, &key);
    }

    /// When all is done, the time to look again counts.
    pub(crate) fn finish(&mut self, who: Who, key: &Key) {
        let process = self.process(who);
        if process.memory.doing.get(key).is_some_and(|doing| doing.effects.is_empty())
            && let Some(again) = process.memory.doing.remove(key).and_then(|doing| doing.again)
        {
            process.wake(key, again);
        }
    }

    fn look_at_hook(&mut self, who: Who, leadership: Leadership, key: &Key, sight: Sight) {
        let revision = self.watched(who, Kind::Hook, sight.object);
        let Some(object) = self.server.at(revision).get(key).cloned() else { return };
        let Object::Hook(hook) = &*object else { return };
        let known = self.watched(who, Kind::Notification, sight.others);
        let pods = hook.status.iter().flat_map(pinned_pods);
        let names: Vec<_> = pods.map(|pod| child_name(hook, &pod.pod_uid)).collect();
        let of_watch = |name: &String| notification(self.server.at(known).get(&(Kind::Notification, name.clone())));
        if is_settled(hook, names.iter().filter_map(of_watch)) {
            return;
        }
        let live = |name: &String| notification(self.server.get(&(Kind::Notification, name.clone())).as_ref());
        let children = names.iter().filter_map(|name| of_watch(name).or_else(|| live(name))).collect();
        let surroundings = (!is_accepted(hook)).then(|| self.around(hook));
        let identity = self.processes[who as usize].identity(who);
        let observed = execution_hook::Observed {
            object: hook,
            identity: &identity,
            leadership,
            surroundings,
            children,
            refused: None,
            is_awaited: self.is_awaited(hook),
            begun: BTreeMap::new(),
        };
        let decision = execution_hook::decide(&observed, self.clock(who));
        let effects = decision.effects.into_iter().map(Effect::Hook).collect();
        self.begin(who, object, effects, decision.again);
    }

    /// Not from the watch.
    fn is_awaited(&self, hook: &ExecutionHook) -> bool {
        let mut all = self.server.now().values().filter_map(|object| snapshot(object));
        hook.metadata.deletion_timestamp.is_some() && all.any(|snapshot| awaits_end_of(&snapshot, hook))
    }

    fn around(&self, hook: &ExecutionHook) -> Surroundings {
        let template = hook.spec.execution_hook_template_name.as_deref().map(|name| self.templates.get(name));
        let listed = hook.spec.pod_container_names_list.as_ref();
        let listed: Option<Vec<_>> = listed.map(|list| list.iter().map(|one| one.pod_name.clone()).collect());
        Surroundings { template, pods: self.pods.for_hooks(listed.as_deref()), author_checked: true }
    }

    fn look_at_notification(&mut self, who: Who, leadership: Option<Leadership>, name: &str, sight: Sight) {
        let role = match leadership {
            None if who == Who::Agent => Role::Agent,
            None => return,
            Some(leadership) => Role::Controller { leadership, executor: self.plan.executor, enabled: true },
        };
        let Some((object, gone)) = self.seen_notification(who, name, sight) else { return };
        let identity = self.process(who).identity(who);
        let me = Me { identity: &identity, role };
        let child = self.process(who).child(name);
        let (run, undo) = (child.run.progress(), child.undo.progress());
        let pod = match sight.blind {
            _ if role != Role::Agent && !needs_pod(&object, me, &run, &undo) => SeenPod::Unknown,
            // The agent asks the node's runtime, and goes on without an answer.
            true if role == Role::Agent => SeenPod::Unknown,
            true => return,
            false => self.pods.for_notification(&object),
        };
        let expires = self.process(who).ledger.get(name).and_then(|record| record.expires);
        let expires = expires.map(|expires| expires + self.skew(who));
        let mut observed = pod_notification::Observed {
            object: &object,
            me,
            pod,
            run,
            undo,
            sessions: Sessions::default(),
            expires,
            moved: BTreeMap::new(),
            agent_due_since: None,
            room: true,
            author_checked: true,
            undecided: self.undecided(&object),
        };
        let now = self.clock(who);
        let is_awaited = pod_notification::awaits_agent(&observed, now);
        let since = &mut self.process(who).child(name).agent_due_since;
        *since = is_awaited.then(|| since.unwrap_or(now));
        observed.agent_due_since = *since;
        let decision = if gone { decide_gone(&observed, now) } else { pod_notification::decide(&observed, now) };
        let effects = decision.effects.into_iter().map(Effect::Notification).collect();
        self.begin(who, Rc::new(Object::Notification(object)), effects, decision.again);
    }

    /// Those that freeze when it is to be accepted; not from the watch.
    fn undecided(&self, object: &PodNotification) -> Vec<ApplicationSnapshot> {
        let accepted = object.status.as_ref().is_some_and(|status| status.executor.is_some());
        let all = self.server.now().values().filter_map(|object| snapshot(object)).filter(|_| !accepted);
        all.filter(|one| is_undecided(one) && may_freeze(one, &object.spec.pod_name, None)).collect()
    }

    /// As this process sees it, or as it saw it last; and whether it is gone.
    fn seen_notification(&mut self, who: Who, name: &str, sight: Sight) -> Option<(PodNotification, bool)> {
        let cut_off = who == Who::Agent && self.agent_is_cut_off;
        let revision = if cut_off { 0 } else { self.watched(who, Kind::Notification, sight.object) };
        let known = self.processes[who as usize].memory.children.get(name).map_or(0, |child| child.known);
        let revision = revision.max(known);
        let object = notification(self.server.at(revision).get(&(Kind::Notification, name.to_owned())));
        if object.is_none() && !self.processes[who as usize].memory.children.contains_key(name) {
            return None;
        }
        if object.as_ref().is_some_and(is_closed) {
            self.process(who).ledger.remove(name);
        }
        let gone = object.is_none();
        let child = self.process(who).child(name);
        child.known = revision;
        if object.is_some() {
            child.last = object;
        } else if child.run.is_idle() && child.undo.is_idle() {
            // Of an object that is gone it matters only what was begun for it here.
            *child = Child { known: revision, ..Child::default() };
        }
        Some((child.last.clone()?, gone))
    }
}

pub(crate) fn notification(object: Option<&Rc<Object>>) -> Option<PodNotification> {
    match object.map(|object| &**object) {
        Some(Object::Notification(object)) => Some(object.clone()),
        Some(Object::Hook(_) | Object::Snapshot(_) | Object::Volume(_)) | None => None,
    }
}
