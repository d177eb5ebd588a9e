//! Whether the agent can serve its node: its container runtime answers, it has its rights, and its watch is heard of.

use std::time::Duration;

use boathook_actions::place::cri::Runtime;
use boathook_api::words::GROUP;
use boathook_runtime::{error_class::chain, rights, watches::Watches};
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use tokio::sync::watch;

/// Between two checks of the container runtime, and how long it has to answer. Together they bound how long a dead
/// runtime counts as ready.
const CHECK_RUNTIME_EVERY: Duration = Duration::from_secs(2);
const RUNTIME_DEADLINE: Duration = Duration::from_secs(3);

/// Between two checks of the rights, after one that went well and after one that did not.
const CHECK_RIGHTS_EVERY: Duration = Duration::from_secs(30);
const CHECK_RIGHTS_AGAIN: Duration = Duration::from_secs(5);

/// What the agent does besides listing and watching, which its watch shows.
const RIGHTS: [(&str, &str); 2] = [("get", "podnotifications"), ("update", "podnotifications/status")];

type Outcome = Result<(), String>;

/// The results of the last checks: what is missing.
#[derive(Clone)]
pub(crate) struct Checked {
    runtime: watch::Sender<Outcome>,
    rights: watch::Sender<Outcome>,
}

impl Checked {
    pub(crate) fn nothing() -> Self {
        let unchecked = |what: &str| watch::Sender::new(Err(format!("the agent has not yet checked {what}")));
        Self { runtime: unchecked("the container runtime"), rights: unchecked("the API server") }
    }

    /// Checks again and again.
    pub(crate) async fn keep_checking(self, client: Client, runtime: Runtime) {
        let of_runtime = async {
            loop {
                keep(&self.runtime, check_runtime(&runtime).await);
                tokio::time::sleep(CHECK_RUNTIME_EVERY).await;
            }
        };
        let of_rights = async {
            loop {
                let outcome = check_rights(&client).await;
                let pause = if outcome.is_ok() { CHECK_RIGHTS_EVERY } else { CHECK_RIGHTS_AGAIN };
                keep(&self.rights, outcome);
                tokio::time::sleep(pause).await;
            }
        };
        tokio::join!(of_runtime, of_rights);
    }

    /// The checks and the watches together.
    pub(crate) fn is_ready(&self, watches: &Watches) -> Outcome {
        self.runtime.borrow().clone()?;
        self.rights.borrow().clone()?;
        watches.ready()
    }
}

/// Keeps the outcome, and logs it if something new is missing.
fn keep(checked: &watch::Sender<Outcome>, outcome: Outcome) {
    let is_new = checked.send_if_modified(|before| {
        let is_new = *before != outcome;
        before.clone_from(&outcome);
        is_new
    });
    if let Err(missing) = outcome
        && is_new
    {
        tracing::warn!("not ready: {missing}");
    }
}

async fn check_runtime(runtime: &Runtime) -> Outcome {
    runtime.answers(RUNTIME_DEADLINE).await.map_err(|error| error.to_string())
}

pub(crate) async fn check_rights(client: &Client) -> Outcome {
    let wanted = RIGHTS.map(|(verb, resource)| rights::attributes(verb, GROUP, resource));
    let missing = rights::missing(client, wanted.into()).await;
    let missing: Vec<ResourceAttributes> =
        missing.map_err(|error| format!("failed to check the agent's rights: {}", chain(&error)))?;
    rights::none_missing(&missing)
}
