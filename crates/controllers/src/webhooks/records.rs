//! The statuses of Boathook's kinds are the controller's to write: a hook runs what its status has recorded, an undo and a
//! rollout likewise, and a snapshot's status says how consistent it is. The API server asks only about other users, and not about
//! what an agent carries out: the conditions in `install` exclude those.

use boathook_runtime::webhook::{Ask, refuse};
use kube::core::admission::AdmissionResponse;

pub(super) fn review(ask: &Ask) -> AdmissionResponse {
    let resource = &ask.resource.resource;
    let message = format!("only Boathook writes the status of `{resource}`: change the spec, or create another object");
    refuse(ask, 403, "Forbidden", message)
}

#[cfg(test)]
mod tests {
    use boathook_api::{ApplicationSnapshot, DeploymentLifecycle, ExecutionHook, PodNotification};
    use k8s_openapi::{
        NamespaceResourceScope,
        api::admissionregistration::v1::{ValidatingWebhookConfiguration, WebhookClientConfig},
    };
    use kube::{
        Api, Client, Resource,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    };
    use serde::{Serialize, de::DeserializeOwned};
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::test_asks::{ask_about, client_with_kinds};

    async fn create<K>(client: &Client, spec: Value) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Serialize,
    {
        let api: Api<K> = Api::namespaced(client.clone(), "default");
        let object = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": "a"},
            "spec": spec});
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        api
    }

    /// Whether the API server asks about the statuses that the user `admin` writes.
    async fn is_asked(own: &str) -> [bool; 6] {
        let client = client_with_kinds().await;
        let hooks: Api<ExecutionHook> = create(&client, json!({"executionHookTemplateName": "quiet"})).await;
        let source = json!({"source": {"persistentVolumeClaimName": "data"}});
        let snapshots: Api<ApplicationSnapshot> = create(&client, source).await;
        let runs = json!({"pre": {"execNewPod": {"containerName": "web"}}});
        let lifecycles: Api<DeploymentLifecycle> = create(&client, runs).await;
        let notifies = json!({"podName": "db-0", "notifier": "freeze"});
        let notifications: Api<PodNotification> = create(&client, notifies).await;
        // No server listens there.
        let unanswered = |path: &str| WebhookClientConfig {
            url: Some(format!("https://127.0.0.1:1{path}")),
            ..WebhookClientConfig::default()
        };
        let configuration = boathook_install::webhooks::validating(own, unanswered);
        Api::all(client).create(&PostParams::default(), &configuration).await.unwrap();
        let params = PatchParams::default();
        let by = |executor: &str| Patch::Merge(json!({"status": {"executor": executor}}));
        let accepted = notifications.patch_status("a", &params, &by("agent")).await.map(drop);
        // As if Boathook had accepted it.
        let without_webhook = Api::<ValidatingWebhookConfiguration>::all(notifications.clone().into_client());
        without_webhook.delete("boathook", &DeleteParams::default()).await.unwrap();
        notifications.patch_status("a", &params, &by("agent")).await.unwrap();
        let configuration = boathook_install::webhooks::validating(own, unanswered);
        without_webhook.create(&PostParams::default(), &configuration).await.unwrap();
        let recorded = Patch::Merge(json!({"status": {"postActionSucceed": true}}));
        let verdict = Patch::Merge(json!({"status": {"consistency": "Application"}}));
        let rollout = json!({"target": "a", "phase": "Rolling", "startTime": "2026-11-01T00:00:00.000000Z"});
        let rolling = Patch::Merge(json!({"status": {"rollout": rollout}}));
        let deployment = Patch::Merge(json!({"status": {"deploymentUID": "1"}}));
        [
            hooks.patch_status("a", &params, &recorded).await.map(drop),
            snapshots.patch_status("a", &params, &verdict).await.map(drop),
            lifecycles.patch_status("a", &params, &rolling).await.map(drop),
            lifecycles.patch_status("a", &params, &deployment).await.map(drop),
            accepted,
            notifications.patch_status("a", &params, &by("api")).await.map(drop),
        ]
        .map(|answer| answer.is_err_and(|error| error.to_string().contains("records.boathook.dev")))
    }

    #[tokio::test]
    async fn only_boathook_writes_records_without_being_asked() {
        assert_eq!(
            is_asked("boathook").await,
            [true, true, true, true, true, false],
            "another user, and what an agent carries out"
        );
        assert_eq!(is_asked("admin").await, [false; 6], "Boathook itself");
    }

    #[test]
    fn record_of_another_user_is_refused() {
        let answer = review(&ask_about("executionhooks", json!({"metadata": {"name": "a"}})));
        assert!(!answer.allowed && answer.result.message.contains("executionhooks"), "{answer:?}");
    }
}
