//! A process carries out what it decided, one effect at a time, as the controllers' `act` do.

use boathook_api::words::{THAW_FINALIZER, UNDO_FINALIZER};
use boathook_decide::{
    application_snapshot::Effect as OfSnapshot, execution_hook::Effect as OfHook,
    pod_notification::Effect as OfNotification,
};
use kube::ResourceExt;

use super::{
    World,
    api_server::Write,
    look::notification,
    objects::{Change, Key, Kind, Object, Status, Volume},
    process::{Doing, Effect},
};
use crate::world::{
    BACK_OFF,
    process::Who,
    request::{Failed, Fate},
    run::Run,
};

impl World {
    /// The next effect of what is decided about one object.
    pub(crate) fn act(&mut self, who: Who, key: &Key, fate: Fate) {
        let Some(mut doing) = self.process(who).memory.doing.remove(key) else { return };
        let Some(effect) = doing.effects.pop_front() else { return };
        match self.carry_out(who, &mut doing, effect, fate) {
            Ok(()) => {
                self.process(who).memory.doing.insert(key.clone(), doing);
                self.finish(who, key);
            }
            Err(Failed) => {
                let now = self.now;
                self.process(who).wake(key, now + BACK_OFF);
            }
        }
    }

    fn carry_out(&mut self, who: Who, doing: &mut Doing, effect: Effect, fate: Fate) -> Result<(), Failed> {
        match effect {
            Effect::Notification(effect) => self.act_on_notification(who, doing, effect, fate),
            // Asked again before each: the writes before may have taken long.
            Effect::Hook(_) | Effect::Snapshot(_) if self.lease != Some(who) => Err(Failed),
            Effect::Hook(effect) => self.act_on_hook(who, doing, effect, fate),
            Effect::Snapshot(effect) => self.act_on_snapshot(who, doing, effect, fate),
        }
    }

    fn act_on_hook(&mut self, who: Who, doing: &mut Doing, effect: OfHook, fate: Fate) -> Result<(), Failed> {
        let write = match effect {
            OfHook::AddFinalizer => hold(doing, THAW_FINALIZER, true),
            OfHook::RemoveFinalizer => hold(doing, THAW_FINALIZER, false),
            OfHook::WriteStatus(status) => write_status(doing, Status::Hook(status)),
            OfHook::CreateChild(child) => {
                self.check_child(doing, &child);
                Write::Create(Box::new(Object::Notification(*child)))
            }
            OfHook::TakeBack(asked) => {
                Write::Change { key: (Kind::Notification, asked.child.clone()), change: Change::TakeBack(asked) }
            }
        };
        self.write(who, doing, write, fate)
    }

    fn act_on_snapshot(&mut self, who: Who, doing: &mut Doing, effect: OfSnapshot, fate: Fate) -> Result<(), Failed> {
        let write = match effect {
            OfSnapshot::AddFinalizer => hold(doing, THAW_FINALIZER, true),
            OfSnapshot::RemoveFinalizer => hold(doing, THAW_FINALIZER, false),
            OfSnapshot::WriteStatus(status) => write_status(doing, Status::Snapshot(status)),
            OfSnapshot::Follow(first) => {
                let first = Object::Snapshot(*first);
                let (key, version) = (first.key(), first.meta().resource_version.clone());
                let Object::Snapshot(first) = first else { return Ok(()) };
                Write::Status { key, version, status: Status::Snapshot(Box::new(first.status.unwrap_or_default())) }
            }
            OfSnapshot::CreateHook(hook) => {
                self.check_begun(doing);
                Write::Create(Box::new(Object::Hook(*hook)))
            }
            OfSnapshot::ThawHook(name) => {
                self.check_order(doing, &name);
                Write::Change { key: (Kind::Hook, name), change: Change::Thaw }
            }
            OfSnapshot::DeleteHook { name, uid } => Write::Delete { key: (Kind::Hook, name), uid: Some(uid) },
            OfSnapshot::CreateSnapshot(snapshot) => {
                self.check_begun(doing);
                let metadata = snapshot.metadata;
                Write::Create(Box::new(Object::Volume(Volume { metadata, ..Volume::default() })))
            }
            OfSnapshot::DeleteSnapshot { name, uid } => Write::Delete { key: (Kind::Volume, name), uid: Some(uid) },
            OfSnapshot::SetOwner(owner) => {
                let version = doing.object.meta().resource_version.clone();
                Write::Own { key: doing.object.key(), version, owner }
            }
            OfSnapshot::MarkSnapshot { name, uid, consistency, hooks: _ } => {
                let change = Change::Mark { uid, consistency: consistency.as_str() };
                Write::Change { key: (Kind::Volume, name), change }
            }
            OfSnapshot::Delete => Write::Delete { key: doing.object.key(), uid: doing.object.meta().uid.clone() },
        };
        self.write(who, doing, write, fate)
    }

    fn act_on_notification(
        &mut self,
        who: Who,
        doing: &mut Doing,
        effect: OfNotification,
        fate: Fate,
    ) -> Result<(), Failed> {
        let Object::Notification(object) = &*doing.object else { return Ok(()) };
        let object = object.clone();
        match effect {
            OfNotification::RecordOn(snapshot) => {
                let snapshot = Object::Snapshot(*snapshot);
                let (key, version) = (snapshot.key(), snapshot.meta().resource_version.clone());
                let Object::Snapshot(snapshot) = snapshot else { return Ok(()) };
                let status = Status::Snapshot(Box::new(snapshot.status.unwrap_or_default()));
                self.write(who, doing, Write::Status { key, version, status }, fate)
            }
            OfNotification::AddFinalizer => {
                let write = hold(doing, UNDO_FINALIZER, true);
                self.write(who, doing, write, fate)
            }
            OfNotification::RemoveFinalizer => {
                let write = hold(doing, UNDO_FINALIZER, false);
                self.write(who, doing, write, fate)
            }
            OfNotification::WriteStatus(status) => {
                let write = write_status(doing, Status::Notification(status));
                self.write(who, doing, write, fate)
            }
            // Pods here go at once: none is seen ending.
            OfNotification::RequestUndo => Ok(()),
            OfNotification::Delete => {
                let write = Write::Delete { key: doing.object.key(), uid: object.uid() };
                self.write(who, doing, write, fate)
            }
            OfNotification::Start(_) => self.start(who, &object),
            OfNotification::Cancel => {
                self.cancel(who, &object.name_any());
                Ok(())
            }
            // Every handler here has one attempt.
            OfNotification::BeginNoMore => Ok(()),
            OfNotification::StartUndo(_) => {
                let pod = object.spec.pod_uid.clone().unwrap_or_default();
                self.start_undo(who, &object.name_any(), &pod);
                Ok(())
            }
            OfNotification::ForgetRun => {
                self.process(who).child(&object.name_any()).run = Run::Idle;
                Ok(())
            }
            OfNotification::ForgetUndo => {
                self.forget_undo(who, &object.name_any());
                Ok(())
            }
        }
    }

    fn write(&mut self, who: Who, doing: &mut Doing, write: Write, fate: Fate) -> Result<(), Failed> {
        if who == Who::Agent && self.agent_is_cut_off {
            return Err(Failed);
        }
        let own = match &write {
            Write::Status { key, .. } | Write::Hold { key, .. } | Write::Own { key, .. } => *key == doing.object.key(),
            Write::Change { .. } | Write::Delete { .. } | Write::Create(_) => false,
        };
        let written = match &write {
            Write::Status { key, .. } | Write::Hold { key, .. } | Write::Own { key, .. } => Some((key.clone(), false)),
            // To ask for the way back is part of it.
            Write::Change { key, .. } => Some((key.clone(), true)),
            // That an object goes when it is not needed any more belongs to neither phase.
            Write::Delete { .. } => None,
            Write::Create(object) => Some((object.key(), false)),
        };
        let before = self.server.newest();
        let answer = self.server.write(write, fate, self.now);
        if let Some((key, turns)) = written.filter(|_| before < self.server.newest()) {
            self.count_write(&key, before, turns);
        }
        let stored = answer?;
        if !own {
            return Ok(());
        }
        match stored {
            Some(stored) => {
                if let Some(object) = notification(Some(&stored)) {
                    // It knows what it has written before its watch does.
                    let newest = self.server.newest();
                    let child = self.process(who).child(&object.name_any());
                    (child.known, child.last) = (newest, Some(object));
                }
                doing.object = stored;
            }
            None => doing.effects.clear(),
        }
        Ok(())
    }
}

fn hold(doing: &Doing, finalizer: &'static str, held: bool) -> Write {
    Write::Hold { key: doing.object.key(), version: doing.object.meta().resource_version.clone(), finalizer, held }
}

fn write_status(doing: &Doing, status: Status) -> Write {
    Write::Status { key: doing.object.key(), version: doing.object.meta().resource_version.clone(), status }
}
