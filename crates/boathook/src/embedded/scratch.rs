//! The folder of an ephemeral cluster: removed when the cluster ends; or, when its process was killed, by the next one that
//! starts.
//!
//! A lock tells whether the process that owns a folder is there: it goes with the process however that ends, and unlike a
//! process ID it is never another process's.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use boathook_process::private;

/// How the names of the folders begin.
const PREFIX: &str = "boathook-";

/// Held by the process that owns the folder.
pub(super) const LOCK: &str = "owner.lock";

pub(super) struct Scratch {
    dir: PathBuf,
    _lock: File,
}

impl Scratch {
    /// A folder of this name in `base`, for this process alone.
    pub(super) fn make(base: &Path, name: &str) -> Result<Self> {
        let dir = base.join(format!("{PREFIX}{name}"));
        let failed = || format!("failed to make the folder `{}`", dir.display());
        private::directory(&dir).with_context(failed)?;
        // A lock that another process sees is held already: else that process could take the folder for an orphan.
        let unseen = dir.join(format!("{LOCK}.new"));
        let lock = private::create_file(&unseen).with_context(failed)?;
        lock.try_lock().with_context(failed)?;
        fs::rename(&unseen, dir.join(LOCK)).with_context(failed)?;
        Ok(Self { dir, _lock: lock })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is in the way of nothing.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes the folders in `base` whose owners were killed. A folder that cannot be removed stays: it must not keep a cluster
/// from starting.
pub(super) fn remove_orphans(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_candidate = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_candidate && let Ok(Some(_lock)) = orphaned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The lock of a folder of this user that no process holds. A folder with a mount below it stays: the mounted files would
/// be removed with it.
fn orphaned(dir: &Path) -> io::Result<Option<File>> {
    let ours = rustix::process::geteuid().as_raw();
    let (folder, lock) = (fs::symlink_metadata(dir)?, fs::symlink_metadata(dir.join(LOCK))?);
    if !folder.is_dir() || !lock.is_file() || folder.uid() != ours || lock.uid() != ours {
        return Ok(None);
    }
    let lock = File::open(dir.join(LOCK))?;
    let is_free = lock.try_lock().is_ok();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok((is_free && !has_mounts(&dir.canonicalize()?, &mounts)).then_some(lock))
}

fn has_mounts(dir: &Path, mountinfo: &str) -> bool {
    // The fifth field is where it is mounted.
    let mut places = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    places.any(|place| Path::new(place).starts_with(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_a_killed_process_is_removed_by_the_next() {
        let base = std::env::temp_dir().join(format!("boathook-scratch-test-{}", std::process::id()));
        fs::create_dir_all(base.join("boathook-foreign")).unwrap();
        let alive = Scratch::make(&base, "alive").unwrap();
        let killed = Scratch::make(&base, "killed").unwrap();
        fs::create_dir_all(killed.dir().join("node/pods")).unwrap();
        fs::write(killed.dir().join("kubeconfig"), "").unwrap();
        // As a kill leaves it: the lock is gone, the folder is not.
        let left = killed.dir().to_owned();
        killed._lock.unlock().unwrap();
        std::mem::forget(killed);
        remove_orphans(&base);
        let there = |name: &str| base.join(name).exists();
        assert!(!left.exists());
        assert_eq!((there("boathook-alive"), there("boathook-foreign")), (true, true), "one is held, one has no lock");
        drop(alive);
        assert!(!there("boathook-alive"), "its owner ended in order");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn folder_with_a_mount_below_it_stays() {
        let mounts = "36 35 98:0 / /tmp/boathook-1/node/x rw - ext4 /dev/sda rw\n37 35 0:5 / /proc rw - proc proc rw\n";
        assert!(has_mounts(Path::new("/tmp/boathook-1"), mounts));
        assert!(!has_mounts(Path::new("/tmp/boathook-2"), mounts));
    }
}
