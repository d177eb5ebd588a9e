//! The controller of ApplicationSnapshots looks: from its watches, and live where that decides something.

use std::rc::Rc;

use boathook_api::{
    ApplicationSnapshot, ExecutionHook,
    application_snapshot::{ApplicationSnapshotStatus, Phase},
    words::{APPLICATION_SNAPSHOT_UID, CONSISTENCY},
};
use boathook_decide::{
    Leadership,
    application_snapshot::{AtTheCut, Observed, Present, SeenSnapshot, Surroundings, decide, snapshot_name},
};

use super::{
    World,
    look::{Sight, notification},
    objects::{Key, Kind, Object, Volume},
    process::Effect,
};
use crate::world::{BACK_OFF, process::Who};

impl World {
    pub(crate) fn look_at_snapshot(&mut self, who: Who, leadership: Leadership, key: &Key, sight: Sight) {
        let revision = self.watched(who, Kind::Snapshot, sight.object);
        let Some(object) = self.server.at(revision).get(key).cloned() else { return };
        let Object::Snapshot(snapshot) = &*object else { return };
        let status = snapshot.status.clone().unwrap_or_default();
        let mut beginning = self.process(who).memory.doing.values();
        if status.phase == Phase::Pending && beginning.any(|doing| is_pending(&doing.object)) {
            // Whoever begins one looks at the others first, and nobody else begins one meanwhile.
            let now = self.now;
            self.process(who).wake(key, now + BACK_OFF);
            return;
        }
        let names: Vec<_> = match status.phase {
            Phase::Pending => vec![snapshot_name(snapshot, "data", 1)],
            _ => status.snapshots.iter().map(|record| record.volume_snapshot_name.clone()).collect(),
        };
        let over = status.phase.is_terminal();
        let volumes = names.iter().filter_map(|name| self.watched_or_live(who, Kind::Volume, name, sight, over));
        let snapshots: Vec<_> = volumes.filter_map(|volume| seen(snapshot, &volume)).collect();
        let all_cut = status.phase == Phase::Cutting
            && snapshots.len() == names.len()
            && snapshots.iter().all(|one| one.cut && one.ours);
        let others = match status.phase {
            Phase::Pending => self.before(snapshot),
            _ => self.sharers(&status, all_cut),
        };
        let is_to_be_judged = all_cut && status.consistency.is_none();
        let live = if is_to_be_judged { Sight::CLEAR } else { sight };
        let hooks: Vec<_> = status
            .execution_hook_names
            .iter()
            .filter_map(|name| self.watched_or_live(who, Kind::Hook, name, live, over))
            .filter_map(|hook| self::hook(&hook))
            .collect();
        let at_the_cut = is_to_be_judged.then(|| AtTheCut {
            notifications: self.server.now().values().filter_map(|object| notification(Some(object))).collect(),
            and_more: false,
            containers: self.pods.containers(),
            claims: vec![self.pods.claim()],
        });
        let begins = status.phase == Phase::Freezing && status.shares_freeze_of.is_none() && hooks.is_empty();
        let notifications = || self.server.now().values().filter_map(|object| notification(Some(object))).collect();
        let present = begins.then(|| Present { notifications: notifications(), and_more: false });
        let surroundings = (status.phase == Phase::Pending).then(|| Surroundings {
            claims: vec![self.pods.claim()],
            missing_templates: vec![],
            missing_class: None,
            before: others.first().and_then(|other| other.metadata.name.clone()),
            author_checked: true,
        });
        let identity = self.processes[who as usize].identity(who);
        let observed = Observed {
            object: snapshot,
            identity: &identity,
            leadership,
            surroundings,
            snapshots,
            refused: None,
            hooks,
            others,
            present,
            at_the_cut,
        };
        let decision = decide(&observed, self.clock(who));
        let effects = decision.effects.into_iter().map(Effect::Snapshot).collect();
        self.begin(who, Rc::clone(&object), effects, decision.again);
    }

    /// As the watch has it; what it does not have is looked up, while that matters.
    fn watched_or_live(&mut self, who: Who, kind: Kind, name: &str, sight: Sight, over: bool) -> Option<Rc<Object>> {
        let key = (kind, name.to_owned());
        let known = self.watched(who, kind, sight.others);
        let known = self.server.at(known).get(&key).cloned();
        known.or_else(|| self.server.get(&key).filter(|_| !over))
    }

    /// Those that share a freeze with it, where that matters; not from the watch.
    fn sharers(&self, status: &ApplicationSnapshotStatus, all_cut: bool) -> Vec<ApplicationSnapshot> {
        let needs_followers = all_cut || status.phase >= Phase::Thawing;
        let followers = status.followers.iter().filter(|_| needs_followers);
        let needs_first = !status.phase.is_terminal() || status.phase == Phase::ThawFailed;
        let first = status.shares_freeze_of.iter().filter(|_| needs_first);
        let there = followers.chain(first).filter_map(|one| self.server.get(&(Kind::Snapshot, one.name.clone())));
        there.filter_map(|object| self::snapshot(&object)).collect()
    }

    /// Others that are under way, or came first; not from the watch.
    fn before(&self, snapshot: &ApplicationSnapshot) -> Vec<ApplicationSnapshot> {
        let order = |one: &ApplicationSnapshot| (one.metadata.creation_timestamp.clone(), one.metadata.name.clone());
        let all = self.server.now().values().filter_map(|object| self::snapshot(object));
        let others = all.filter(|other| other.metadata.uid != snapshot.metadata.uid);
        let before =
            others.filter(|other| match other.status.as_ref().map(|status| status.phase).unwrap_or_default() {
                Phase::Pending => other.metadata.deletion_timestamp.is_none() && order(other) < order(snapshot),
                Phase::Freezing | Phase::Cutting | Phase::Thawing => true,
                Phase::ThawFailed | Phase::Complete | Phase::Failed => false,
            });
        before.collect()
    }
}

fn is_pending(object: &Object) -> bool {
    match object {
        Object::Snapshot(object) => object.status.as_ref().is_none_or(|status| status.phase == Phase::Pending),
        Object::Notification(_) | Object::Hook(_) | Object::Volume(_) => false,
    }
}

pub(crate) fn snapshot(object: &Object) -> Option<ApplicationSnapshot> {
    match object {
        Object::Snapshot(snapshot) => Some(snapshot.clone()),
        Object::Notification(_) | Object::Hook(_) | Object::Volume(_) => None,
    }
}

fn hook(object: &Object) -> Option<ExecutionHook> {
    match object {
        Object::Hook(hook) => Some(hook.clone()),
        Object::Notification(_) | Object::Snapshot(_) | Object::Volume(_) => None,
    }
}

fn seen(snapshot: &ApplicationSnapshot, object: &Object) -> Option<SeenSnapshot> {
    let Object::Volume(Volume { metadata, cut, error }) = object else { return None };
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key).cloned());
    Some(SeenSnapshot {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        ours: is_of(snapshot, metadata.uid.as_ref(), annotation(APPLICATION_SNAPSHOT_UID).as_ref()),
        deleted: object.is_deleted(),
        cut: *cut,
        error: error.clone(),
        last_error: error.clone(),
        consistency: annotation(CONSISTENCY),
    })
}

/// Whether a VolumeSnapshot with this UID, made by the object with that one, is what is meant.
fn is_of(snapshot: &ApplicationSnapshot, uid: Option<&String>, maker: Option<&String>) -> bool {
    match &snapshot.spec.source.volume_snapshot_uid {
        Some(meant) => uid == Some(meant),
        None => maker == snapshot.metadata.uid.as_ref(),
    }
}
