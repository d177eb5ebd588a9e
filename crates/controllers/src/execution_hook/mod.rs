//! ExecutionHook: one PodNotification for each pod that it selects, with the PostAction as its undo.

mod act;
mod begun;
mod observe;

use std::{sync::Arc, time::Duration};

use boathook_api::{ApplicationSnapshot, ExecutionHook, PodNotification};
use boathook_decide::{
    execution_hook::{Observed, decide, is_settled, is_thawing},
    pod_notification::claimed_at,
};
use boathook_runtime::{Classified, Deadlines, ErrorClass, Lease, Reconcile, Reporter, lenient::Lenient};
use jiff::Timestamp;
use kube::{
    Client,
    runtime::reflector::{ObjectRef, Store},
};
use snafu::Snafu;
use tokio::sync::mpsc;

pub use begun::Begun;
pub use observe::{look_at, select};

use crate::{application_snapshot, owner, refusals::Refusals, until, writes::WriteError};

/// The controller.
pub struct Controller {
    pub client: Client,
    pub identity: String,
    pub lease: Lease,
    /// The PodNotifications of all namespaces.
    pub children: Store<Lenient<PodNotification>>,
    /// The ApplicationSnapshots of all namespaces.
    pub snapshots: Store<Lenient<ApplicationSnapshot>>,
    pub reporter: Reporter,
    /// Takes ApplicationSnapshots of whose hooks one has changed.
    pub parents: mpsc::UnboundedSender<ObjectRef<ApplicationSnapshot>>,
    /// The PodNotifications that the API server refused to create.
    pub refusals: Refusals,
    pub deadlines: Deadlines<ExecutionHook>,
    pub begun: Begun,
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
    /// The time for the expiry of a hook, which counts from the first claim of its PodNotifications.
    fn deadline_now(&self, object: &ExecutionHook, children: &[PodNotification], wall: Timestamp) -> Timestamp {
        match children.iter().filter_map(claimed_at).min() {
            Some(recorded) => self.deadlines.now(&ObjectRef::from_obj(object), recorded, wall),
            None => wall,
        }
    }

    fn tell(&self, parent: Option<ObjectRef<ApplicationSnapshot>>) {
        if let Some(parent) = parent {
            // Nobody listens any more: everything ends.
            let _ = self.parents.send(parent);
        }
    }
}

impl Reconcile<ExecutionHook> for Controller {
    type Error = Error;

    async fn reconcile(&self, object: Arc<ExecutionHook>) -> Result<Option<Duration>, Error> {
        self.tell(owner::of(&*object));
        // Never led: whoever does looks after it.
        let Some(leadership) = self.lease.leadership() else { return Ok(None) };
        if is_settled(&object, observe::known_children(self, &object)) {
            return Ok(None);
        }
        let mut object = (*object).clone();
        if observe::is_late(self, &object).await? {
            // As if it had been asked to thaw: whoever made it was late.
            object.spec.thaw_requested = true;
        }
        let (surroundings, children) = observe::observe(self, &object).await?;
        let is_awaited = observe::is_awaited(self, &object).await?;
        let begun = self.begun.note(&object, &children);
        let now = self.deadline_now(&object, &children, Timestamp::now());
        let (identity, refused) = (self.identity.as_str(), self.refusals.of(&object));
        let observed =
            Observed { object: &object, identity, leadership, surroundings, children, refused, is_awaited, begun };
        let decision = decide(&observed, now);
        let look_again = act::act(self, &object, decision.effects).await?;
        self.reporter.report(&object, decision.reports);
        match look_again {
            true => Ok(Some(Duration::ZERO)),
            false => Ok(decision.again.map(|again| until(again, now))),
        }
    }

    /// A hook that is to thaw does not wait behind those that are to freeze.
    fn urgent_at(&self, object: &ExecutionHook) -> Option<Timestamp> {
        is_thawing(object).then_some(Timestamp::UNIX_EPOCH)
    }

    fn gone(&self, object: &ObjectRef<ExecutionHook>) {
        self.deadlines.forget(object);
        self.begun.forget(object);
        for parent in application_snapshot::going_by(&self.snapshots, object) {
            self.tell(Some(parent));
        }
    }
}
