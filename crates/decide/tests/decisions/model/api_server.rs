//! The API server, as far as one object goes: versions, conflicts, finalizers, deletion.

use boathook_api::{PodNotification, pod_notification::PodNotificationStatus, words::UNDO_FINALIZER};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::world::request::{Failed, Fate};

/// It keeps every version that there was; nothing where the object was gone.
pub(crate) struct ApiServer {
    versions: Vec<Option<PodNotification>>,
    /// Requests that are still on their way, though their sender has given up waiting.
    late: Vec<(usize, Write)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Write {
    AddFinalizer,
    RemoveFinalizer,
    RequestUndo,
    Status(Box<PodNotificationStatus>),
    Delete,
}

impl ApiServer {
    pub(crate) fn new(object: PodNotification) -> Self {
        let mut server = Self { versions: vec![], late: vec![] };
        server.store(Some(object));
        server
    }

    pub(crate) fn current(&self) -> Option<&PodNotification> {
        self.versions.last().and_then(Option::as_ref)
    }

    pub(crate) fn newest(&self) -> usize {
        self.versions.len() - 1
    }

    pub(crate) fn version(&self, version: usize) -> Option<&PodNotification> {
        self.versions[version].as_ref()
    }

    /// The last version in which there was an object.
    pub(crate) fn last_seen(&self) -> &PodNotification {
        self.versions.iter().rev().flatten().next().expect("there was an object at first")
    }

    /// A write of a process, against the version that it has looked at.
    pub(crate) fn write(
        &mut self,
        looked_at: usize,
        write: Write,
        fate: Fate,
        now: Timestamp,
    ) -> Result<usize, Failed> {
        match fate {
            Fate::Answered => self.carry_out(looked_at, write, now),
            Fate::AnswerLost => self.carry_out(looked_at, write, now).and(Err(Failed)),
            Fate::NeverArrives => Err(Failed),
            Fate::Late => {
                self.late.push((looked_at, write));
                Err(Failed)
            }
        }
    }

    /// The oldest request that is on its way arrives.
    pub(crate) fn deliver(&mut self, now: Timestamp) {
        if !self.late.is_empty() {
            let (looked_at, write) = self.late.remove(0);
            // Nobody waits for the answer.
            let _ = self.carry_out(looked_at, write, now);
        }
    }

    pub(crate) fn is_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// What a person does, which is never out of date.
    pub(crate) fn user(&mut self, change: impl FnOnce(&mut PodNotification)) {
        if let Some(mut object) = self.current().cloned() {
            change(&mut object);
            if self.current() != Some(&object) {
                self.store(Some(object));
            }
        }
    }

    pub(crate) fn delete(&mut self, now: Timestamp) {
        // There is nothing to delete: as good.
        let _ = self.carry_out(self.newest(), Write::Delete, now);
    }

    fn carry_out(&mut self, looked_at: usize, write: Write, now: Timestamp) -> Result<usize, Failed> {
        if looked_at != self.newest() {
            return Err(Failed);
        }
        let mut object = self.current().cloned().ok_or(Failed)?;
        match write {
            // Kubernetes forbids a new finalizer on what is being deleted.
            Write::AddFinalizer if object.metadata.deletion_timestamp.is_some() => return Err(Failed),
            Write::AddFinalizer => object.finalizers_mut().push(UNDO_FINALIZER.to_owned()),
            Write::RemoveFinalizer => object.finalizers_mut().retain(|finalizer| finalizer != UNDO_FINALIZER),
            Write::RequestUndo => object.spec.undo_requested = true,
            Write::Status(status) => object.status = Some(*status),
            Write::Delete => {
                object.metadata.deletion_timestamp.get_or_insert(Time(now));
            }
        }
        let gone = object.metadata.deletion_timestamp.is_some() && object.finalizers().is_empty();
        if gone || self.current() != Some(&object) {
            self.store(Some(object).filter(|_| !gone));
        }
        Ok(self.newest())
    }

    fn store(&mut self, object: Option<PodNotification>) {
        let version = self.versions.len().to_string();
        let object = object.map(|mut object| {
            object.metadata.resource_version = Some(version);
            object
        });
        self.versions.push(object);
    }
}
