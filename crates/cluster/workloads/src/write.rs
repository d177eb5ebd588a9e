//! Writes that may be repeated: what was wanted and is so already is no failure.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, TypeMeta};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::cache::Kept;
use crate::error::{Error, Result};

/// For deletions and removals of finalizers: that it is gone is what was wanted.
pub(crate) fn gone_is_fine<T>(result: kube::Result<T>) -> Result<()> {
    match result.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// For things with names of their own: one that is there is the one that was wanted.
pub(crate) fn there_is_fine<T>(result: kube::Result<T>) -> Result<()> {
    match result.map_err(Error::from) {
        Err(error) if error.already_exists() => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// For things that are made from a cache: they may be there already, or their namespace may be about to go.
pub(crate) fn made_is_fine<T>(result: kube::Result<T>) -> Result<()> {
    match there_is_fine(result) {
        Err(error) if error.is_not_found() || error.namespace_is_terminating() => Ok(()),
        outcome => outcome,
    }
}

/// Sets or takes away a finalizer; whether that changed anything.
pub(crate) async fn protect<K: Kept>(api: &Api<K>, object: &K, finalizer: &str, wanted: bool) -> Result<bool> {
    let mut finalizers = object.finalizers().to_vec();
    if finalizers.iter().any(|other| other == finalizer) == wanted {
        return Ok(false);
    }
    if wanted {
        finalizers.push(finalizer.to_owned());
    } else {
        finalizers.retain(|other| other != finalizer);
    }
    patch(api, object, json!({"metadata": {"finalizers": finalizers}})).await?;
    Ok(true)
}

/// A merge patch, held to the version that was seen. That the object is gone is fine.
pub(crate) async fn patch<K: Kept>(api: &Api<K>, seen: &K, mut change: Value) -> Result<()> {
    change["metadata"]["resourceVersion"] = json!(seen.resource_version());
    gone_is_fine(api.patch(&seen.name_any(), &PatchParams::default(), &Patch::Merge(change)).await)
}

/// A merge patch of the status, whatever its version.
pub(crate) async fn patch_status<K: Kept>(api: &Api<K>, object: &K, status: Value) -> Result<()> {
    let change = Patch::Merge(json!({"status": status}));
    gone_is_fine(api.patch_status(&object.name_any(), &PatchParams::default(), &change).await)
}

/// Makes an object of kind `K` from what its manifest would say beside its kind.
pub(crate) async fn create<K: Resource<DynamicType = ()>>(client: &Client, manifest: Value) -> kube::Result<()> {
    let kind = ApiResource::erase::<K>(&());
    let mut object: DynamicObject = serde_json::from_value(manifest).map_err(kube::Error::SerdeError)?;
    object.types = Some(TypeMeta::resource::<K>());
    let api = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    api.create(&PostParams::default(), &object).await.map(drop)
}
