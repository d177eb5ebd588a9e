//! ApplicationSnapshot: the hooks one after the other, the cut of every claim at once, the thaw in reverse.
//!
//! Each phase is written before anything of it is done, so after a crash the object says what to go on with. Nothing is
//! thawed from here but by asking hooks for it; whatever happens here, they take themselves back when their time is over.

mod accept;
mod coverage;
mod cut;
mod end;
mod freeze;
mod hooks;
mod leaving;
mod made;
mod other_notifications;
mod sharing;
mod verdict;

use std::collections::BTreeMap;

use boathook_api::{
    ApplicationSnapshot, ExecutionHook, PodNotification,
    application_snapshot::{ApplicationSnapshotStatus, Consistency, Phase, SnapshotFailure},
    volume_snapshot::VolumeSnapshot,
    words::{ABANDON_UNDO, THAW_FINALIZER},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;

pub use accept::{Plan, PlannedHook, plan};
pub use coverage::covers;
pub use hooks::awaits_end_of;
pub use made::{hook, hook_name, intent_name, snapshot_name};
pub use other_notifications::{Present, is_undecided, may_freeze, with_other};

use crate::{Leadership, execution_hook::Refusal, maker, succeeded};

/// What one look found.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    pub object: &'a ApplicationSnapshot,
    /// This process: a name that no other has, and no later one.
    pub identity: &'a str,
    pub leadership: Leadership,
    /// What is needed to accept it; absent if it is accepted.
    pub surroundings: Option<Surroundings>,
    /// The VolumeSnapshots that it is about: those that are not here do not exist.
    pub snapshots: Vec<SeenSnapshot>,
    /// Why the API server refused to create one of those, or one of its hooks, if it did.
    pub refused: Option<String>,
    /// What has the name of a hook of its own, whoever made it: those that are not here do not exist. Looked at after the
    /// snapshots.
    pub hooks: Vec<ExecutionHook>,
    /// Other ones. While it is Pending: those under way with a claim of its own; then: the one whose freeze it shares, or
    /// those that share its own. Looked at after the snapshots.
    pub others: Vec<ApplicationSnapshot>,
    /// Only while it freezes and none of its own hooks is there.
    pub present: Option<Present>,
    /// Only when every snapshot has been cut: what else decides how good it is. Looked at after the snapshots.
    pub at_the_cut: Option<AtTheCut>,
}

/// What an ApplicationSnapshot that nobody has accepted is to be done with.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The claims that its source means.
    pub claims: Vec<Claim>,
    /// The templates that its hooks name and that are not there.
    pub missing_templates: Vec<String>,
    /// Why the storage could not cut: the snapshot class does not exist.
    pub missing_class: Option<String>,
    /// Another snapshot that is under way, or came first, and shares a claim with this one.
    pub before: Option<String>,
    /// The webhooks were asked whether its author may create hooks.
    pub author_checked: bool,
}

/// A claim, and who uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: String,
    /// By these others select it.
    pub labels: BTreeMap<String, String>,
    /// A VolumeAttachment says so. At the cut it is looked at only if there are no hooks.
    pub attached: bool,
    /// The pods that mount it, are on a node and have not ended.
    pub pods: Vec<User>,
    /// Those that mount it, were on a node and have ended.
    pub ended: Vec<User>,
}

/// A pod that mounts a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    /// A hook with a selector selects it by these.
    pub labels: BTreeMap<String, String>,
    /// By the API server's clock, in whole seconds.
    pub created: Option<Timestamp>,
    /// In the phase Running.
    pub running: bool,
    /// Those that mount it.
    pub containers: Vec<String>,
}

/// A VolumeSnapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenSnapshot {
    pub name: String,
    pub uid: String,
    /// This object made it; or, when somebody else was to, it is the one that was meant.
    pub ours: bool,
    pub deleted: bool,
    /// It, or its content, has a creation time.
    pub cut: bool,
    /// What the storage says of it, if that is final.
    pub error: Option<String>,
    /// What its own status says: it may be transient, so it ends nothing, but a message quotes it.
    pub last_error: Option<String>,
    /// What is written on it of its consistency.
    pub consistency: Option<String>,
}

/// How things are after every snapshot has been seen cut.
#[derive(Clone, Debug, Default)]
pub struct AtTheCut {
    /// The PodNotifications of the hooks, and every other one in the same pods.
    pub notifications: Vec<PodNotification>,
    /// There are more of them than were looked at.
    pub and_more: bool,
    /// The containers that run now, of the pods that are frozen: UID of the pod, name, ID.
    pub containers: Vec<(String, String, String)>,
    pub claims: Vec<Claim>,
}

/// What to do, in this order; whether this process still leads is asked again before each.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    AddFinalizer,
    RemoveFinalizer,
    /// Replaces the status of the version that was looked at, or fails.
    WriteStatus(Box<ApplicationSnapshotStatus>),
    /// Replaces the status of another one, whose freeze this one shares, in the version that was looked at, or fails.
    Follow(Box<ApplicationSnapshot>),
    /// One of its name that is there already is looked at.
    CreateHook(Box<ExecutionHook>),
    ThawHook(String),
    DeleteHook {
        name: String,
        uid: String,
    },
    /// One that is there already is as good; what the API server refuses is observed at the next look.
    CreateSnapshot(Box<VolumeSnapshot>),
    DeleteSnapshot {
        name: String,
        uid: String,
    },
    /// Makes this its owner: the object goes when that goes.
    SetOwner(Box<OwnerReference>),
    /// Writes the hooks' names and the consistency on it, and on no other one of its name.
    MarkSnapshot {
        name: String,
        uid: String,
        hooks: Vec<String>,
        consistency: Consistency,
    },
    /// The object has outlived its time.
    Delete,
}

pub type Decision = crate::Decision<Effect>;

/// Looks at one object at one moment.
pub fn decide(observed: &Observed<'_>, now: Timestamp) -> Decision {
    if observed.leadership != Leadership::Leader {
        // What was begun takes itself back, by its executors.
        return Decision::default();
    }
    let status = observed.object.status.clone().unwrap_or_default();
    let mut decision = match status.phase {
        Phase::Pending => accept::decide(observed, status, now),
        Phase::Freezing => freeze::decide(observed, status, now),
        Phase::Cutting => cut::decide(observed, status, now),
        Phase::Thawing => end::thaw(observed, status, now),
        Phase::ThawFailed | Phase::Complete | Phase::Failed => end::tidy(observed, status, now),
    };
    for effect in &mut decision.effects {
        if let Effect::WriteStatus(status) = effect {
            let word = succeeded::of_application_snapshot(&observed.object.spec, status);
            succeeded::set(&mut status.conditions, word, observed.object.metadata.generation, now);
        }
    }
    decision
}

fn has_finalizer(object: &ApplicationSnapshot) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == THAW_FINALIZER)
}

/// Whether its finalizer keeps its hooks from being forgotten: they may have frozen something, and are not known to have
/// thawed it; and no user gave that up.
pub fn needs_finalizer(object: &ApplicationSnapshot) -> bool {
    let is_under_way = |status: &ApplicationSnapshotStatus| match status.phase {
        Phase::Freezing | Phase::Cutting | Phase::Thawing => !status.hooks.is_empty(),
        Phase::Pending | Phase::ThawFailed | Phase::Complete | Phase::Failed => false,
    };
    let is_abandoned = object.annotations().get(ABANDON_UNDO).is_some_and(|value| value == "true");
    object.status.as_ref().is_some_and(is_under_way) && !is_abandoned
}

fn is_deleted(object: &ApplicationSnapshot) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Somebody else makes the VolumeSnapshot: it is waited for.
fn is_made_by_others(object: &ApplicationSnapshot) -> bool {
    object.spec.source.volume_snapshot_name.is_some()
}

fn failure(reason: &str, message: impl Into<String>) -> SnapshotFailure {
    SnapshotFailure { reason: reason.to_owned(), message: message.into() }
}

impl From<Refusal> for SnapshotFailure {
    fn from(Refusal { reason, message }: Refusal) -> Self {
        failure(reason, message)
    }
}

impl Observed<'_> {
    /// The hook of this name, if it was made for this object or for the one whose freeze this one shares.
    fn hook(&self, name: &str) -> Option<&ExecutionHook> {
        self.own_hooks().find(|hook| hook.name_any() == name)
    }

    fn own_hooks(&self) -> impl Iterator<Item = &ExecutionHook> {
        let status = self.object.status.as_ref();
        let first = status.and_then(|status| status.shares_freeze_of.as_ref()).map(|first| &first.uid);
        let maker = first.or(self.object.metadata.uid.as_ref());
        self.hooks.iter().filter(move |hook| maker::is_made_for(*hook, maker) || hooks::is_orphan(self, hook))
    }

    fn snapshot(&self, name: &str) -> Option<&SeenSnapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.name == name)
    }
}

/// Whether its hooks are to be carried out.
pub fn is_freezing(object: &ApplicationSnapshot) -> bool {
    !is_deleted(object) && object.status.as_ref().is_some_and(|status| status.phase == Phase::Freezing)
}
