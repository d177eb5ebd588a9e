//! Objects of the demo, all in one namespace: made, and waited for.

use std::fmt::Debug;

use anyhow::{Context, Result};
use boathook_api::volume_snapshot::VolumeSnapshot;
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Pod};
use kube::{Api, Client, Resource, ResourceExt, api::PostParams, runtime::wait::await_condition};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A kind whose objects are in a namespace.
pub(super) trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + 'static
{
}

pub(super) fn of<K: Kind>(client: &Client) -> Api<K> {
    Api::default_namespaced(client.clone())
}

pub(super) async fn create<K: Kind>(client: &Client, object: Value) -> Result<K> {
    let kind = K::kind(&());
    let object: K = serde_json::from_value(object).with_context(|| format!("failed to write a {kind}"))?;
    let created = of::<K>(client).create(&PostParams::default(), &object).await;
    created.with_context(|| format!("failed to create {kind} `{}`", object.name_any()))
}

/// Waits until the object is so.
pub(super) async fn reached<K: Kind>(client: &Client, name: &str, is_so: impl Fn(&K) -> bool) -> Result<K> {
    let is_so = |object: Option<&K>| object.is_some_and(&is_so);
    let found = await_condition(of::<K>(client), name, is_so).await;
    found.with_context(|| format!("failed to watch {} `{name}`", K::kind(&())))?.context("it is gone")
}

pub(super) fn is_running(pod: &Pod) -> bool {
    phase(pod) == Some("Running")
}

/// Its containers have ended for good.
pub(super) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), Some("Succeeded" | "Failed"))
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// A claim can be restored from it.
pub(super) fn is_ready(snapshot: &VolumeSnapshot) -> bool {
    snapshot.status.as_ref().is_some_and(|status| status.ready_to_use == Some(true))
}
