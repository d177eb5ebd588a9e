//! DeploymentLifecycle: the gate of its Deployment's ReplicaSets is opened stage by stage, and hooks run in pods.

mod act;
mod hook_log;
mod hook_pods;
mod observe;
mod orphans;
pub(crate) mod seen;
mod triggers;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use boathook_api::DeploymentLifecycle;
use boathook_decide::deployment_lifecycle::{Deployment, Starts, decide, running_since, time_of_a_stage};
use boathook_runtime::{Classified, Elapsed, ErrorClass, Lease, Reconcile, Reporter};
use jiff::Timestamp;
use kube::{Client, runtime::reflector::ObjectRef};
use snafu::Snafu;

pub use orphans::{Orphans, RESTORE_TIME, ReplicaSetMetadata, Wakes, is_marked_deployment, is_marked_replica_set};
pub use seen::{REVISION, deployment as seen_deployment};
pub use triggers::triggers;

use crate::{refusals::Refusals, until, writes::WriteError};
use act::Done;

/// The controller.
pub struct Controller {
    pub client: Client,
    pub lease: Lease,
    pub reporter: Reporter,
    pub refusals: Refusals,
    /// Since when stages run.
    pub stages: Elapsed<DeploymentLifecycle>,
    /// Woken when a lifecycle is gone.
    pub orphans: Wakes,
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

impl Reconcile<DeploymentLifecycle> for Controller {
    type Error = Error;

    async fn reconcile(&self, object: Arc<DeploymentLifecycle>) -> Result<Option<Duration>, Error> {
        let Some(leadership) = self.lease.leadership() else {
            // The leader looks after it; this process may be the next one.
            self.stages.look(&ObjectRef::from_obj(&*object), &running_since(&object), Timestamp::now());
            return Ok(None);
        };
        let Some(object) = observe::live(self, &object).await? else { return Ok(None) };
        // One moment for both: what is looked for when a time is over is there when that is decided.
        let (now, begun) = (Timestamp::now(), Instant::now());
        self.stages.look(&ObjectRef::from_obj(&object), &running_since(&object), now);
        let observed = observe::observe(self, &object, leadership, now).await?;
        let decision = decide(&observed, now);
        let done = act::act(self, &object, decision.effects).await?;
        match done {
            Done::All => Ok(decision.again.map(|again| until(again, now).saturating_sub(begun.elapsed()))),
            Done::PodRefused => Ok(Some(Duration::ZERO)),
        }
    }

    fn gone(&self, object: &ObjectRef<DeploymentLifecycle>) {
        self.stages.forget(object);
        self.orphans.lifecycle_is_gone(object);
    }
}

impl Controller {
    fn starts(&self, object: &DeploymentLifecycle, deployment: &Deployment, wall: Timestamp) -> Starts {
        let (reference, time) = (ObjectRef::from_obj(object), time_of_a_stage(deployment));
        let start = |recorded| (recorded, wall - self.stages.since(&reference, recorded, time));
        running_since(object).into_iter().map(start).collect()
    }
}

#[cfg(test)]
mod tests;
