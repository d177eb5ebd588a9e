//! Whether a command was checked when it was written.
//!
//! The webhooks check the author of a command, and it is refused if they cannot be asked; but what was written before
//! they were there, nobody has checked. Who acts on a command asks here first.

use boathook_runtime::in_time;
use k8s_openapi::{
    api::admissionregistration::v1::ValidatingWebhookConfiguration, apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{Api, Client, api::ObjectMeta};

/// Whether the webhooks were there when the object with this metadata was created.
pub(crate) async fn author_was_checked(client: &Client, written: &ObjectMeta) -> Result<bool, kube::Error> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let found = in_time(configurations.get_opt(boathook_install::webhooks::NAME)).await?;
    let since = found.and_then(|configuration| configuration.metadata.creation_timestamp);
    Ok(written.creation_timestamp.as_ref().zip(since).is_some_and(|(Time(written), Time(since))| since <= *written))
}
