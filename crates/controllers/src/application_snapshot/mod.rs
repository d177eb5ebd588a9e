//! ApplicationSnapshot: hooks one after the other, the cut of every claim at once, the thaw in reverse.

mod act;
mod claims;
mod classes;
mod observe;
mod snapshots;
mod triggers;
mod turns;

use std::{sync::Arc, time::Duration};

use boathook_api::{ApplicationSnapshot, ExecutionHook, application_snapshot::Phase, volume_snapshot::VolumeSnapshot};
use boathook_decide::application_snapshot::decide;
use boathook_runtime::{Classified, Deadlines, ErrorClass, Lease, Reconcile, Reporter, lenient::Lenient};
use jiff::Timestamp;
use kube::{
    Client, ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use snafu::Snafu;
use tokio::sync::mpsc;

pub(crate) use claims::mounting;
pub use claims::{ClaimsError, attached_volumes, claims_and_pods, look_at_claims, used};
pub use classes::missing_class;
pub use observe::{ObserveError, before};
pub(crate) use triggers::going_by;
pub use triggers::{triggers, watch_snapshots};

use turns::Turns;

use crate::{refusals::Refusals, until, writes::WriteError};

/// What the controller is given.
pub struct Surroundings {
    pub client: Client,
    pub identity: String,
    pub lease: Lease,
    pub reporter: Reporter,
    /// Those of all namespaces.
    pub all: Store<Lenient<ApplicationSnapshot>>,
    pub hooks: Store<Lenient<ExecutionHook>>,
    pub snapshots: Store<Lenient<VolumeSnapshot>>,
    /// Takes objects that are to be looked at again.
    pub look_again: mpsc::UnboundedSender<ObjectRef<ApplicationSnapshot>>,
    pub deadlines: Deadlines<ApplicationSnapshot>,
}

/// The controller.
pub struct Controller {
    surroundings: Surroundings,
    /// Whose turn it is to begin one.
    turns: Turns,
    /// The hooks and VolumeSnapshots that the API server refused to create.
    refusals: Refusals,
}

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(transparent)]
    Observe { source: observe::ObserveError },
    #[snafu(transparent)]
    Write { source: WriteError },
    #[snafu(display("the lease was lost: the new leader continues"))]
    LeaseLost,
}

impl Classified for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Observe { source } => source.class(),
            Self::Write { source } => source.class(),
            Self::LeaseLost => ErrorClass::Transient,
        }
    }
}

impl Controller {
    pub fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, turns: Turns::default(), refusals: Refusals::default() }
    }

    /// The time for the deadlines of a snapshot: each counts from the creation or from the start of a phase.
    fn deadline_now(&self, object: &ApplicationSnapshot, wall: Timestamp) -> Timestamp {
        let created = object.metadata.creation_timestamp.as_ref().map(|created| created.0);
        let status = object.status.as_ref();
        let phases =
            status.into_iter().flat_map(|status| [&status.start_time, &status.cut_time, &status.complete_time]);
        let begun = phases.flatten().map(|time| time.0).max();
        match begun.or(created) {
            Some(recorded) => self.surroundings.deadlines.now(&ObjectRef::from_obj(object), recorded, wall),
            None => wall,
        }
    }

    /// Those that wait may go on.
    fn wake(&self, namespace: Option<&str>) {
        self.look_again_at(namespace, is_pending);
    }

    fn look_again_at(&self, namespace: Option<&str>, is_meant: impl Fn(&ApplicationSnapshot) -> bool) {
        let all = self.surroundings.all.state();
        let readable = all.iter().filter_map(|object| object.0.as_ref().ok());
        for object in readable.filter(|object| object.namespace().as_deref() == namespace && is_meant(object)) {
            // Nobody listens any more: everything ends.
            let _ = self.surroundings.look_again.send(ObjectRef::from_obj(object));
        }
    }

    /// Those that share a freeze with it go by what it says.
    fn tell_sharers(&self, object: &ApplicationSnapshot) {
        let namespace = object.namespace().unwrap_or_default();
        let sharers = object.status.iter().flat_map(|status| status.followers.iter().chain(&status.shares_freeze_of));
        for sharer in sharers {
            // Nobody listens any more: everything ends.
            let _ = self.surroundings.look_again.send(ObjectRef::new(&sharer.name).within(&namespace));
        }
    }

    async fn look(&self, object: &ApplicationSnapshot) -> Result<Option<Duration>, Error> {
        let Surroundings { lease, reporter, .. } = &self.surroundings;
        // Never led: whoever does looks after it.
        let Some(leadership) = lease.leadership() else { return Ok(None) };
        let observed = observe::observe(self, leadership, object).await?;
        let now = self.deadline_now(object, Timestamp::now());
        let decision = decide(&observed, now);
        let look_again = act::act(self, object, decision.effects).await?;
        reporter.report(object, decision.reports);
        match look_again {
            true => Ok(Some(Duration::ZERO)),
            false => Ok(decision.again.map(|again| until(again, now))),
        }
    }
}

impl Reconcile<ApplicationSnapshot> for Controller {
    type Error = Error;

    async fn reconcile(&self, object: Arc<ApplicationSnapshot>) -> Result<Option<Duration>, Error> {
        if !is_pending(&object) {
            let over = object.status.as_ref().is_some_and(|status| status.phase.is_terminal());
            if over {
                self.wake(object.namespace().as_deref());
            }
            return self.look(&object).await;
        }
        let Some(_nobody_else_begins) = self.turns.take(&object, &self.surroundings.look_again) else {
            return Ok(None);
        };
        self.look(&object).await
    }

    /// A snapshot with something frozen does not wait behind those that are to begin.
    fn urgent_at(&self, object: &ApplicationSnapshot) -> Option<Timestamp> {
        let phase = object.status.as_ref().map(|status| status.phase).unwrap_or_default();
        matches!(phase, Phase::Cutting | Phase::Thawing).then_some(Timestamp::UNIX_EPOCH)
    }

    fn gone(&self, object: &ObjectRef<ApplicationSnapshot>) {
        self.surroundings.deadlines.forget(object);
        let shares = |other: &ApplicationSnapshot| {
            let first = other.status.as_ref().and_then(|status| status.shares_freeze_of.as_ref());
            first.is_some_and(|first| first.name == object.name)
        };
        self.look_again_at(object.namespace.as_deref(), |other| is_pending(other) || shares(other));
    }
}

fn is_pending(object: &ApplicationSnapshot) -> bool {
    object.status.as_ref().is_none_or(|status| status.phase == Phase::Pending)
}
