//! What a scenario is given: a client, a namespace of its own, and a way to make objects that go with it.

use std::{
    fmt::Debug,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Config, Resource, ResourceExt, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};

use crate::{cluster::Cluster, images::Images, namespace, watch::Watchable};

/// Marks what the harness makes: the scenarios' namespaces, and cluster-scoped objects that were made with
/// [`Ctx::create_cluster_scoped`]. After a run that was killed, this label finds what it left.
pub const TEST_LABEL: (&str, &str) = ("boathook.dev/test", "scenarios");

type Removal = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = Result<()>>>> + Send>;

/// What a scenario is given. Everything made in its namespace, or by [`Ctx::create_cluster_scoped`], is removed after
/// it, however it ends.
#[derive(Clone)]
pub struct Ctx {
    cluster: Cluster,
    namespace: String,
    removals: Arc<Mutex<Vec<Removal>>>,
}

impl Ctx {
    pub(crate) fn new(cluster: Cluster, namespace: String) -> Self {
        Self { cluster, namespace, removals: Arc::default() }
    }

    /// The namespace of this scenario alone.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A client with every right.
    pub fn client(&self) -> Client {
        self.cluster.client.clone()
    }

    /// The images that the cluster has.
    pub fn images(&self) -> Images {
        self.cluster.images
    }

    /// How the cluster is reached, to change it and make another client from it.
    pub fn config(&self) -> Config {
        self.cluster.config.clone()
    }

    /// A client that acts as this user, who is in no group but `system:authenticated`.
    pub fn client_as(&self, user: &str) -> Result<Client> {
        let mut config = self.config();
        config.auth_info.impersonate = Some(user.to_owned());
        Client::try_from(config).with_context(|| format!("failed to make a client for user `{user}`"))
    }

    /// The objects of one kind in the scenario's namespace.
    pub fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Creates an object in the scenario's namespace.
    pub async fn create<K>(&self, object: &K) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
    {
        self.api()
            .create(&PostParams::default(), object)
            .await
            .with_context(|| format!("failed to create {} `{}`", K::kind(&()), object.name_any()))
    }

    /// Creates a cluster-scoped object that is removed after the scenario. Its name must be the scenario's own, so
    /// best begins with the namespace's; it gets [`TEST_LABEL`].
    pub async fn create_cluster_scoped<K>(&self, mut object: K) -> Result<K>
    where
        K: Watchable + Resource<Scope = ClusterResourceScope>,
    {
        let name = object.name_any();
        let (key, value) = TEST_LABEL;
        object.labels_mut().insert(key.to_owned(), value.to_owned());
        // Before the create: one whose answer is lost has happened all the same.
        let (client, to_remove) = (self.client(), name.clone());
        self.afterwards(|| Box::pin(namespace::remove::<K>(client, to_remove)));
        Api::all(self.client())
            .create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("failed to create {} `{name}`", K::kind(&())))
    }

    /// Has this removed after the scenario, before its namespace goes; what was said last is done first.
    pub(crate) fn afterwards(
        &self,
        removal: impl FnOnce() -> Pin<Box<dyn Future<Output = Result<()>>>> + Send + 'static,
    ) {
        self.lock_removals().push(Box::new(removal));
    }

    /// Removes what was made outside of the namespace, the latest first; every one is tried.
    pub(crate) async fn remove_cluster_scoped(&self) -> Result<()> {
        let removals = std::mem::take(&mut *self.lock_removals());
        let mut outcome = Ok(());
        for removal in removals.into_iter().rev() {
            outcome = outcome.and(removal().await);
        }
        outcome
    }

    fn lock_removals(&self) -> std::sync::MutexGuard<'_, Vec<Removal>> {
        // A list is whole between two pushes, also when a panic came in between.
        self.removals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
