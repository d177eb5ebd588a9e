//! The folder that both systems keep their data in, gone afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::statfs;

/// What the kernel calls a file system that lives in memory.
const TMPFS: u64 = 0x0102_1994;

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make(within: Option<&Path>) -> Result<Self> {
        let within = within.map_or_else(std::env::temp_dir, Path::to_owned);
        let found = statfs(&within).with_context(|| format!("failed to look at the folder `{}`", within.display()))?;
        if u64::try_from(found.f_type) == Ok(TMPFS) {
            bail!("`{}` is in memory, where nothing is durable: name a folder on a disk with --dir", within.display());
        }
        let path = within.join(format!("boathook-bench-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("failed to make the folder `{}`", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("failed to remove the folder `{}`: {error}", self.0.display());
        }
    }
}
