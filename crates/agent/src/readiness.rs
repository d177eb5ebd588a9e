//! Whether the agent can serve its node: its container runtime answers, it has its rights, and its watch is heard of.

use std::time::Duration;

use boathook_actions::place::cri::Runtime;
use boathook_api::words::GROUP;
use boathook_runtime::{error_class::chain, rights, watches::Watches};
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use tokio::sync::watch;

/// Between two checks that went well.
const CHECK_EVERY: Duration = Duration::from_secs(30);

/// After one that did not.
const CHECK_AGAIN: Duration = Duration::from_secs(5);

/// What the agent does besides listing and watching, which its watch shows.
const RIGHTS: [(&str, &str); 2] = [("get", "podnotifications"), ("update", "podnotifications/status")];

/// The result of the last check: what is missing.
pub(crate) type Checked = watch::Sender<Result<(), String>>;

pub(crate) fn unchecked() -> Checked {
    watch::Sender::new(Err("the container runtime was not asked yet".to_owned()))
}

/// Checks again and again.
pub(crate) async fn keep_checking(client: Client, runtime: Runtime, checked: Checked) {
    loop {
        let outcome = check(&client, &runtime).await;
        let pause = if outcome.is_ok() { CHECK_EVERY } else { CHECK_AGAIN };
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
        tokio::time::sleep(pause).await;
    }
}

pub(crate) async fn check(client: &Client, runtime: &Runtime) -> Result<(), String> {
    runtime.answers().await.map_err(|error| error.to_string())?;
    let wanted = RIGHTS.map(|(verb, resource)| rights::attributes(verb, GROUP, resource));
    let missing = rights::missing(client, wanted.into()).await;
    let missing: Vec<ResourceAttributes> =
        missing.map_err(|error| format!("failed to ask for the agent's rights: {}", chain(&error)))?;
    rights::none_missing(&missing)
}

/// The check and the watches together.
pub(crate) fn is_ready(checked: &Checked, watches: &Watches) -> Result<(), String> {
    checked.borrow().clone()?;
    watches.ready()
}
