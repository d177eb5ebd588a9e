//! Notification: one PodNotification for each pod that it selects.

mod act;
mod made;
mod observe;
mod triggers;

use std::{sync::Arc, time::Duration};

use boathook_api::{Notification, PodNotification};
use boathook_decide::notification::decide;
use boathook_runtime::{Classified, ErrorClass, Lease, Reconcile, Reporter, lenient::Lenient};
use jiff::Timestamp;
use kube::{Client, runtime::reflector::Store};
use snafu::Snafu;

pub use made::Made;
pub(crate) use triggers::parent_by_name;
pub use triggers::triggers;

use crate::until;

/// The controller.
pub struct Controller {
    pub client: Client,
    pub lease: Lease,
    /// The feature gate `ContainerNotifier`.
    pub enabled: bool,
    /// The PodNotifications of all namespaces.
    pub children: Store<Lenient<PodNotification>>,
    pub reporter: Reporter,
    pub made: Made,
}

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(transparent)]
    Observe { source: observe::ObserveError },
    #[snafu(transparent)]
    Act { source: act::ActError },
}

impl Classified for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Observe { source } => source.class(),
            Self::Act { source } => source.class(),
        }
    }
}

impl Reconcile<Notification> for Controller {
    type Error = Error;

    async fn reconcile(&self, object: Arc<Notification>) -> Result<Option<Duration>, Error> {
        // Never led: whoever does looks after it.
        let Some(leadership) = self.lease.leadership() else { return Ok(None) };
        let observed = observe::observe(self, leadership, &object).await?;
        let now = Timestamp::now();
        let decision = decide(&observed, now);
        act::act(self, &object, decision.effects).await?;
        self.reporter.report(&*object, decision.reports);
        Ok(decision.again.map(|again| until(again, now)))
    }
}

#[cfg(test)]
mod tests;
