//! Settings of the whole machine that a kubelet changes when it starts: as they were, to be put back by `down`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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

fn file(layout: &Layout) -> std::path::PathBuf {
    layout.path("sysctls.json")
}

/// Notes the settings before the first kubelet starts.
pub(super) fn remember(layout: &Layout) -> Result<()> {
    if file(layout).exists() {
        return Ok(());
    }
    let value = |name: &&str| Some(((*name).to_owned(), fs::read_to_string(path(name)).ok()?.trim().to_owned()));
    let before: BTreeMap<String, String> = CHANGED.iter().filter_map(value).collect();
    files::write(&file(layout), serde_json::to_string(&before).context("settings are plain data")?)
}

/// Puts them back as they were noted, if they were.
pub(super) fn put_back(layout: &Layout) -> Result<()> {
    let Ok(text) = fs::read_to_string(file(layout)) else { return Ok(()) };
    let before: BTreeMap<String, String> = serde_json::from_str(&text).context("failed to read the noted settings")?;
    for (name, value) in before {
        fs::write(path(&name), value).with_context(|| format!("failed to put back the setting `{name}`"))?;
    }
    Ok(())
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new("/proc/sys").join(name)
}
