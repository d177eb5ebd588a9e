//! A small filesystem for the agent's ledger that can be filled. It is not part of the machine's tree: a symbolic link leads
//! to it through an open file of this process, so the kernel frees it when the process ends, also by a kill.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::symlink,
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen};

/// Room for more records than a scenario arms at once.
const SIZE: &str = "1m";

pub struct SmallDisk {
    path: PathBuf,
    _mount: OwnedFd,
}

impl SmallDisk {
    /// Makes one at this path, where nothing is yet. Needs the right to mount.
    pub fn at(path: &Path) -> Result<Self> {
        let mount = mount().context("failed to make a small filesystem")?;
        let target = format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd());
        symlink(&target, path).with_context(|| format!("failed to link `{}`", path.display()))?;
        Ok(Self { path: path.to_owned(), _mount: mount })
    }

    /// From now on every write that needs room fails.
    pub fn fill(&self) -> Result<()> {
        let mut file = fs::File::create(self.filler()).context("failed to make the filler")?;
        loop {
            match file.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error).context("failed to fill the disk"),
            }
        }
    }

    pub fn empty(&self) -> Result<()> {
        fs::remove_file(self.filler()).context("failed to remove the filler")
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

fn mount() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "size", SIZE)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_takes_nothing_until_it_is_emptied() {
        let path = std::env::temp_dir().join(format!("boathook-small-disk-{}", std::process::id()));
        let disk = match SmallDisk::at(&path) {
            Ok(disk) => disk,
            Err(error) => return assert!(!rustix::process::geteuid().is_root(), "root may mount: {error:#}"),
        };
        disk.fill().unwrap();
        assert!(fs::write(path.join("record"), "record").is_err());
        disk.empty().unwrap();
        fs::write(path.join("record"), "record").unwrap();
        assert_eq!(fs::read(path.join("record")).unwrap(), b"record");
        fs::remove_file(&path).unwrap();
    }
}
