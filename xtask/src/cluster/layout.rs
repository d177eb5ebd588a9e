//! Where everything of the test cluster lies: one folder for the running cluster, which `down` removes, and one for
//! what is worth keeping (binaries, images), which lies outside the checkout and outlives it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The running cluster's folder. Short, because sockets lie below it and their paths may have only 107 bytes.
const DEFAULT_DIR: &str = "/var/lib/boathook-cluster";

pub(super) struct Layout {
    /// The running cluster: sockets, data, logs, certificates. `BOATHOOK_CLUSTER_DIR` moves it.
    pub(super) dir: PathBuf,
    /// Binaries and images, kept between clusters. `BOATHOOK_CACHE` moves it.
    pub(super) cache: PathBuf,
    /// The checkout's `e2e/`: pinned modules, configuration, manifests, sources of images.
    pub(super) sources: PathBuf,
}

impl Layout {
    pub(super) fn from_environment() -> Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the checkout")?.join("e2e");
        Ok(Self {
            dir: variable("BOATHOOK_CLUSTER_DIR").unwrap_or_else(|| DEFAULT_DIR.into()),
            cache: cache()?,
            sources,
        })
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.dir.join(below)
    }

    pub(super) fn log(&self, component: &str) -> PathBuf {
        self.dir.join("log").join(format!("{component}.log"))
    }

    pub(super) fn admin_kubeconfig(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    pub(super) fn network(&self) -> PathBuf {
        self.dir.join("network")
    }

    /// The name of the cluster's cgroup, in every hierarchy: its folder's, so that two clusters have two.
    pub(super) fn cgroup(&self) -> String {
        self.dir.file_name().unwrap_or(self.dir.as_os_str()).to_string_lossy().into_owned()
    }

    /// A text of `e2e/` with this cluster's own values in it.
    pub(super) fn filled(&self, source: &str) -> Result<String> {
        let path = self.sources.join(source);
        let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
        Ok(text.replace("{dir}", &self.dir.to_string_lossy()).replace("{cgroup}", &self.cgroup()))
    }
}

fn cache() -> Result<PathBuf> {
    if let Some(cache) = variable("BOATHOOK_CACHE") {
        return Ok(cache);
    }
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Ok(base
        .context("neither BOATHOOK_CACHE nor HOME is set: set one of them to say where binaries are kept")?
        .join("boathook"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
