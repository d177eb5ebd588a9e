//! Polling, for the few things that the API offers no watch for: whether a webhook configuration or a role binding has
//! reached the API server's own caches, whether the node's proxy knows a Service. Anything that is an object is
//! watched instead ([`crate::watch`]).

use std::time::Duration;

use anyhow::{Result, anyhow};
use k8s_openapi::jiff::Timestamp;
use tokio::time::MissedTickBehavior;

use crate::{Ctx, DEADLINE, report};

/// Short against what is waited for (hundreds of milliseconds), long against one request.
const INTERVAL: Duration = Duration::from_millis(200);

/// What one look has shown.
pub enum Look<T> {
    Done(T),
    /// Not there yet; what was seen instead, for the failure's text.
    NotYet(String),
}

/// Looks again and again until a look is [`Look::Done`]. An error of `look` ends it at once; a look that takes too
/// long is cut off at the deadline.
pub async fn until<T>(deadline: Duration, what: &str, look: impl AsyncFnMut() -> Result<Look<T>>) -> Result<T> {
    match look_until(deadline, what, look).await? {
        Look::Done(value) => Ok(value),
        Look::NotYet(seen) => Err(in_vain(deadline, what, &seen)),
    }
}

impl Ctx {
    /// The same; a failure also shows the Events of the scenario's namespace.
    pub async fn poll_until<T>(
        &self,
        deadline: Duration,
        what: &str,
        look: impl AsyncFnMut() -> Result<Look<T>>,
    ) -> Result<T> {
        match look_until(deadline, what, look).await? {
            Look::Done(value) => Ok(value),
            Look::NotYet(seen) => {
                let events = report::events_in(&self.client(), self.namespace()).await;
                Err(anyhow!("{}\n{events}", in_vain(deadline, what, &seen)))
            }
        }
    }

    /// Creation times are whole seconds: waits for the next one, so that what is there is older than what is created now.
    pub async fn let_a_second_pass(&self) -> Result<()> {
        let begun = Timestamp::now().as_second();
        self.poll_until(DEADLINE, "a second has passed", async || {
            let passed = Timestamp::now().as_second() > begun;
            Ok(if passed { Look::Done(()) } else { Look::NotYet("the same second".to_owned()) })
        })
        .await
    }
}

fn in_vain(deadline: Duration, what: &str, seen: &str) -> anyhow::Error {
    anyhow!("waited {deadline:?} in vain until {what}\n--- seen last\n{}", seen.trim_end())
}

/// The first look that is done, or the last one before the deadline.
async fn look_until<T>(
    deadline: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Look<T>>,
) -> Result<Look<T>> {
    let mut seen = "nothing, the first look did not return".to_owned();
    let looking = async {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match look().await? {
                Look::Done(value) => return Ok(value),
                Look::NotYet(instead) => seen = instead,
            }
        }
    };
    match tokio::time::timeout(deadline, looking).await {
        Ok(Ok(value)) => Ok(Look::Done(value)),
        Ok(Err(error)) => {
            let error: anyhow::Error = error;
            Err(error.context(format!("while waiting until {what}")))
        }
        Err(_) => Ok(Look::NotYet(seen)),
    }
}
