//! Objects of any kind, asked of the API server: every answer has its deadline, every error its words.

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result, bail};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    access::{Attempt, explained},
    output::{duration::shown, plain::names},
    pods::Scope,
    server,
};

/// Of one page of a list: as kubectl asks for.
const PAGE: u32 = 500;

/// How long the API server may take to answer one request.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// The kinds that commands read and write.
pub(crate) trait Kind:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Kind for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// As a Role or kubectl names it: `executionhooks.boathook.dev`, `pods`.
pub(crate) fn resource<K: Kind>() -> String {
    let (plural, group) = (K::plural(&()), K::group(&()));
    if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") }
}

/// All of them, in the order of their namespaces and names.
pub(crate) async fn list<K: Kind>(client: &Client, scope: &Scope, params: ListParams) -> Result<Vec<K>> {
    let api: Api<K> = scope.api(client);
    let mut params = params.limit(PAGE);
    let mut found: Vec<K> = Vec::new();
    loop {
        let page = answered::<K, _>(api.list(&params), "list", scope).await?;
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        found.extend(page.items);
        let Some(token) = next else { break };
        params.continue_token = Some(token);
    }
    found.sort_by_cached_key(|object| (object.namespace(), object.name_any()));
    Ok(found)
}

/// The one of this name, if there is one.
pub(crate) async fn find<K: Kind>(client: &Client, scope: &Scope, name: &str) -> Result<Option<K>> {
    let api: Api<K> = scope.api(client);
    answered::<K, _>(api.get_opt(name), "get", scope).await
}

/// The one of this name; else an error that names those there are.
pub(crate) async fn get<K: Kind>(client: &Client, scope: &Scope, name: &str) -> Result<K> {
    match find(client, scope, name).await? {
        Some(found) => Ok(found),
        None => bail!(missing::<K>(client, scope, name).await?),
    }
}

/// That there is none of this name, and which there are. If the cluster does not know the kind, that is the error.
pub(crate) async fn missing<K: Kind>(client: &Client, scope: &Scope, name: &str) -> Result<String> {
    let there: Vec<K> = list(client, scope, ListParams::default()).await?;
    let (kind, place) = (K::kind(&()), scope.place());
    let there: Vec<_> = there.iter().map(|object| format!("`{}`", object.name_any())).collect();
    Ok(match there.is_empty() {
        true => format!("there is no {kind} `{name}` {place}, and no other {kind} either"),
        false => format!("there is no {kind} `{name}` {place}; there are: {}", names(there.iter().map(String::as_str))),
    })
}

pub(crate) async fn create<K: Kind>(client: &Client, scope: &Scope, object: &K) -> Result<K> {
    let api: Api<K> = scope.api(client);
    answered::<K, _>(api.create(&PostParams::default(), object), "create", scope).await
}

/// Changes some fields of one.
pub(crate) async fn merge<K: Kind>(client: &Client, scope: &Scope, name: &str, change: &Value) -> Result<K> {
    let api: Api<K> = scope.api(client);
    answered::<K, _>(api.patch(name, &PatchParams::default(), &Patch::Merge(change)), "patch", scope).await
}

/// Whether one could be created: the API server checks everything and does nothing. Else its words.
pub(crate) async fn try_to_create<K: Kind>(client: &Client, scope: &Scope, object: &K) -> Result<Result<(), Refused>> {
    let api: Api<K> = scope.api(client);
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match answer(api.create(&params, object)).await? {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) => {
            Ok(Err(Refused { is_there: status.reason == "AlreadyExists", message: status.message }))
        }
        Err(error) => Err(explained(error, Attempt { verb: "create", resource: &resource::<K>(), scope })),
    }
}

/// Why something could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// There is one of that name.
    pub(crate) is_there: bool,
    pub(crate) message: String,
}

/// Waits for an answer that is about no object, in time.
pub(crate) async fn unnamed_answer<T>(request: impl Future<Output = kube::Result<T>>, what: &str) -> Result<T> {
    answer(request).await?.with_context(|| format!("failed to {what}"))
}

/// Waits for an answer, whatever it is, in time.
pub(crate) async fn answer<T>(request: impl Future<Output = T>) -> Result<T> {
    let answer = tokio::time::timeout(ANSWER_DEADLINE, request).await;
    answer.with_context(|| format!("{} did not answer within {}", server::named(), shown(ANSWER_DEADLINE)))
}

/// Waits for an answer, in time; a refusal is put into words.
pub(crate) async fn answered<K: Kind, T>(
    request: impl Future<Output = kube::Result<T>>,
    verb: &'static str,
    scope: &Scope,
) -> Result<T> {
    answer(request).await?.map_err(|error| explained(error, Attempt { verb, resource: &resource::<K>(), scope }))
}

#[cfg(test)]
mod tests {
    use boathook_api::ExecutionHook;
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn resources_are_named_as_roles_name_them() {
        assert_eq!(
            (resource::<ExecutionHook>().as_str(), resource::<Pod>().as_str()),
            ("executionhooks.boathook.dev", "pods")
        );
    }
}
