//! Who leads: the Lease `boathook` of coordination.k8s.io/v1.
//!
//! A process judges its leadership by its own monotonic clock alone, from the moment it began the last renewal that
//! succeeded: a process that was stopped past its time knows that it no longer leads before it has asked the API server. A
//! successor counts the lease's duration from the moment it saw the last renewal, which is later. So no wall clock matters,
//! and no two processes lead at once. A deleted lease is still its holder's for that time. Only a process that starts
//! between the deletion and the holder's next renewal, and so has seen no holder, takes it at once.

mod candidate;
mod ended_holder;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use boathook_api::words::LEASE as NAME;
use boathook_decide::Leadership;
use kube::Client;
use tokio::sync::watch;

use crate::Clock;
pub use candidate::Candidate;
pub use ended_holder::{ReleaseError, holder, release_of_ended};

/// Who wants to lead, and where.
#[derive(Clone, Debug)]
pub struct Options {
    pub namespace: String,
    /// No other process has it, and no later one.
    pub identity: String,
    /// How long others wait after the last renewal that they saw.
    pub duration: Duration,
    pub renew_every: Duration,
}

impl Options {
    pub fn new(namespace: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_every: Duration::from_secs(3),
        }
    }

    /// How long a renewal is good for, for its holder: less than for others, as what is begun in the last moment has to
    /// reach its place, and clocks do not go alike.
    fn valid_for(&self) -> Duration {
        self.duration.saturating_sub(self.renew_every)
    }
}

/// What this process may do; cheap to copy and to ask.
#[derive(Clone)]
pub struct Lease {
    clock: Clock,
    valid_for: Duration,
    held: Arc<Mutex<Held>>,
    changes: watch::Receiver<Option<Leadership>>,
}

#[derive(Clone, Copy, Default)]
struct Held {
    /// When the last renewal that succeeded was begun.
    renewed: Option<Duration>,
    ever: bool,
}

/// The one who runs for it, to be run, and what it achieves, to be asked.
pub fn candidate(client: Client, options: Options, clock: Clock) -> (Candidate, Lease) {
    let (announce, changes) = watch::channel(None);
    let lease = Lease { clock, valid_for: options.valid_for(), held: Arc::default(), changes };
    (Candidate::new(client, options, lease.clone(), announce), lease)
}

impl Lease {
    /// What this process may do now; nothing if it has never led.
    pub fn leadership(&self) -> Option<Leadership> {
        let held = *self.lock();
        let now = self.clock.now();
        match held.renewed {
            Some(renewed) if now < renewed + self.valid_for => Some(Leadership::Leader),
            _ if held.ever => Some(Leadership::ThawOnly),
            _ => None,
        }
    }

    pub fn leads(&self) -> bool {
        self.leadership() == Some(Leadership::Leader)
    }

    /// Tells when it changes. That may be a little late; [`Lease::leadership`] never is.
    pub fn changes(&self) -> watch::Receiver<Option<Leadership>> {
        self.changes.clone()
    }

    /// Waits until this process leads.
    pub async fn led(&self) {
        let mut changes = self.changes();
        let leads = |leadership: &Option<Leadership>| *leadership == Some(Leadership::Leader);
        if changes.wait_for(leads).await.is_err() {
            // The candidate has ended: it will never lead.
            futures::future::pending().await
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        // It is whole at any time.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
