//! A deadline for every call of the API server: a connection that hangs must not hold an object for ever.

use std::time::Duration;

/// No single call takes longer.
const DEADLINE: Duration = Duration::from_secs(10);

/// The answer, or an error that it did not come in time.
pub async fn in_time<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service("the API server did not answer in time".into())),
    }
}
