//! Settings of the whole machine that a kubelet changes when it starts: as they were, to be put back by `down`.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::files;
use super::layout::Layout;

/// The kubelet's own list (`protectKernelDefaults: false` lets it set them).
const CHANGED: [&str; 5] = [
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
];

/// A link to the folder of each cluster that runs on this machine. The first kubelet changes the settings, so a later
/// cluster copies the noted values of an earlier one, and only the last one puts them back.
const CLUSTERS: &str = "/run/boathook-clusters";

const NOTE: &str = "sysctls.json";

/// Notes the settings before the first kubelet starts.
pub(super) fn remember(layout: &Layout) -> Result<()> {
    let (clusters, note) = (Path::new(CLUSTERS), layout.path(NOTE));
    files::folder(clusters)?;
    let link = clusters.join(layout.cgroup());
    if !link.is_symlink() {
        symlink(&layout.dir, &link).with_context(|| format!("failed to create `{}`", link.display()))?;
    }
    if note.exists() {
        return Ok(());
    }
    let before = match notes_of_others(clusters, layout)?.first() {
        Some(other) => fs::read_to_string(other).with_context(|| format!("failed to read `{}`", other.display()))?,
        None => {
            let value =
                |name: &&str| Some(((*name).to_owned(), fs::read_to_string(path(name)).ok()?.trim().to_owned()));
            let before: BTreeMap<String, String> = CHANGED.iter().filter_map(value).collect();
            serde_json::to_string(&before).context("settings are plain data")?
        }
    };
    files::write(&note, before)
}

/// Puts the noted settings back, unless another cluster runs.
pub(super) fn put_back(layout: &Layout) -> Result<()> {
    let clusters = Path::new(CLUSTERS);
    let is_last = notes_of_others(clusters, layout)?.is_empty();
    if let Ok(text) = fs::read_to_string(layout.path(NOTE))
        && is_last
    {
        let before: BTreeMap<String, String> =
            serde_json::from_str(&text).context("failed to read the noted settings")?;
        for (name, value) in before {
            fs::write(path(&name), value).with_context(|| format!("failed to put back the setting `{name}`"))?;
        }
    }
    // Both may be gone already; a folder with other links in it stays.
    let _ = fs::remove_file(clusters.join(layout.cgroup()));
    let _ = fs::remove_dir(clusters);
    Ok(())
}

/// The notes of the other clusters of this machine. A link whose folder is gone counts for nothing.
fn notes_of_others(clusters: &Path, layout: &Layout) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(clusters) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("failed to list `{}`", clusters.display())),
    };
    let own = clusters.join(layout.cgroup());
    let links = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(links.into_iter().filter(|link| *link != own).map(|link| link.join(NOTE)).filter(|note| note.exists()).collect())
}

fn path(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}
