//! Where everything of the test cluster lies: one folder for the running cluster, which `down` removes, and one for
//! what is worth keeping (binaries, images), which lies outside the checkout and outlives it.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::files;

/// The running cluster's folder. Short, because sockets lie below it and their paths may have only 107 bytes.
const DEFAULT_DIR: &str = "/var/lib/boathook-cluster";

/// The file that says whose the folder is, written before anything else.
const MARK: &str = "boathook-cluster";
/// The longest socket path below a folder of this length still fits.
const LONGEST_DIR: usize = 60;

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
        // As cargo says it now: with a shared target folder this program may have been built in another checkout. The
        // cluster's own programs, which are started without cargo, need no sources.
        let package = variable("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let sources = package.parent().context("xtask lies in the checkout")?.join("e2e");
        let dir = variable("BOATHOOK_CLUSTER_DIR").unwrap_or_else(|| DEFAULT_DIR.into());
        check_dir(&dir)?;
        Ok(Self { dir, cache: cache()?, sources })
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

    /// The name of the cluster's cgroup, in every hierarchy: its folder's whole path, so that each cluster has its own.
    pub(super) fn cgroup(&self) -> String {
        self.dir.to_string_lossy().trim_matches('/').replace('/', "-")
    }

    /// Takes the folder for a cluster. One that holds anything else is not taken.
    pub(super) fn claim(&self) -> Result<()> {
        if !self.is_free_or_ours()? {
            bail!("`{}` holds something else than a cluster; nothing was touched", self.dir.display());
        }
        files::folder(&self.dir)?;
        files::write(&self.dir.join(MARK), "cargo xtask cluster down removes this folder with all that is in it\n")
    }

    /// Whether the folder may be removed: it is a cluster's, or there is nothing in it.
    pub(super) fn is_free_or_ours(&self) -> Result<bool> {
        match std::fs::read_dir(&self.dir) {
            Ok(mut entries) => Ok(self.dir.join(MARK).exists() || entries.next().is_none()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error).with_context(|| format!("failed to look into `{}`", self.dir.display())),
        }
    }

    /// A text of `e2e/` with this cluster's own values in it.
    pub(super) fn filled(&self, source: &str) -> Result<String> {
        let path = self.sources.join(source);
        let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
        Ok(text.replace("{dir}", &self.dir.to_string_lossy()).replace("{cgroup}", &self.cgroup()))
    }
}

/// `down` ends every process of the folder's cgroup and removes the folder: names that could be anything else's are not
/// taken.
fn check_dir(dir: &Path) -> Result<()> {
    let text = dir.to_string_lossy();
    let is_plain = dir.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    let is_ours = dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("boathook"));
    if !dir.is_absolute() || !is_plain || !is_ours || dir.is_symlink() {
        bail!(
            "`{text}` cannot be a cluster's folder: it must be an absolute path without `..`, no link, and its name must begin with `boathook`"
        );
    }
    if text.contains(char::is_whitespace) || text.len() > LONGEST_DIR {
        bail!(
            "`{text}` cannot be a cluster's folder: at most {LONGEST_DIR} bytes and no spaces, because sockets lie below it"
        );
    }
    Ok(())
}

fn cache() -> Result<PathBuf> {
    if let Some(cache) = variable("BOATHOOK_CACHE") {
        return std::path::absolute(cache).context("BOATHOOK_CACHE is no path");
    }
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Ok(base
        .context("neither BOATHOOK_CACHE nor HOME is set: set one of them to say where binaries are kept")?
        .join("boathook"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_with_a_name_of_ours_can_be_ended_and_removed() {
        check_dir(Path::new(DEFAULT_DIR)).unwrap();
        for dir in ["/", "/var/lib/docker", "boathook", "/var/lib/boathook/..", "/var/lib/boathook x"] {
            assert!(check_dir(Path::new(dir)).is_err(), "{dir}");
        }
        assert!(check_dir(&Path::new("/").join("x".repeat(60)).join("boathook")).is_err());
    }
}
