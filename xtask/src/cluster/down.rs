//! `cluster down`: ends every process of the cluster and takes away all it made, whatever state it was left in.
//!
//! It asks nothing of the cluster itself: processes are found by its cgroup, mounts and files by its folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::mount::{UnmountFlags, unmount};

use super::cgroups::Cgroup;
use super::layout::Layout;
use super::{files, sysctls};
use crate::say::Step;

pub(super) fn down(layout: &Layout) -> Result<()> {
    if !layout.is_free_or_ours()? {
        bail!("`{}` is not a cluster's folder; nothing was touched", layout.dir.display());
    }
    let cgroup = Cgroup::named(&layout.cgroup())?;
    if cgroup.left().is_empty() && !layout.dir.exists() {
        eprintln!("no cluster is up");
        return Ok(());
    }
    let step = Step::start("ending the cluster");
    cgroup.end_all()?;
    sysctls::put_back(layout)?;
    unmount_all(&layout.dir)?;
    remove_outside(layout)?;
    files::remove_folder(&layout.dir)?;
    cgroup.remove()?;
    verify(layout, &cgroup)?;
    step.done();
    Ok(())
}

/// Everything that the cluster mounted lies below its folder; the last mounted goes first.
fn unmount_all(dir: &Path) -> Result<()> {
    // A mount may hide others at the same place: they appear when it is gone.
    while let Some(mount) = mounts_below(dir)?.pop() {
        unmount(&mount, UnmountFlags::DETACH).with_context(|| format!("failed to unmount `{}`", mount.display()))?;
    }
    Ok(())
}

fn mounts_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("failed to read the mounts")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    Ok(points.map(|point| PathBuf::from(unescape(point))).filter(|point| point.starts_with(dir)).collect())
}

/// The kernel writes a space, a tab, a newline and a backslash of a path as three octal digits.
fn unescape(point: &str) -> String {
    point.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// What containerd, CNI and the kubelet put into places that no setting moves, each known to be the cluster's own.
fn remove_outside(layout: &Layout) -> Result<()> {
    for bundle in entries(&layout.path("containerd/state/io.containerd.runtime.v2.task/k8s.io")) {
        if let Ok(address) = fs::read_to_string(bundle.join("address")) {
            remove_file(Path::new(address.trim().trim_start_matches("unix://")))?;
        }
    }
    for result in entries(Path::new("/var/lib/cni/results")) {
        // It names the network of its pod, which lies below the cluster's folder.
        if fs::read_to_string(&result).is_ok_and(|text| text.contains(&format!("{}/", layout.dir.display()))) {
            remove_file(&result)?;
        }
    }
    for link in entries(Path::new("/var/log/containers")) {
        if fs::read_link(&link).is_ok_and(|target| target.starts_with(&layout.dir)) {
            remove_file(&link)?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

fn verify(layout: &Layout, cgroup: &Cgroup) -> Result<()> {
    let left: Vec<PathBuf> = mounts_below(&layout.dir)?.into_iter().chain(cgroup.left()).collect();
    if !left.is_empty() || layout.dir.exists() {
        bail!("still there after everything was taken away: {left:?}, or the folder `{}`", layout.dir.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_with_a_space_is_read_as_it_is() {
        assert_eq!(unescape("/a\\040b\\134c"), "/a b\\c");
    }
}
