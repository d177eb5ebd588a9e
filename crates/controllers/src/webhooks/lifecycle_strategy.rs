//! Whether a DeploymentLifecycle fits the strategy of its Deployment, so that its author learns of a mistake at once.

use boathook_api::DeploymentLifecycle;
use boathook_decide::deployment_lifecycle::{Strategy, strategy_mistake};
use boathook_runtime::{
    error_class::chain,
    webhook::{Ask, refuse},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, Resource, api::DynamicObject, core::admission::AdmissionResponse};

/// Refuses hooks that the Deployment's strategy has no place for; warns if there is no Deployment to compare with.
pub(super) async fn review(client: &Client, ask: &Ask) -> AdmissionResponse {
    let mut answer = AdmissionResponse::from(ask);
    let is_lifecycle = ask.resource.resource == DeploymentLifecycle::plural(&()) && ask.sub_resource.is_none();
    let (Some(object), Some(namespace), true) = (ask.object.clone(), ask.namespace.as_deref(), is_lifecycle) else {
        return answer;
    };
    let Ok(lifecycle) = DynamicObject::try_parse::<DeploymentLifecycle>(object) else { return answer };
    let Some(name) = lifecycle.metadata.name.as_deref() else { return answer };
    // Hooks that fit a RollingUpdate fit every strategy.
    let Some(mistake) = strategy_mistake(&lifecycle.spec, Strategy::RollingUpdate) else { return answer };
    let warning = match Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(name).await {
        Ok(Some(deployment)) if is_recreate(&deployment) => return answer,
        Ok(Some(_)) => return refuse(ask, 422, "Invalid", format!("Deployment `{name}`: {mistake}")),
        Ok(None) => format!("Deployment `{name}` not found in namespace `{namespace}`; when you create it: {mistake}"),
        // The controller holds what does not fit.
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                name,
                namespace,
                "failed to get the Deployment of a DeploymentLifecycle"
            );
            format!("Boathook failed to get Deployment `{name}`, so it did not check the strategy: {mistake}")
        }
    };
    answer.warnings = Some(vec![warning]);
    answer
}

fn is_recreate(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

#[cfg(test)]
mod tests {
    use kube::api::PostParams;
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::test_asks::{ask_about, client_with_kinds};

    fn hook(policy: &str) -> Value {
        json!({"failurePolicy": policy, "execNewPod": {"containerName": "web"}})
    }

    async fn reviewed(client: &Client, hooks: Value) -> AdmissionResponse {
        review(
            client,
            &ask_about(
                "deploymentlifecycles",
                json!({"apiVersion": "boathook.dev/v1alpha1",
            "kind": "DeploymentLifecycle", "metadata": {"name": "web"}, "spec": hooks}),
            ),
        )
        .await
    }

    async fn with_deployment(strategy: &str) -> Client {
        let client = client_with_kinds().await;
        let labels = json!({"app": "web"});
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"strategy": {"type": strategy},
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]}}}});
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
        deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
        client
    }

    #[tokio::test]
    async fn unfit_lifecycle_is_refused_at_admission() {
        let rolling = with_deployment("RollingUpdate").await;
        for hooks in [json!({"mid": hook("Retry")}), json!({"post": hook("Abort")})] {
            let refused = reviewed(&rolling, hooks.clone()).await;
            assert_eq!((refused.allowed, refused.result.code), (false, 422), "{refused:?}");
            assert!(refused.result.message.contains("`Recreate`"), "{refused:?}");
            let recreate = with_deployment("Recreate").await;
            let answer = reviewed(&recreate, hooks).await;
            assert!(answer.allowed && answer.warnings.is_none(), "{answer:?}");
        }
        let fits = reviewed(&rolling, json!({"pre": hook("Abort"), "post": hook("Retry")})).await;
        assert!(fits.allowed && fits.warnings.is_none(), "{fits:?}");
    }

    #[tokio::test]
    async fn absent_deployment_makes_a_warning() {
        let client = client_with_kinds().await;
        let answer = reviewed(&client, json!({"mid": hook("Retry")})).await;
        let warnings = answer.warnings.unwrap_or_default();
        assert!(answer.allowed && warnings[0].contains("Deployment `web` not found"), "{warnings:?}");
        assert!(reviewed(&client, json!({"pre": hook("Retry")})).await.warnings.is_none());
    }
}
