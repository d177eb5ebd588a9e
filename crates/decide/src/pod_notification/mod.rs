//! PodNotification: accepted, claimed, carried out once, completed; and, if it has an undo, undone.
//!
//! Controller and agent share this. The controller accepts every object and pins who executes it; that one claims it,
//! runs it and undoes it; the controller takes finalizers away and deletes what has outlived its time.
//!
//! Why a handler cannot run twice: it is started only by the effect that follows a successful write of the claim, a
//! claim is written against the version that was looked at, and an object that is found claimed by anyone else ends as
//! `OutcomeUnknown`. Why an undo cannot be lost: what is undone is in the same write as the claim, and the object is
//! held by a finalizer until the undo is known to be done.

mod accept;
mod ending;
mod errors;
mod execute;
mod held;
mod last_round;
mod overdue;
mod refuse;
mod resolve;
mod rounds;
mod tidy;
mod undo;

pub use held::{Session, Sessions};
pub use resolve::undo_work;

use std::collections::{BTreeMap, BTreeSet};

use boathook_api::{
    ApplicationSnapshot, Declarations, ExecutionHook, PodNotification,
    outcome::{Ended, Failure, UndoWork, Work},
    pod_notification::{Executor, PodNotificationStatus, State},
    words::{ABANDON_UNDO, UNDO_FINALIZER, UNDO_NOW, condition},
};
use jiff::{SignedDuration, Timestamp};
use kube::{Resource, ResourceExt};

use crate::{Leadership, succeeded};

/// How long an agent that has claimed may be silent about a pod that is gone, before the controller calls its outcome
/// unknown: longer than it takes to restart an agent.
const SILENCE: SignedDuration = SignedDuration::from_secs(120);

/// How soon to look again when nobody could say how the pod is.
const SOON: SignedDuration = SignedDuration::from_secs(1);

/// How often the controller looks whether the pod of what an agent has claimed is still there.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// What one look found.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    pub object: &'a PodNotification,
    pub me: Me<'a>,
    pub pod: SeenPod,
    /// The handlers' run in this process.
    pub run: Progress,
    /// The undo's run in this process.
    pub undo: Progress,
    /// The sessions that its handlers hold in this process.
    pub sessions: Sessions,
    /// When the undo runs by itself, by this process' own clock. Absent: it is reckoned from the claim.
    pub expires: Option<Timestamp>,
    /// Of the [`recorded_moments`], those that this process saw longer ago than the wall clock says, and where they are on
    /// the wall clock of now. Deadlines count from there.
    pub moved: BTreeMap<Timestamp, Timestamp>,
    /// Since when this process has seen that [`awaits_agent`] holds, by the wall clock of now.
    pub agent_due_since: Option<Timestamp>,
    /// Whether one more handler may run on that node and in that namespace.
    pub room: bool,
    /// Whether the rights of whoever wrote an inline action were checked when it was written.
    pub author_checked: bool,
    /// Snapshots without a verdict that may freeze its pod; only while it is not accepted.
    pub undecided: Vec<ApplicationSnapshot>,
}

/// What this process is.
#[derive(Clone, Copy, Debug)]
pub struct Me<'a> {
    /// A name that no other process has, and no later one.
    pub identity: &'a str,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Controller {
        leadership: Leadership,
        /// Who is to execute what is accepted now.
        executor: Executor,
        /// The feature gate `ContainerNotifier`. Hooks run whether it is on or off.
        enabled: bool,
    },
    Agent,
}

impl Role {
    fn is_thaw_only(self) -> bool {
        matches!(self, Self::Controller { leadership: Leadership::ThawOnly, .. })
    }
}

/// The pod, as the API server has it (controller) or the node's runtime (agent).
#[derive(Clone, Debug, PartialEq)]
pub enum SeenPod {
    /// It was not looked at, or whoever knows could not be reached.
    Unknown,
    /// There is none, or only another one under its name.
    Gone {
        /// Whether the node that it ran on is Ready: then nothing of it is left there.
        node_ready: bool,
    },
    There(Pod),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub uid: String,
    pub node: Option<String>,
    /// It has Succeeded or Failed: its containers never run again.
    pub over: bool,
    /// It was told to end: deleted, drained, replaced. Only the API server knows, so an agent never sees it.
    pub ending: bool,
    /// Those that can run actions: ordinary ones and sidecars.
    pub containers: Vec<String>,
    /// What its author declared, or why that cannot be used.
    pub declared: Result<Declarations, Failure>,
}

/// A run of actions in this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Progress {
    /// None was started.
    #[default]
    Idle,
    Running,
    Ended {
        results: Vec<(String, Ended)>,
        /// Which round it was, from 1.
        round: u32,
    },
}

/// What to do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Replaces the status of a snapshot in the version that was looked at, or fails.
    RecordOn(Box<ApplicationSnapshot>),
    AddFinalizer,
    RemoveFinalizer,
    /// Sets `undoRequested` in the version that was looked at, or fails. Every executor obeys it.
    RequestUndo,
    /// Replaces the status of the version that was looked at, or fails.
    WriteStatus(Box<PodNotificationStatus>),
    /// Runs the handlers, all at once. Only ever after the `WriteStatus` that claims. What will undo them is kept
    /// first by whoever has a place for it that needs no API server.
    Start(Vec<(String, Work)>),
    /// Ends the handlers that run. The run then ends by itself.
    Cancel,
    /// No further attempt of the handlers is begun. What runs of them cannot be ended, and is waited for.
    BeginNoMore,
    /// Runs the undos, all at once, unless they run already. Sessions that are held here are released first.
    StartUndo(Vec<(String, UndoWork)>),
    /// How the handlers ended is written down, or does not matter any more.
    ForgetRun,
    /// Likewise the undo, and with it the sessions.
    ForgetUndo,
    /// The object has outlived its time.
    Delete,
}

/// What to do about the object.
pub type Decision = crate::Decision<Effect>;

/// Looks at one object at one moment.
pub fn decide(observed: &Observed<'_>, now: Timestamp) -> Decision {
    let object = Object::of(observed.object);
    if let Some(asked) = ending::ask_for_undo(observed, &object) {
        return asked;
    }
    let decision = match (object.status.state.is_terminal(), &object.status.claim, object.status.executor) {
        (true, _, _) => undo::decide(observed, &object, now),
        (false, Some(_), _) => execute::claimed(observed, &object, now),
        (false, None, Some(executor)) => accept::accepted(observed, &object, executor, now),
        (false, None, None) => accept::fresh(observed, &object, now),
    };
    let decision = overdue::report(observed, &object, decision, now);
    let mut decision = held::say(observed, &object, decision, now);
    for effect in &mut decision.effects {
        if let Effect::WriteStatus(status) = effect {
            let word = succeeded::of_pod_notification(status);
            succeeded::set(&mut status.conditions, word, observed.object.metadata.generation, now);
        }
    }
    decision
}

/// Whether an agent is to run the undo of this object now, and has not reported the end of a round.
pub fn awaits_agent(observed: &Observed<'_>, now: Timestamp) -> bool {
    overdue::is_awaited(observed, &Object::of(observed.object), now)
}

/// Looks at an object that is gone while something that was begun for it in this process is not: `observed.object` is
/// what this process knew of it last. Nothing is written; what returns late is undone, and everything is forgotten.
pub fn decide_gone(observed: &Observed<'_>, now: Timestamp) -> Decision {
    tidy::gone(observed, &Object::of(observed.object), now)
}

/// Whether the decision depends on the pod, so that it must be looked at, live.
pub fn needs_pod(object: &PodNotification, me: Me<'_>, run: &Progress, undo: &Progress) -> bool {
    let object = Object::of(object);
    match object.status.state.is_terminal() {
        true => object.owes_undo() || *undo != Progress::Idle || last_round::holds(&object),
        // A running handler finds out by itself that its pod is gone, but not that it is to end.
        false => match run {
            // There is no pod of an invalid name.
            Progress::Idle => object.object.spec.validate().is_ok(),
            Progress::Running => !object.is_mine(me) || ending::matters_to_handlers(&object, me),
            Progress::Ended { .. } => !object.is_mine(me),
        },
    }
}

/// Whether handlers may still be started, asked at the last moment: the writes before may have taken longer than the
/// undo waits.
pub fn may_start(object: &PodNotification, now: Timestamp) -> bool {
    expires(object).is_none_or(|expires| now < expires)
}

/// When the undo runs by itself, by the clock of the process that claimed.
pub fn expires(object: &PodNotification) -> Option<Timestamp> {
    let after = object.spec.undo.as_ref()?.after_seconds?;
    Some(claimed_at(object)? + SignedDuration::from_secs(after.into()))
}

/// The moments, by the clocks of the processes that recorded them, from which deadlines of this object count.
pub fn recorded_moments(object: &PodNotification) -> BTreeSet<Timestamp> {
    let created = object.metadata.creation_timestamp.as_ref().map(|created| created.0);
    let status = object.status.as_ref();
    let completed = status.and_then(|status| status.complete_time.as_ref());
    // Of an undo that fails, the end of each round is another moment, from which nothing counts.
    let records =
        status.filter(|status| errors::undo_succeeded(status)).into_iter().flat_map(|status| &status.containers);
    let undone = records.filter_map(|record| record.undo.as_ref()?.complete_time.as_ref());
    undone.chain(completed).map(|time| time.0).chain(claimed_at(object)).chain(created).collect()
}

/// When it was claimed, by the clock of the process that claimed.
pub fn claimed_at(object: &PodNotification) -> Option<Timestamp> {
    Some(object.status.as_ref()?.claim.as_ref()?.time.0)
}

/// Whether a handler may have run that is not known to be taken back.
pub fn owes_undo(object: &PodNotification) -> bool {
    Object::of(object).owes_undo()
}

/// Whether its finalizer keeps an undo from being lost: one is owed, may be owed as soon as an executor claims the object, or
/// is to run once more; and no user gave it up.
pub fn needs_finalizer(object: &PodNotification) -> bool {
    let object = Object::of(object);
    let may_be_claimed = object.status.executor.is_some() && !object.status.state.is_terminal();
    let waits = object.object.spec.undo.is_some() && may_be_claimed;
    !object.is_abandoned() && (waits || object.owes_undo() || last_round::due(&object).is_some())
}

/// From when on an undo that is owed is due; the epoch: at once, whatever the wall clock says. The executor's own clock may
/// say earlier.
pub fn undo_due_at(object: &PodNotification) -> Option<Timestamp> {
    let undo = object.spec.undo.as_ref()?;
    let claimed = object.status.as_ref()?.claim.as_ref()?.time.0;
    let object = Object::of(object);
    if !object.owes_undo() {
        return None;
    }
    match object.is_revoked() || object.status.state == State::Failed {
        true => Some(Timestamp::UNIX_EPOCH),
        false => Some(claimed + SignedDuration::from_secs(undo.after_seconds?.into())),
    }
}

/// Whether a change of its pod may change what is decided about it.
pub fn depends_on_pod(object: &PodNotification) -> bool {
    let object = Object::of(object);
    !object.status.state.is_terminal() || object.owes_undo() || last_round::holds(&object)
}

/// When it is undone once more, because its handler may have outlived its undo; nothing if that is not to come. By the
/// clocks of the processes that recorded how it ended.
pub fn last_round(object: &PodNotification) -> Option<Timestamp> {
    last_round_at(object, &BTreeMap::new())
}

/// How its last round failed, if it did.
pub fn last_round_failure(object: &PodNotification) -> Option<&str> {
    last_round(object)?;
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    let mut messages = conditions.filter(|one| one.type_ == condition::UNDONE).map(|one| one.message.as_str());
    messages.find(|message| message.starts_with(last_round::FAILED_ONCE_MORE))
}

/// Whether its last round may run by now. If it counts from a moment in the future, the clock that recorded it was stepped
/// back or is another one, and its executor may count by a clock of its own.
pub fn last_round_may_run(object: &PodNotification, now: Timestamp) -> bool {
    last_round::due(&Object::of(object)).is_some_and(|due| now < due.from || due.recorded() <= now)
}

/// The same as [`last_round`], with these moments moved as in [`Observed`].
pub fn last_round_at(object: &PodNotification, moved: &BTreeMap<Timestamp, Timestamp>) -> Option<Timestamp> {
    last_round::due(&Object::of(object)).map(|due| due.here(moved))
}

/// Whether its undo is done, or nobody can do it any more, as far as whoever sees its node can tell.
pub fn is_closed(object: &PodNotification) -> bool {
    object.status.as_ref().is_some_and(errors::undone) && !is_unconfirmed(object)
}

/// Whether it was given up because nobody heard of its node: whoever is there has to undo it all the same.
pub fn is_unconfirmed(object: &PodNotification) -> bool {
    object.status.as_ref().is_some_and(errors::unconfirmed)
}

/// An object, with what is asked of it again and again.
struct Object<'a> {
    object: &'a PodNotification,
    status: PodNotificationStatus,
}

impl<'a> Object<'a> {
    fn of(object: &'a PodNotification) -> Self {
        Self { object, status: object.status.clone().unwrap_or_default() }
    }

    fn generation(&self) -> Option<i64> {
        self.object.metadata.generation
    }

    /// Made by an ExecutionHook: hooks, and so snapshots, are not subject to the feature gate.
    fn is_of_hook(&self) -> bool {
        let owners = self.object.owner_references();
        let kind = ExecutionHook::kind(&());
        owners.iter().any(|owner| owner.controller == Some(true) && owner.kind == kind)
    }

    fn has_finalizer(&self) -> bool {
        self.object.finalizers().iter().any(|finalizer| finalizer == UNDO_FINALIZER)
    }

    fn is_deleted(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Nothing may start any more; what was started is to be taken back.
    fn is_revoked(&self) -> bool {
        self.object.spec.undo_requested || self.is_deleted()
    }

    fn is_abandoned(&self) -> bool {
        self.object.annotations().get(ABANDON_UNDO).is_some_and(|value| value == "true")
    }

    /// When a person last asked not to wait for the next round of the undo.
    fn undo_now(&self) -> Option<Timestamp> {
        self.object.annotations().get(UNDO_NOW)?.parse().ok()
    }

    /// The question of the undo was closed without one.
    fn is_given_up(&self) -> bool {
        self.is_abandoned() || errors::undone(&self.status) && !errors::undo_succeeded(&self.status)
    }

    fn is_mine(&self, me: Me<'_>) -> bool {
        self.status.claim.as_ref().is_some_and(|claim| claim.holder == me.identity)
    }

    /// Not claimed by then: it never runs.
    fn start_deadline(&self) -> Option<Timestamp> {
        let created = self.object.metadata.creation_timestamp.as_ref()?.0;
        Some(created + SignedDuration::from_secs(self.object.spec.start_deadline_seconds.into()))
    }

    /// A handler may have run, and nobody has said yet that it was taken back.
    fn owes_undo(&self) -> bool {
        self.object.spec.undo.is_some() && self.status.claim.is_some() && !errors::undone(&self.status)
    }

    /// When the undo runs by itself.
    fn expires(&self, observed: &Observed<'_>) -> Option<Timestamp> {
        let after = self.object.spec.undo.as_ref()?.after_seconds?;
        let by_claim = Due { from: claimed_at(self.object)?, after: SignedDuration::from_secs(after.into()) };
        Some(observed.expires.unwrap_or_else(|| by_claim.here(&observed.moved)))
    }
}

/// A deadline that counts from a moment recorded in the object.
#[derive(Clone, Copy, Debug)]
struct Due {
    from: Timestamp,
    after: SignedDuration,
}

impl Due {
    /// By the clock of the process that recorded the moment.
    fn recorded(self) -> Timestamp {
        self.from + self.after
    }

    /// By the clock of this process.
    fn here(self, moved: &BTreeMap<Timestamp, Timestamp>) -> Timestamp {
        moved.get(&self.from).copied().unwrap_or(self.from) + self.after
    }
}

/// The earlier of two moments, where there are any.
fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
