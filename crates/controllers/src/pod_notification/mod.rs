//! PodNotification: accepts every one, carries out those that are pinned to the API server, lets go of what is done.

mod act;
mod agent_waits;
mod observe;
mod triggers;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use boathook_actions::{ApiServer, Place};
use boathook_api::{ExecutionHook, Notification, PodNotification, pod_notification::Executor};
use boathook_decide::{
    Leadership,
    pod_notification::{
        Me, Observed, Role, SeenPod, awaits_agent, claimed_at, decide, decide_gone, owes_undo, recorded_moments,
        undo_due_at,
    },
};
use boathook_runtime::{
    Classified, Clock, Deadlines, ErrorClass, Lease, Metrics, Reconcile, Reporter,
    execution::{ApplyError, Latest, Limits, Rooms, Runs, apply_here},
};
use jiff::Timestamp;
use kube::{Client, ResourceExt, runtime::reflector::ObjectRef};
use snafu::Snafu;
use tokio::sync::mpsc;

pub use triggers::triggers;

use agent_waits::AgentWaits;

use crate::{notification, owner, until};

/// What a person may choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is to execute what is accepted now.
    pub executor: Executor,
    /// The feature gate `ContainerNotifier`.
    pub enabled: bool,
    pub limits: Limits,
}

/// What the controller is given.
pub struct Surroundings {
    pub client: Client,
    pub identity: String,
    pub lease: Lease,
    pub reporter: Reporter,
    pub metrics: Arc<Metrics>,
    /// Takes objects that are to be looked at again.
    pub look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    /// Takes Notifications of whose PodNotifications one has changed.
    pub parents: mpsc::UnboundedSender<ObjectRef<Notification>>,
    /// Likewise ExecutionHooks.
    pub hooks: mpsc::UnboundedSender<ObjectRef<ExecutionHook>>,
    pub clock: Clock,
}

/// The controller.
pub struct Controller {
    client: Client,
    identity: String,
    options: Options,
    lease: Lease,
    runs: Runs,
    rooms: Rooms,
    latest: Latest,
    reporter: Reporter,
    look_again: mpsc::UnboundedSender<ObjectRef<PodNotification>>,
    /// Notifications of whose PodNotifications one has changed.
    parents: mpsc::UnboundedSender<ObjectRef<Notification>>,
    hooks: mpsc::UnboundedSender<ObjectRef<ExecutionHook>>,
    deadlines: Deadlines<PodNotification>,
    agent_waits: AgentWaits,
    /// PodNotifications whose pods were told to end, until the controller has looked at them.
    in_ending_pods: Mutex<HashSet<ObjectRef<PodNotification>>>,
}

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(transparent)]
    Observe { source: observe::ObserveError },
    #[snafu(transparent)]
    Apply { source: ApplyError },
    #[snafu(display("the lease was lost before the handler started: the handler is not run"))]
    LeaseLost,
    #[snafu(display("the claim took longer than undo.afterSeconds: the handler is not run"))]
    TooLate,
}

impl Classified for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Observe { source } => source.class(),
            Self::Apply { source } => source.class(),
            Self::LeaseLost | Self::TooLate => ErrorClass::Transient,
        }
    }
}

impl Controller {
    pub fn new(options: Options, surroundings: Surroundings) -> Self {
        let Surroundings { client, identity, lease, reporter, metrics, look_again, parents, hooks, clock } =
            surroundings;
        let place = Place::Api(ApiServer::new(client.clone()));
        let rooms = Rooms::of_leader(options.limits, look_again.clone(), lease.clone());
        let runs = Runs::new(place, metrics, rooms.clone(), look_again.clone());
        let (latest, agent_waits, deadlines) =
            (Latest::default(), AgentWaits::new(clock.clone()), Deadlines::new(clock));
        let in_ending_pods = Mutex::default();
        Self {
            client,
            identity,
            options,
            lease,
            runs,
            rooms,
            latest,
            reporter,
            look_again,
            parents,
            hooks,
            deadlines,
            agent_waits,
            in_ending_pods,
        }
    }

    /// The pod was told to end: what is owed to it does not wait behind other objects.
    pub fn pod_is_ending(&self, object: &ObjectRef<PodNotification>) {
        self.in_ending_pods().insert(object.clone());
    }

    fn in_ending_pods(&self) -> std::sync::MutexGuard<'_, HashSet<ObjectRef<PodNotification>>> {
        // A set is whole between two changes, also when a panic came in between.
        self.in_ending_pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on nothing is started; what runs goes on, and sessions that are held are released.
    pub fn close(&self) {
        self.rooms.close();
        self.runs.let_go();
    }

    /// What runs in this process.
    pub fn runs(&self) -> Runs {
        self.runs.clone()
    }

    /// Nobody may listen any more: then everything ends.
    fn tell(&self, parent: Option<ObjectRef<Notification>>, hook: Option<ObjectRef<ExecutionHook>>) {
        if let Some(parent) = parent {
            let _ = self.parents.send(parent);
        }
        if let Some(hook) = hook {
            let _ = self.hooks.send(hook);
        }
    }

    /// The time for the deadlines of an object: they count from its claim, or before that from its creation.
    fn deadline_now(&self, object: &PodNotification, wall: Timestamp) -> Timestamp {
        let created = object.metadata.creation_timestamp.as_ref().map(|created| created.0);
        let moved = self.moved(object, wall);
        let late = claimed_at(object).or(created).and_then(|from| Some(from.duration_since(*moved.get(&from)?)));
        wall + late.unwrap_or_default()
    }

    fn moved(&self, object: &PodNotification, wall: Timestamp) -> BTreeMap<Timestamp, Timestamp> {
        self.deadlines.moved(&ObjectRef::from_obj(object), &recorded_moments(object), wall)
    }

    fn me(&self, leadership: Leadership) -> Me<'_> {
        let Options { executor, enabled, limits: _ } = self.options;
        Me { identity: &self.identity, role: Role::Controller { leadership, executor, enabled } }
    }
}

impl Reconcile<PodNotification> for Controller {
    type Error = Error;

    async fn reconcile(&self, seen: Arc<PodNotification>) -> Result<Option<Duration>, Error> {
        let again = self.look(&seen).await?;
        self.in_ending_pods().remove(&ObjectRef::from_obj(&*seen));
        Ok(again)
    }

    fn urgent_at(&self, object: &PodNotification) -> Option<Timestamp> {
        if owes_undo(object) && self.in_ending_pods().contains(&ObjectRef::from_obj(object)) {
            return Some(Timestamp::UNIX_EPOCH);
        }
        let (due, wall) = (undo_due_at(object)?, Timestamp::now());
        Some(wall + due.duration_since(self.deadline_now(object, wall)))
    }

    fn gone(&self, object: &ObjectRef<PodNotification>) {
        let parent = notification::parent_by_name(object);
        let hook = parent
            .as_ref()
            .map(|parent| ObjectRef::new(&parent.name).within(parent.namespace.as_deref().unwrap_or_default()));
        self.tell(parent, hook);
        self.latest.forget(object);
        self.deadlines.forget(object);
        self.agent_waits.forget(object);
        self.in_ending_pods().remove(object);
        self.rooms.leave(object);
        let Some(leadership) = self.lease.leadership() else { return };
        let me = self.me(leadership);
        for object in self.runs.begun_for(object) {
            let uid = object.uid().unwrap_or_default();
            let (run, undo) = self.runs.progress(&uid);
            let observed = Observed {
                object: &object,
                me,
                pod: SeenPod::Unknown,
                run,
                undo,
                sessions: self.runs.sessions(&uid),
                expires: None,
                moved: BTreeMap::new(),
                agent_due_since: None,
                room: false,
                author_checked: true,
                undecided: vec![],
            };
            let now = Timestamp::now();
            let decision = decide_gone(&observed, now);
            for effect in decision.effects {
                apply_here(&self.runs, &object, effect);
            }
            // No watch tells of it any more, and the run loop has nothing to look at.
            if let Some(again) = decision.again {
                let (look_again, reference) = (self.look_again.clone(), ObjectRef::from_obj(&object));
                tokio::spawn(async move {
                    tokio::time::sleep(until(again, now)).await;
                    let _ = look_again.send(reference);
                });
            }
        }
    }
}

impl Controller {
    async fn look(&self, seen: &PodNotification) -> Result<Option<Duration>, Error> {
        self.tell(owner::of(seen), owner::of(seen));
        // Also by a process that does not lead: it may be the next leader.
        self.moved(seen, Timestamp::now());
        // A process that has never led leaves the object to the leader.
        let Some(leadership) = self.lease.leadership() else { return Ok(None) };
        let me = self.me(leadership);
        let mut seen = observe::observe(self, me, self.latest.of(seen)).await?;
        let wall = Timestamp::now();
        let deadline_now = self.deadline_now(&seen.object, wall);
        // What runs for a claimed object is dated by the wall clock, so only the moments that it records are moved.
        let now = if claimed_at(&seen.object).is_some() { wall } else { deadline_now };
        let moved = self.moved(&seen.object, wall);
        let mut observed = Observed {
            object: &seen.object,
            me,
            pod: seen.pod,
            run: seen.run,
            undo: seen.undo,
            sessions: seen.sessions,
            expires: None,
            moved,
            agent_due_since: None,
            room: seen.room.is_some(),
            author_checked: seen.author_checked,
            undecided: seen.undecided,
        };
        let is_awaited = awaits_agent(&observed, now);
        observed.agent_due_since = self.agent_waits.since(&ObjectRef::from_obj(&seen.object), is_awaited, wall);
        let decision = decide(&observed, now);
        act::act(self, &mut seen.object, decision.effects, &mut seen.room).await?;
        self.reporter.report(&seen.object, decision.reports);
        Ok(decision.again.map(|again| until(again, now)))
    }
}

#[cfg(test)]
mod tests;
