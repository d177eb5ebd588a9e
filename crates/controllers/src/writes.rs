//! The writes that controllers of several kinds make: each within a deadline, each checked against the version that was
//! looked at.

use std::fmt::Debug;

use boathook_runtime::{Classified, ErrorClass, error_class::chain, in_time, webhook::without_tokens};
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use snafu::{ResultExt, Snafu};

#[derive(Debug, Snafu)]
pub enum WriteError {
    #[snafu(display("failed to {what} {object}"))]
    Call { what: &'static str, object: String, source: kube::Error },
}

impl WriteError {
    /// For a person: in the API server's own words, if it answered.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Call { source: kube::Error::Api(status), .. } => {
                without_tokens(&format!("{self}: {}", status.message))
            }
            Self::Call { .. } => chain(self),
        }
    }

    /// Whether the API server answered, and not that it has too much to do.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Call { source: kube::Error::Api(status), .. } => status.code != 429,
            Self::Call { .. } => false,
        }
    }
}

impl Classified for WriteError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Call { source, .. } => source.class(),
        }
    }
}

/// What can be written here: a kind of a namespace, known at compile time.
pub(crate) trait Written:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

impl<K> Written for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}

/// Replaces the status by that of `next`, which is the object as it was looked at but for its status.
pub(crate) async fn write_status<K: Written>(client: &Client, next: &K) -> Result<K, WriteError> {
    let name = next.name_any();
    let written = in_time(api(client, next).replace_status(&name, &PostParams::default(), next)).await;
    written.context(of::<K>("write the status of", &name))
}

/// What became of an object that was to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    New,
    /// One of its name is there already. It may be the same, made earlier, or anybody's: whoever asked has to look.
    WasThere,
}

/// Creates it, unless one of its name is there already.
pub(crate) async fn create<K: Written>(client: &Client, new: &K) -> Result<Made, WriteError> {
    match create_new(client, new).await {
        Err(error) if error.class() == ErrorClass::AlreadyExists => Ok(Made::WasThere),
        answer => answer.map(|()| Made::New),
    }
}

/// Creates it; it fails if one of its name is there.
pub(crate) async fn create_new<K: Written>(client: &Client, new: &K) -> Result<(), WriteError> {
    let made = in_time(api(client, new).create(&PostParams::default(), new)).await;
    made.map(drop).context(of::<K>("create", &new.name_any()))
}

/// Adds or removes a finalizer. Nothing holds what is gone.
pub(crate) async fn hold<K: Written>(
    client: &Client,
    object: &K,
    finalizer: &str,
    held: bool,
) -> Result<K, WriteError> {
    let mut finalizers = object.finalizers().to_vec();
    finalizers.retain(|one| one != finalizer);
    if held {
        finalizers.push(finalizer.to_owned());
    }
    let what = if held { "add the finalizer of" } else { "remove the finalizer of" };
    match patch_metadata(client, object, what, json!({"finalizers": finalizers})).await {
        Err(error) if !held && error.class() == ErrorClass::NotFound => Ok(object.clone()),
        answer => answer,
    }
}

/// Adds an owner to those that it has.
pub(crate) async fn set_owner<K: Written>(client: &Client, object: &K, owner: OwnerReference) -> Result<K, WriteError> {
    let mut owners = object.owner_references().to_vec();
    owners.push(owner);
    patch_metadata(client, object, "set the owner of", json!({"ownerReferences": owners})).await
}

/// Of the version that was looked at, or it fails.
async fn patch_metadata<K: Written>(
    client: &Client,
    object: &K,
    what: &'static str,
    mut metadata: Value,
) -> Result<K, WriteError> {
    metadata["resourceVersion"] = json!(object.resource_version());
    let (name, patch) = (object.name_any(), Patch::Merge(json!({"metadata": metadata})));
    let written = in_time(api(client, object).patch(&name, &PatchParams::default(), &patch)).await;
    written.context(of::<K>(what, &name))
}

/// A merge patch of an object that may have gone: then there is nothing to do. Nor is there if the patch says its UID and
/// the name is another one's by now.
pub(crate) async fn patch<K: Written>(
    client: &Client,
    namespace: &str,
    name: &str,
    what: &'static str,
    patch: Value,
) -> Result<(), WriteError> {
    patch_as::<K>(client, namespace, name, what, (&PatchParams::default(), patch)).await
}

/// The same, with a field manager.
pub(crate) async fn patch_as<K: Written>(
    client: &Client,
    namespace: &str,
    name: &str,
    what: &'static str,
    (params, patch): (&PatchParams, Value),
) -> Result<(), WriteError> {
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    match in_time(api.patch(name, params, &Patch::Merge(patch))).await {
        Err(error) if error.class() == ErrorClass::NotFound || is_of_another(&error) => Ok(()),
        answer => answer.map(drop).context(of::<K>(what, name)),
    }
}

/// Whether a patch was refused for the UID in it: of a patch, unlike an update, Kubernetes says that as of any field that
/// cannot be changed.
fn is_of_another(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

/// A strategic merge patch of the status of an object of Kubernetes' own: lists are merged by their keys, so that what
/// others wrote stays. If it is gone, there is nothing to do.
pub(crate) async fn merge_status<K: Written>(api: &Api<K>, name: &str, patch: Value) -> Result<(), WriteError> {
    match in_time(api.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch))).await {
        Err(error) if error.class() == ErrorClass::NotFound => Ok(()),
        answer => answer.map(drop).context(of::<K>("write the conditions of", name)),
    }
}

/// Deletes exactly this object; if it is gone, so be it.
pub(crate) async fn delete<K: Written>(
    client: &Client,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<(), WriteError> {
    let preconditions = Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None });
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    match in_time(api.delete(name, &DeleteParams { preconditions, ..DeleteParams::default() })).await {
        // Another one of its name is not it.
        Err(error) if matches!(error.class(), ErrorClass::NotFound | ErrorClass::Conflict) => Ok(()),
        answer => answer.map(drop).context(of::<K>("delete", name)),
    }
}

fn api<K: Written>(client: &Client, object: &K) -> Api<K> {
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}

fn of<K: Written>(what: &'static str, name: &str) -> CallSnafu<&'static str, String> {
    CallSnafu { what, object: format!("{} `{name}`", K::kind(&())) }
}
