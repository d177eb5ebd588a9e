//! Puts into a cluster what every part of Boathook needs: the namespace and the CRDs. Applied again, or by two at once,
//! it changes nothing.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde::{Serialize, de::DeserializeOwned};
use snafu::{ResultExt, Snafu};

use crate::FIELD_MANAGER;

/// How often an object is applied again that another has changed at the same moment.
const ATTEMPTS: usize = 5;

#[derive(Debug, Snafu)]
pub enum Error {
    #[snafu(display("failed to apply {kind} `{name}`"))]
    Apply { kind: String, name: String, source: kube::Error },
    #[snafu(display("failed to apply all objects within {deadline:?}: the API server is slow"))]
    Late { deadline: Duration },
    #[snafu(display("failed to watch the CRD `{name}`"))]
    Watch { name: String, source: kube::runtime::wait::Error },
    #[snafu(display(
        "CRD `{name}` was not established within {deadline:?}: check its conditions (`kubectl describe crd {name}`)"
    ))]
    NotEstablished { name: String, deadline: Duration },
}

/// Applies the namespace and the CRDs, and waits until those are served.
pub async fn apply(client: &Client, namespace: &str, deadline: Duration) -> Result<(), Error> {
    let all = async {
        apply_one(client, &namespace_named(namespace)).await?;
        for crd in boathook_api::crds::all() {
            apply_one(client, &crd).await?;
        }
        Ok(())
    };
    tokio::time::timeout(deadline, all).await.unwrap_or_else(|_| LateSnafu { deadline }.fail())?;
    for crd in boathook_api::crds::all() {
        established(client, &crd.name_any(), deadline).await?;
    }
    Ok(())
}

/// The namespace of Boathook's own objects.
pub fn namespace_named(name: &str) -> Namespace {
    Namespace { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..Namespace::default() }
}

async fn apply_one<K>(client: &Client, object: &K) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
{
    let (api, name) = (Api::<K>::all(client.clone()), object.name_any());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let mut attempts = 0;
    loop {
        attempts += 1;
        match api.patch(&name, &params, &Patch::Apply(object)).await {
            // Two who create it at the same moment: the slower one finds it there.
            Err(kube::Error::Api(status)) if status.code == 409 && attempts < ATTEMPTS => {}
            outcome => return outcome.map(drop).context(ApplySnafu { kind: K::kind(&()), name }),
        }
    }
}

async fn established(client: &Client, name: &str, deadline: Duration) -> Result<(), Error> {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let established = await_condition(crds, name, is_crd_established());
    match tokio::time::timeout(deadline, established).await {
        Ok(outcome) => outcome.map(drop).context(WatchSnafu { name }),
        Err(_) => NotEstablishedSnafu { name, deadline }.fail(),
    }
}
