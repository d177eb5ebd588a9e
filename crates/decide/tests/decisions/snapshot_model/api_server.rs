//! The API server: every revision that there was, conflicts, finalizers, deletion, owners.

use std::{collections::BTreeMap, rc::Rc};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

use super::objects::{Change, Key, Kind, Object, Status};
use crate::world::request::{Failed, Fate};

pub(crate) type Objects = BTreeMap<Key, Rc<Object>>;

pub(crate) struct Server {
    revisions: Vec<Objects>,
    /// Requests that are still on their way, though their sender has given up waiting.
    late: Vec<Write>,
    uids: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Against the version that was looked at.
    Status {
        key: Key,
        version: Option<String>,
        status: Status,
    },
    Hold {
        key: Key,
        version: Option<String>,
        finalizer: &'static str,
        held: bool,
    },
    Own {
        key: Key,
        version: Option<String>,
        owner: Box<OwnerReference>,
    },
    /// One that is there already is as good.
    Create(Box<Object>),
    /// One that is gone is as good.
    Change {
        key: Key,
        change: Change,
    },
    Delete {
        key: Key,
        uid: Option<String>,
    },
}

impl Default for Server {
    fn default() -> Self {
        Self { revisions: vec![Objects::new()], late: vec![], uids: 0 }
    }
}

impl Server {
    pub(crate) fn newest(&self) -> usize {
        self.revisions.len() - 1
    }

    pub(crate) fn at(&self, revision: usize) -> &Objects {
        &self.revisions[revision]
    }

    pub(crate) fn now(&self) -> &Objects {
        self.at(self.newest())
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Rc<Object>> {
        self.now().get(key).cloned()
    }

    /// As it was when it was there last.
    pub(crate) fn last_seen(&self, key: &Key) -> Option<Rc<Object>> {
        self.revisions.iter().rev().find_map(|objects| objects.get(key).cloned())
    }

    pub(crate) fn keys(&self, kind: Kind) -> Vec<Key> {
        self.now().keys().filter(|key| key.0 == kind).cloned().collect()
    }

    pub(crate) fn write(&mut self, write: Write, fate: Fate, now: Timestamp) -> Result<Option<Rc<Object>>, Failed> {
        match fate {
            Fate::Answered => self.carry_out(write, now),
            Fate::AnswerLost => self.carry_out(write, now).and(Err(Failed)),
            Fate::NeverArrives => Err(Failed),
            Fate::Late => {
                self.late.push(write);
                Err(Failed)
            }
        }
    }

    /// The oldest request that is on its way arrives; whether there was one.
    pub(crate) fn deliver(&mut self, now: Timestamp) -> bool {
        if self.late.is_empty() {
            return false;
        }
        let write = self.late.remove(0);
        // Nobody waits for the answer.
        let _ = self.carry_out(write, now);
        true
    }

    pub(crate) fn person_creates(&mut self, object: Object, now: Timestamp) {
        let _ = self.carry_out(Write::Create(Box::new(object)), now);
    }

    pub(crate) fn person_deletes(&mut self, key: &Key, now: Timestamp) {
        let _ = self.carry_out(Write::Delete { key: key.clone(), uid: None }, now);
    }

    /// What a person, a kubelet or the storage does, which is never out of date.
    pub(crate) fn person_changes(&mut self, key: &Key, change: impl FnOnce(&mut Object)) {
        if let Some(object) = self.get(key) {
            let mut object = (*object).clone();
            change(&mut object);
            self.store(key, Some(object));
        }
    }

    /// Deletes what its owner has left behind; whether there was anything.
    pub(crate) fn collect_garbage(&mut self, now: Timestamp) -> bool {
        let uids: Vec<_> = self.now().values().filter_map(|object| object.meta().uid.clone()).collect();
        let is_orphan = |object: &&Rc<Object>| {
            let owners = object.meta().owner_references.as_deref().unwrap_or_default();
            !owners.is_empty() && !object.is_deleted() && owners.iter().all(|owner| !uids.contains(&owner.uid))
        };
        let orphan = self.now().values().find(is_orphan).map(|object| object.key());
        orphan.iter().for_each(|key| self.person_deletes(key, now));
        orphan.is_some()
    }

    fn carry_out(&mut self, write: Write, now: Timestamp) -> Result<Option<Rc<Object>>, Failed> {
        let checked = |there: Option<Rc<Object>>, version: &Option<String>| match there {
            Some(object) if object.meta().resource_version == *version => Ok((*object).clone()),
            Some(_) | None => Err(Failed),
        };
        match write {
            Write::Status { key, version, status } => {
                let mut object = checked(self.get(&key), &version)?;
                object.set_status(status);
                Ok(self.store(&key, Some(object)))
            }
            Write::Hold { key, version, finalizer, held } => {
                let mut object = checked(self.get(&key), &version)?;
                if held && object.is_deleted() {
                    // Kubernetes forbids a new finalizer on what is being deleted.
                    return Err(Failed);
                }
                let finalizers = object.meta_mut().finalizers.get_or_insert_default();
                finalizers.retain(|one| one != finalizer);
                finalizers.extend(held.then(|| finalizer.to_owned()));
                Ok(self.store(&key, Some(object)))
            }
            Write::Own { key, version, owner } => {
                let mut object = checked(self.get(&key), &version)?;
                object.meta_mut().owner_references.get_or_insert_default().push(*owner);
                Ok(self.store(&key, Some(object)))
            }
            Write::Create(mut object) => {
                let key = object.key();
                if self.get(&key).is_none() {
                    self.uids += 1;
                    let uid = format!("{}-{}", key.1, self.uids);
                    let meta = object.meta_mut();
                    (meta.creation_timestamp, meta.generation) = (Some(Time(now)), Some(1));
                    meta.uid.get_or_insert(uid);
                    self.store(&key, Some(*object));
                }
                Ok(None)
            }
            Write::Change { key, change } => {
                self.person_changes(&key, |object| object.change(&change));
                Ok(None)
            }
            Write::Delete { key, uid } => {
                let there = self.get(&key).filter(|object| uid.is_none() || object.meta().uid == uid);
                if let Some(object) = there {
                    let mut object = (*object).clone();
                    object.meta_mut().deletion_timestamp.get_or_insert(Time(now));
                    self.store(&key, Some(object));
                }
                Ok(None)
            }
        }
    }

    /// A new revision, if anything changes.
    fn store(&mut self, key: &Key, object: Option<Object>) -> Option<Rc<Object>> {
        let object = object.filter(|object| !object.is_deleted() || !object.finalizers().is_empty());
        if self.get(key).as_deref() == object.as_ref() {
            return self.get(key);
        }
        let mut objects = self.now().clone();
        let revision = self.revisions.len().to_string();
        let stored = object.map(|mut object| {
            object.meta_mut().resource_version = Some(revision);
            Rc::new(object)
        });
        match &stored {
            Some(object) => objects.insert(key.clone(), Rc::clone(object)),
            None => objects.remove(key),
        };
        self.revisions.push(objects);
        stored
    }
}
