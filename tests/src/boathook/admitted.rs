//! Requests that need an answer of Boathook's webhooks, which fail closed: while no webhook answers, a user tries again.

use anyhow::Result;

use crate::{Ctx, DEADLINE, poll::Look};

impl Ctx {
    /// Sends the request until the API server carries it out. An answer that concerns the request itself is an error.
    pub async fn when_admitted<T>(&self, what: &str, request: impl AsyncFn() -> Result<T>) -> Result<T> {
        self.poll_until(DEADLINE, what, async || match request().await {
            Ok(answer) => Ok(Look::Done(answer)),
            Err(error) => match is_unanswered(&error) {
                true => Ok(Look::NotYet(format!("{error:#}"))),
                false => Err(error),
            },
        })
        .await
    }
}

/// A webhook could not be called, or could not ask the API server about the user's rights.
fn is_unanswered(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.code >= 500 || status.code == 403,
        _ => false,
    }
}
