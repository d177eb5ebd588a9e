//! The objects of this world, of four kinds, and what a request does to one of them.

use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    application_snapshot::ApplicationSnapshotStatus,
    execution_hook::ExecutionHookStatus,
    pod_notification::PodNotificationStatus,
    words::{ABANDON_UNDO, CONSISTENCY, UNDO_NOW},
};
use boathook_decide::execution_hook::TakeBack;
use kube::core::ObjectMeta;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Notification,
    Hook,
    Snapshot,
    Volume,
}

/// A kind and a name.
pub(crate) type Key = (Kind, String);

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there are few, each behind an Rc")]
pub(crate) enum Object {
    Notification(PodNotification),
    Hook(ExecutionHook),
    Snapshot(ApplicationSnapshot),
    Volume(Volume),
}

/// A VolumeSnapshot with its content, as far as anybody here looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Volume {
    pub(crate) metadata: ObjectMeta,
    /// The storage has said that it was cut.
    pub(crate) cut: bool,
    pub(crate) error: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Status {
    Notification(Box<PodNotificationStatus>),
    Hook(Box<ExecutionHookStatus>),
    Snapshot(Box<ApplicationSnapshotStatus>),
}

/// A patch that looks at no version.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    TakeBack(TakeBack),
    Thaw,
    /// Of this one, not of another one of its name.
    Mark {
        uid: String,
        consistency: &'static str,
    },
}

impl Object {
    pub(crate) fn key(&self) -> Key {
        let kind = match self {
            Self::Notification(_) => Kind::Notification,
            Self::Hook(_) => Kind::Hook,
            Self::Snapshot(_) => Kind::Snapshot,
            Self::Volume(_) => Kind::Volume,
        };
        (kind, self.meta().name.clone().expect("every object has a name"))
    }

    pub(crate) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Notification(object) => &object.metadata,
            Self::Hook(object) => &object.metadata,
            Self::Snapshot(object) => &object.metadata,
            Self::Volume(object) => &object.metadata,
        }
    }

    pub(crate) fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Notification(object) => &mut object.metadata,
            Self::Hook(object) => &mut object.metadata,
            Self::Snapshot(object) => &mut object.metadata,
            Self::Volume(object) => &mut object.metadata,
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    pub(crate) fn finalizers(&self) -> &[String] {
        self.meta().finalizers.as_deref().unwrap_or_default()
    }

    pub(crate) fn annotate(&mut self, key: &str, value: &str) {
        self.meta_mut().annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    }

    pub(crate) fn set_status(&mut self, status: Status) {
        match (self, status) {
            (Self::Notification(object), Status::Notification(status)) => object.status = Some(*status),
            (Self::Hook(object), Status::Hook(status)) => object.status = Some(*status),
            (Self::Snapshot(object), Status::Snapshot(status)) => object.status = Some(*status),
            (object, status) => panic!("{:?} cannot have the status {status:?}", object.key()),
        }
    }

    pub(crate) fn change(&mut self, change: &Change) {
        match (self, change) {
            (object @ Self::Notification(_), Change::TakeBack(asked)) => {
                let TakeBack { child: _, undo_now, abandon, abandoned_by: _ } = asked;
                if let Some(now) = undo_now {
                    object.annotate(UNDO_NOW, now);
                }
                if *abandon {
                    object.annotate(ABANDON_UNDO, "true");
                }
                object.request_thaw();
            }
            (object @ Self::Hook(_), Change::Thaw) => object.request_thaw(),
            (object @ Self::Volume(_), Change::Mark { uid, consistency }) => {
                if object.meta().uid.as_ref() == Some(uid) {
                    object.annotate(CONSISTENCY, consistency);
                }
            }
            (object, change) => panic!("{:?} cannot be changed by {change:?}", object.key()),
        }
    }

    pub(crate) fn request_thaw(&mut self) {
        match self {
            Self::Notification(object) => object.spec.undo_requested = true,
            Self::Hook(object) => object.spec.thaw_requested = true,
            Self::Snapshot(_) | Self::Volume(_) => {}
        }
    }
}
