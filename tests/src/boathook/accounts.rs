//! The service accounts of Boathook's parts, with exactly the roles that are shipped, and kubeconfigs in their names.

use anyhow::{Context, Result};
use boathook_api::{PodNotification, pod_notification::Executor};
use boathook_install::{NAMESPACE, roles};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::ServiceAccount,
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{AuthInfo, Kubeconfig, NamedAuthInfo},
};

use crate::{
    DEADLINE,
    cluster::Cluster,
    poll::{self, Look},
    watch::Watchable,
};

/// Longer than any run.
const TOKEN_SECONDS: i64 = 4 * 60 * 60;

/// A part of Boathook that runs as itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Controller(Executor),
    Agent,
}

impl Part {
    fn account(self) -> &'static str {
        match self {
            Self::Controller(Executor::Api) => roles::CONTROLLER,
            Self::Controller(Executor::Agent) => roles::CONTROLLER_WITH_AGENTS,
            Self::Agent => roles::AGENT,
        }
    }
}

/// The cluster's kubeconfig, with the part's own account in it. When this returns, its roles are in force.
pub(super) async fn kubeconfig(cluster: &Cluster, part: Part) -> Result<Kubeconfig> {
    let account = part.account();
    grant(&cluster.client, part).await.with_context(|| format!("failed to grant `{account}` its roles"))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let spec = TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let token = answer.with_context(|| format!("failed to get a token of `{account}`"))?.status;
    let token = token.context("a TokenRequest without an answer")?.token;
    let mut kubeconfig = cluster.kubeconfig.clone();
    for NamedAuthInfo { auth_info, .. } in &mut kubeconfig.auth_infos {
        *auth_info = Some(AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() });
    }
    in_force(&kubeconfig, account).await?;
    Ok(kubeconfig)
}

async fn grant(client: &Client, part: Part) -> Result<()> {
    let account = part.account();
    let rules = match part {
        Part::Controller(Executor::Api) => roles::controller(),
        Part::Controller(Executor::Agent) => roles::controller_with_agents(),
        Part::Agent => roles::agent(),
    };
    apply_in_namespace(client, &roles::account(account, NAMESPACE)).await?;
    apply(&Api::all(client.clone()), &roles::cluster_role(account, rules)).await?;
    apply(&Api::all(client.clone()), &roles::cluster_binding(account, NAMESPACE)).await?;
    if let Part::Controller(_) = part {
        apply_in_namespace(client, &roles::lease_role(NAMESPACE)).await?;
        apply_in_namespace(client, &roles::lease_binding(account, NAMESPACE)).await?;
    }
    Ok(())
}

async fn apply_in_namespace<K>(client: &Client, object: &K) -> Result<()>
where
    K: Watchable + Resource<Scope = NamespaceResourceScope>,
{
    apply(&Api::namespaced(client.clone(), NAMESPACE), object).await
}

async fn apply<K: Watchable>(api: &Api<K>, object: &K) -> Result<()> {
    let parameters = PatchParams::apply("boathook-tests").force();
    let applied = api.patch(&object.name_any(), &parameters, &Patch::Apply(object)).await;
    applied.map(drop).with_context(|| format!("failed to apply {} `{}`", K::kind(&()), object.name_any()))
}

/// The API server's own copy of the roles follows a moment later.
async fn in_force(kubeconfig: &Kubeconfig, account: &str) -> Result<()> {
    let client = Client::try_from(kubeconfig.clone()).context("failed to make a client of an account")?;
    let objects: Api<PodNotification> = Api::all(client);
    poll::until(DEADLINE, &format!("the roles of `{account}` are in force"), async || {
        match objects.list(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(Look::Done(())),
            Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(Look::NotYet(status.message.clone())),
            Err(error) => Err(error.into()),
        }
    })
    .await
}
