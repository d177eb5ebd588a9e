//! Calls without which a process cannot start. An outage of the API server must not end the process: Kubernetes restarts it
//! after ever longer pauses, which outlast the outage.

use std::time::Duration;

use crate::error_class::{Classified, ErrorClass, chain};

/// So long after the API server is back the process goes on, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Repeats the call for as long as it fails with a transient error. Logs the first failure.
pub async fn until_answered<T>(call: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
    let mut failures = 0;
    loop {
        let error = match call().await {
            Err(error) if error.class() == ErrorClass::Transient => error,
            ended => return ended,
        };
        failures += 1;
        if failures == 1 {
            tracing::warn!(error = %chain(&error), "waiting for the API server");
        }
        tokio::time::sleep(ErrorClass::Transient.delay(failures).min(LONGEST_PAUSE)).await;
    }
}
