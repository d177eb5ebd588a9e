//! What the controllers share: the way to the API server, and what was last seen there.

use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, Resource};

use crate::cache::Cache;
use crate::events::Events;
use crate::snapshot::types::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use crate::volume::local::Storage;

pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) events: Events,
    pub(crate) storage: Storage,
    /// The certificate of each namespace's `kube-root-ca.crt`.
    pub(crate) root_ca: String,
    pub(crate) nodes: Arc<Cache<Node>>,
    pub(crate) pods: Arc<Cache<Pod>>,
    pub(crate) sets: Arc<Cache<ReplicaSet>>,
    pub(crate) deployments: Arc<Cache<Deployment>>,
    pub(crate) namespaces: Arc<Cache<Namespace>>,
    /// Only those that every namespace has.
    pub(crate) accounts: Arc<Cache<ServiceAccount>>,
    /// Only those that every namespace has.
    pub(crate) bundles: Arc<Cache<ConfigMap>>,
    pub(crate) definitions: Arc<Cache<CustomResourceDefinition>>,
    pub(crate) claims: Arc<Cache<PersistentVolumeClaim>>,
    pub(crate) volumes: Arc<Cache<PersistentVolume>>,
    pub(crate) classes: Arc<Cache<StorageClass>>,
    pub(crate) snapshots: Arc<Cache<VolumeSnapshot>>,
    pub(crate) contents: Arc<Cache<VolumeSnapshotContent>>,
    pub(crate) snapshot_classes: Arc<Cache<VolumeSnapshotClass>>,
    pub(crate) services: Arc<Cache<Service>>,
    pub(crate) endpoints: Arc<Cache<Endpoints>>,
    /// Only those that the controller of this crate made.
    pub(crate) slices: Arc<Cache<EndpointSlice>>,
}

impl Cluster {
    /// The objects of a kind in a namespace.
    pub(crate) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}
