//! The owner of an object, by its owner references.

use std::fmt::Debug;

use boathook_api::names;
use boathook_runtime::in_time;
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt, runtime::reflector::ObjectRef};
use serde::de::DeserializeOwned;

/// The owner of this kind, if there is one.
pub(crate) fn of<Owner>(object: &impl ResourceExt) -> Option<ObjectRef<Owner>>
where
    Owner: Resource<DynamicType = ()>,
{
    let owners = object.owner_references();
    let owner = owners.iter().find(|owner| owner.kind == Owner::kind(&()) && owner.controller == Some(true))?;
    Some(ObjectRef::new(&owner.name).within(&object.namespace().unwrap_or_default()))
}

/// Whether the object's owner of this kind is gone or no longer wants the object. An object without such an owner is
/// wanted for itself.
///
/// The API server is asked before an action begins: a leader that was stopped in the middle of a write may create an object
/// long after everything was taken back.
pub(crate) async fn has_let_go<Owner>(
    client: &Client,
    object: &impl ResourceExt,
    wants: impl Fn(&Owner) -> bool,
) -> Result<bool, kube::Error>
where
    Owner: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let owners = object.owner_references();
    let owner = owners.iter().find(|owner| owner.kind == Owner::kind(&()) && owner.controller == Some(true));
    let Some(owner) = owner else { return Ok(false) };
    // The API server accepts any text here, and some would change the path of the request. No object has such a name.
    if names::object("name", &owner.name).is_err() {
        return Ok(true);
    }
    let api: Api<Owner> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let found = in_time(api.get_opt(&owner.name)).await?;
    let found = found.filter(|found| found.uid().as_deref() == Some(&owner.uid));
    Ok(!found.is_some_and(|found| found.meta().deletion_timestamp.is_none() && wants(&found)))
}
