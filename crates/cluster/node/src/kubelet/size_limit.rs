//! `emptyDir.sizeLimit`: a pod whose scratch volume has grown past its limit is evicted, as by a kubelet.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use boathook_workloads::quantity;
use k8s_openapi::api::core::v1::Pod;

use super::pod::PodExt;
use super::volumes::Prepared;

/// What `stat` counts a file's blocks in.
const BLOCK: u64 = 512;

/// What is said of the first volume that is too large, in a kubelet's words.
pub(super) async fn exceeded(pod: &Pod, volumes: &BTreeMap<String, Prepared>) -> Option<String> {
    for volume in pod.pod_spec().volumes.iter().flatten() {
        let limit = volume.empty_dir.as_ref().and_then(|scratch| scratch.size_limit.as_ref());
        let (Some(limit), Some(prepared)) = (limit, volumes.get(&volume.name)) else { continue };
        let (path, most) = (prepared.path.clone(), quantity::bytes(limit));
        let is_past = tokio::task::spawn_blocking(move || most > 0 && takes_more_than(most, path)).await;
        if is_past.unwrap_or(false) {
            return Some(format!("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ", volume.name, limit.0));
        }
    }
    None
}

/// Files come and go meanwhile: what cannot be looked at takes nothing.
fn takes_more_than(most: u64, folder: PathBuf) -> bool {
    let (mut taken, mut left) = (size(&folder), vec![folder]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            taken += size(&entry.path());
            if taken > most {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(entry.path());
            }
        }
    }
    taken > most
}

fn size(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).map_or(0, |file| file.blocks() * BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_count_and_what_links_lead_to_does_not() {
        let dir = std::env::temp_dir().join(format!("boathook-size-limit-{}", std::process::id()));
        let (volume, beside) = (dir.join("volume"), dir.join("beside"));
        std::fs::create_dir_all(volume.join("below")).unwrap();
        std::fs::write(&beside, vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(&beside, volume.join("link")).unwrap();
        assert!(!takes_more_than(1 << 19, volume.clone()));
        std::fs::write(volume.join("below/file"), vec![1; 1 << 20]).unwrap();
        assert!(takes_more_than(1 << 19, volume.clone()));
        assert!(!takes_more_than(1 << 21, volume));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
