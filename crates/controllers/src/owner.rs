//! Who made an object, by its owner references.

use kube::{Resource, ResourceExt, runtime::reflector::ObjectRef};

/// The owner of this kind, if there is one.
pub(crate) fn of<Owner>(object: &impl ResourceExt) -> Option<ObjectRef<Owner>>
where
    Owner: Resource<DynamicType = ()>,
{
    let owners = object.owner_references();
    let owner = owners.iter().find(|owner| owner.kind == Owner::kind(&()) && owner.controller == Some(true))?;
    Some(ObjectRef::new(&owner.name).within(&object.namespace().unwrap_or_default()))
}
