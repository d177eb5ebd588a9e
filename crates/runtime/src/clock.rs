//! The clock that leases and deadlines are judged by: it goes on while the process is stopped or the machine asleep,
//! and nobody can set it.

use std::{sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// How long it is since some moment in the past: only differences mean something. An input wherever time decides, so
/// that a test can let it jump.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// Since this machine booted.
    pub fn of_the_machine() -> Self {
        Self::new(|| {
            let time = clock_gettime(ClockId::Boottime);
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
        })
    }

    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> Duration {
        (self.0)()
    }
}
