//! The Deployment that a person names, and its lifecycle. A Deployment is read raw: a field of its template that is not
//! known here makes another version of it too.

use std::borrow::Cow;

use anyhow::{Context, Result, bail};
use boathook_api::{DeploymentLifecycle, words::LIFECYCLE};
use boathook_controllers::deployment_lifecycle::seen_deployment;
use boathook_decide::deployment_lifecycle::Deployment;
use k8s_openapi::api::apps::v1;
use kube::{
    Client, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::{NamespaceResourceScope, ObjectMeta},
};
use serde::{Deserialize, Serialize};

use crate::{objects, output::plain::names, pods::Scope};

/// A Deployment as the API server writes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RawDeployment(pub(crate) DynamicObject);

impl RawDeployment {
    /// As the controller sees it.
    pub(super) fn seen(&self) -> Result<Deployment> {
        seen_deployment(&self.0).with_context(|| format!("failed to read Deployment `{}`", self.name_any()))
    }
}

impl Resource for RawDeployment {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        v1::Deployment::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        v1::Deployment::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        v1::Deployment::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        v1::Deployment::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

/// A Deployment's name; `deployment/NAME` is one too, as kubectl prints them.
pub(crate) fn deployment_name(given: &str) -> Result<String, String> {
    let (kind, name) = given.split_once('/').unwrap_or(("deployment", given));
    match kind.split('.').next().unwrap_or_default() {
        "deployment" | "deployments" | "deploy" if !name.is_empty() && !name.contains('/') => Ok(name.to_owned()),
        "deployment" | "deployments" | "deploy" => Err("give a Deployment's name".to_owned()),
        other => {
            Err(format!("unsupported kind `{other}`: only Deployments have rollout hooks, give a Deployment's name"))
        }
    }
}

/// Both of this name; else an error that says which of them there are.
pub(super) async fn find(client: &Client, scope: &Scope, name: &str) -> Result<(RawDeployment, DeploymentLifecycle)> {
    // First: whether the cluster knows lifecycles at all.
    let lifecycle: Option<DeploymentLifecycle> = objects::find(client, scope, name).await?;
    let Some(deployment) = objects::find::<RawDeployment>(client, scope, name).await? else {
        let place = scope.place();
        bail!("there is no Deployment `{name}` {place}; {}", with_lifecycles(client, scope).await?);
    };
    match lifecycle {
        Some(lifecycle) => Ok((deployment, lifecycle)),
        None => match held_for_nothing(&deployment) {
            Some(held) => bail!(held),
            None => bail!(without_lifecycle(client, scope, name).await?),
        },
    }
}

/// That its rollouts are held until there is a lifecycle, if they are; and what to do.
fn held_for_nothing(deployment: &RawDeployment) -> Option<String> {
    let value = deployment.annotations().get(LIFECYCLE)?;
    let (name, namespace) = (deployment.name_any(), deployment.namespace().unwrap_or_default());
    Some(format!(
        "the rollout of Deployment `{name}` is held: it is annotated `{LIFECYCLE}: {value}`, and there is no \
         DeploymentLifecycle `{name}` in namespace `{namespace}`; create it, or remove the annotation: \
         kubectl annotate deployment {name} {LIFECYCLE}- -n {namespace}"
    ))
}

/// That this Deployment has no hooks, and which have.
pub(super) async fn without_lifecycle(client: &Client, scope: &Scope, name: &str) -> Result<String> {
    let which = with_lifecycles(client, scope).await?;
    Ok(format!("Deployment `{name}` has no hooks: there is no DeploymentLifecycle `{name}` {}; {which}", scope.place()))
}

async fn with_lifecycles(client: &Client, scope: &Scope) -> Result<String> {
    let all: Vec<DeploymentLifecycle> = objects::list(client, scope, ListParams::default()).await?;
    let all: Vec<_> = all.iter().map(|lifecycle| format!("`{}`", lifecycle.name_any())).collect();
    Ok(match all.is_empty() {
        true => "no Deployment there has hooks".to_owned(),
        false => format!("DeploymentLifecycles there: {}", names(all.iter().map(String::as_str))),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::verdict::tests::deployment, *};

    #[test]
    fn that_it_is_held_without_a_lifecycle_is_said_with_the_way_out() {
        let annotations = json!({"boathook.dev/lifecycle": "required"});
        let held = held_for_nothing(&deployment(json!({"metadata": {"annotations": annotations}}))).unwrap();
        assert!(held.contains("`web` is held: it is annotated `boathook.dev/lifecycle: required`"), "{held}");
        assert!(held.ends_with("kubectl annotate deployment web boathook.dev/lifecycle- -n sea"), "{held}");
        let free: RawDeployment = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
        assert_eq!(held_for_nothing(&free), None);
    }

    #[test]
    fn a_deployment_is_named_as_kubectl_names_it() {
        for given in ["web", "deployment/web", "deploy/web", "deployment.apps/web", "deployments.v1.apps/web"] {
            assert_eq!(deployment_name(given).as_deref(), Ok("web"), "{given}");
        }
        assert!(deployment_name("statefulset/db").unwrap_err().contains("only Deployments have"));
        for wrong in ["", "deploy/", "deploy/a/b"] {
            assert!(deployment_name(wrong).is_err(), "{wrong}");
        }
    }
}
