//! Whether a command was checked when it was written.
//!
//! The webhooks check the author of a command and refuse changes of what a pod declares, and without an answer of theirs
//! the API server refuses both; but nothing has checked what was written before the API server asked them. A controller
//! that acts on a command asks here first.

use boathook_runtime::{in_time, webhook};
use k8s_openapi::{
    api::admissionregistration::v1::ValidatingWebhookConfiguration, apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{Api, Client, api::ObjectMeta};

/// Whether the webhooks were asked when the object with this metadata was created.
pub(crate) async fn was_checked(client: &Client, written: &ObjectMeta) -> Result<bool, kube::Error> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let found = in_time(configurations.get_opt(boathook_install::webhooks::NAME)).await?;
    let created = written.creation_timestamp.as_ref();
    Ok(found.zip(created).is_some_and(|(configuration, Time(created))| webhook::was_checked(&configuration, *created)))
}

#[cfg(test)]
mod tests {
    use boathook_api::{PodNotification, words::CHECKED_SINCE};
    use kube::{
        ResourceExt,
        api::{Patch, PatchParams, PostParams},
    };
    use serde_json::json;

    use super::*;
    use crate::webhooks::test_asks::client_with_kinds;

    #[tokio::test]
    async fn object_of_the_second_of_the_installation_was_not_checked() {
        let client = client_with_kinds().await;
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let new = serde_json::from_value(json!({"metadata": {"name": "boathook"}})).unwrap();
        let installed = configurations.create(&PostParams::default(), &new).await.unwrap();
        let spec = serde_json::from_value(json!({"podName": "a", "notifier": "b"})).unwrap();
        let objects: Api<PodNotification> = Api::namespaced(client.clone(), "default");
        let object = objects.create(&PostParams::default(), &PodNotification::new("a", spec)).await.unwrap();
        let checked = async || was_checked(&client, &object.metadata).await.unwrap();
        assert!(!checked().await, "no API server was seen to ask the webhooks");
        let since = async |time: &str| {
            let mark = format!("{}/{time}", installed.uid().unwrap());
            let patch = Patch::Merge(json!({"metadata": {"annotations": {CHECKED_SINCE: mark}}}));
            configurations.patch("boathook", &PatchParams::default(), &patch).await.unwrap();
        };
        let Time(created) = object.creation_timestamp().unwrap();
        since(&created.to_string()).await;
        assert!(!checked().await, "they were asked in the second in which it was created");
        since("2020-01-01T00:00:00Z").await;
        assert!(checked().await);
    }
}
