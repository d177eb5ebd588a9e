//! What a new claim is to be filled with: nothing, or a snapshot.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use super::types::GROUP;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::quantity;
use crate::volume::local;

/// The directory to copy; none for an empty volume. An error if it is not there (yet).
pub(crate) fn find(claim: &PersistentVolumeClaim, cluster: &Cluster) -> Result<Option<PathBuf>> {
    let spec = claim.spec.clone().unwrap_or_default();
    let (group, kind, name) = match (spec.data_source_ref, spec.data_source) {
        (Some(source), _) => (source.api_group, source.kind, source.name),
        (None, Some(source)) => (source.api_group, source.kind, source.name),
        (None, None) => return Ok(None),
    };
    let key = Key::beside(claim, name);
    let wanted = spec.resources.and_then(|resources| resources.requests?.get("storage").map(quantity::bytes));
    match (group.as_deref().unwrap_or_default(), kind.as_str()) {
        (GROUP, "VolumeSnapshot") => of_snapshot(&key, wanted.unwrap_or_default(), cluster).map(Some),
        (group, kind) => Err(Error::Other(format!("the data source {kind} of group \"{group}\" is not supported"))),
    }
}

fn of_snapshot(key: &Key, wanted: u64, cluster: &Cluster) -> Result<PathBuf> {
    let name = &key.name;
    let failed = |why: String| {
        Error::Other(format!("error getting handle for DataSource Type VolumeSnapshot by Name {name}: {why}"))
    };
    let missing =
        || failed(format!("error getting snapshot {name} from api server: volumesnapshots \"{name}\" not found"));
    let status = cluster.snapshots.get(key).ok_or_else(missing)?.status.clone();
    if !status.is_ready() {
        return Err(failed(format!("snapshot {name} is not Ready")));
    }
    let size = status.restore_size.as_ref().map(quantity::bytes).unwrap_or_default();
    if wanted < size {
        let why = format!("requested volume size {wanted} is less than the size {size} for the source snapshot {name}");
        return Err(Error::Other(why));
    }
    let content = status.bound_volume_snapshot_content_name.unwrap_or_default();
    let content = cluster.contents.get(&Key::cluster(content));
    let content = content.filter(|content| content.spec.driver == local::PROVISIONER);
    let handle = content.and_then(|content| content.status.snapshot_handle.clone());
    let unbound = || failed(format!("snapshot {name} is not bound"));
    Ok(cluster.storage.snapshot(&handle.ok_or_else(unbound)?))
}
