//! Whether an object was made for another one: its name alone does not tell, for anybody may take a name first.

use kube::ResourceExt;

/// Whether its controller is the object with this UID.
pub(crate) fn is_made_for(object: &impl ResourceExt, maker: Option<&String>) -> bool {
    let owners = object.owner_references();
    maker.is_some() && owners.iter().any(|owner| owner.controller == Some(true) && Some(&owner.uid) == maker)
}
