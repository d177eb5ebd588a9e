//! What the controller needs of a cluster, checked before it starts anything: its kinds, its rights, its namespace.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use boathook_api::{
    crds,
    pod_notification::Executor,
    words::{GROUP, LEASE},
};
use boathook_install::roles;
use boathook_runtime::{in_time, rights, until_answered};
use k8s_openapi::api::{authorization::v1::ResourceAttributes, coordination::v1::Lease, rbac::v1::PolicyRule};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};

/// The API server may learn of a role so long after it was written.
pub(crate) const ROLES_LAG: Duration = Duration::from_secs(5);

/// Between two questions for rights.
const PAUSE: Duration = Duration::from_millis(250);

/// Waits for an API server that does not answer. Any other error is for a person, and says in one sentence what to do.
/// Rights that are missing are asked for again for `patience`.
pub(crate) async fn check(client: &Client, namespace: &str, executor: Executor, patience: Duration) -> Result<()> {
    kinds(client).await?;
    has_rights(client, namespace, executor, patience).await?;
    namespace_is_there(client, namespace).await
}

async fn kinds(client: &Client) -> Result<()> {
    let version = format!("{GROUP}/v1alpha1");
    let served = match until_answered(async || in_time(client.list_api_group_resources(&version)).await).await {
        Ok(served) => served.resources,
        Err(kube::Error::Api(status)) if status.code == 404 => vec![],
        Err(error) => return Err(error).context("failed to ask the API server which kinds it serves"),
    };
    let is_served = |name: &str| served.iter().any(|resource| format!("{}.{GROUP}", resource.name) == name);
    let all = crds::all().into_iter().filter_map(|crd| crd.metadata.name);
    let missing: Vec<_> = all.filter(|name| !is_served(name)).collect();
    ensure!(
        missing.is_empty(),
        "the cluster does not know {}: install them with kubectl apply --server-side -f deploy/crds",
        missing.join(", ")
    );
    Ok(())
}

async fn has_rights(client: &Client, namespace: &str, executor: Executor, patience: Duration) -> Result<()> {
    let rules = match executor {
        Executor::Api => roles::controller(),
        Executor::Agent => roles::controller_with_agents(),
    };
    let everywhere = rules.iter().flat_map(|rule| attributes(rule, None));
    let lease = roles::lease();
    let of_lease = lease.iter().flat_map(|rule| attributes(rule, Some(namespace)));
    let (mut wanted, mut answered): (Vec<_>, _) = (everywhere.chain(of_lease).collect(), None);
    loop {
        let missing = until_answered(async || rights::missing(client, wanted.clone()).await).await;
        wanted = missing.context("failed to ask the API server for the controller's rights")?;
        let begun = *answered.get_or_insert_with(Instant::now);
        if wanted.is_empty() || begun.elapsed() >= patience {
            return rights::none_missing(&wanted).map_err(anyhow::Error::msg);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Each right that a rule grants.
fn attributes(rule: &PolicyRule, namespace: Option<&str>) -> Vec<ResourceAttributes> {
    let mut all = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                let mut one = rights::attributes(verb, group, resource);
                one.namespace = namespace.map(str::to_owned);
                // A role that names objects names one.
                one.name = rule.resource_names.iter().flatten().next().cloned();
                all.push(one);
            }
        }
    }
    all
}

/// By a dry run: the controller has no right to read namespaces.
async fn namespace_is_there(client: &Client, namespace: &str) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let lease = Lease { metadata, spec: None };
    match until_answered(async || in_time(leases.create(&dry_run, &lease)).await).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => bail!(
            "namespace `{namespace}` of the lease does not exist: create it with kubectl create namespace {namespace}, \
             or name another with --namespace"
        ),
        Err(error) => Err(error).with_context(|| format!("failed to check the lease in namespace `{namespace}`")),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        sync::{Arc, Mutex},
    };

    use boathook_apiserver::{
        access::{Tokens, User},
        api::Api as Server,
        server,
        store::Store,
    };
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::client::Body;

    use super::*;

    /// An API server, and how to be a client of it: with every right, or with none.
    async fn cluster() -> (Client, Client) {
        let all = ("all".to_owned(), User::authenticated("all", &["system:masters"]));
        let none = ("none".to_owned(), User::authenticated("none", &[]));
        let server = Server::new(Store::in_memory(), Tokens::new(&[7; 32], [all, none])).await.unwrap();
        (server::client(Arc::clone(&server), "all", "test"), server::client(server, "none", "test"))
    }

    async fn install_kinds(client: &Client) {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in crds::all() {
            api.create(&PostParams::default(), &crd).await.unwrap();
        }
    }

    async fn refusal(client: &Client, namespace: &str) -> String {
        check(client, namespace, Executor::Api, Duration::ZERO).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn each_thing_that_is_missing_is_named() {
        let (client, without_rights) = cluster().await;
        let unknown = refusal(&client, "default").await;
        assert!(unknown.contains("podnotifications.boathook.dev") && unknown.contains("deploy/crds"), "{unknown}");
        install_kinds(&client).await;
        let right = refusal(&without_rights, "default").await;
        assert!(right.contains("the right to create pods/exec and ") && right.contains("deploy/rbac"), "{right}");
        let nowhere = refusal(&client, "nowhere").await;
        assert!(nowhere.contains("kubectl create namespace nowhere"), "{nowhere}");
        check(&client, "default", Executor::Api, Duration::ZERO).await.unwrap();
    }
    /// A client to whom each path is at first refused, and then answered with an error of the API server's own.
    fn after_an_outage(client: Client) -> Client {
        let asked = Arc::<Mutex<HashMap<String, u32>>>::default();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (client, asked) = (client.clone(), Arc::clone(&asked));
            async move {
                let times = {
                    let mut asked = asked.lock().unwrap();
                    let times = asked.entry(request.uri().path().to_owned()).or_default();
                    *times += 1;
                    *times
                };
                match times {
                    1 => Err(tower::BoxError::from("connection refused")),
                    2 => Ok(http::Response::builder().status(503).body(Body::empty())?),
                    _ => Ok(client.send(request).await?),
                }
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn outage_of_the_api_server_is_waited_for() {
        let (client, without_rights) = cluster().await;
        install_kinds(&client).await;
        check(&after_an_outage(client), "default", Executor::Api, Duration::ZERO).await.unwrap();
        let right = refusal(&after_an_outage(without_rights), "default").await;
        assert!(right.contains("the right to create pods/exec"), "{right}");
    }
}
