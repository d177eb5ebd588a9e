//! Which Kubernetes the cluster runs. A version is pinned by its `require` line in `e2e/go/kubernetes-MINOR/go.mod`
//! and nowhere else; what is here is which of those folders is taken when nobody says.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The minor version that the tests run on.
pub(super) const DEFAULT_MINOR: &str = "1.35";

const MODULE_PREFIX: &str = "kubernetes-";

/// A pinned version: `1.35.8`, built from `kubernetes-1.35`.
#[derive(Debug, PartialEq)]
pub(super) struct Version {
    minor: String,
    patch: String,
}

impl Version {
    /// The version that `e2e/` pins for a minor version.
    pub(super) fn pinned(sources: &Path, minor: &str) -> Result<Self> {
        let module = sources.join("go").join(format!("{MODULE_PREFIX}{minor}")).join("go.mod");
        let Ok(text) = std::fs::read_to_string(&module) else {
            bail!("Kubernetes `{minor}` is not pinned here; choose one of: {}", known(sources)?.join(", "));
        };
        Self::parse(minor, &text).with_context(|| format!("failed to read the version in `{}`", module.display()))
    }

    fn parse(minor: &str, go_mod: &str) -> Result<Self> {
        let required = go_mod
            .lines()
            .map(|line| line.trim().trim_start_matches("require ").trim())
            .find_map(|line| line.strip_prefix("k8s.io/kubernetes v"))
            .and_then(|version| version.split_whitespace().next())
            .context("it requires no `k8s.io/kubernetes`")?;
        let patch = required
            .strip_prefix(minor)
            .and_then(|rest| rest.strip_prefix('.'))
            .with_context(|| format!("it requires {required}, which is no {minor}"))?;
        Ok(Self { minor: minor.to_owned(), patch: patch.to_owned() })
    }

    /// The folder of `e2e/go/` that it is built from.
    pub(super) fn module(&self) -> String {
        format!("{MODULE_PREFIX}{}", self.minor)
    }

    /// Linker flags that tell the binaries their version: without them kubectl cannot parse the server's.
    pub(super) fn linker_flags(&self) -> String {
        let package = "k8s.io/component-base/version";
        let (major, minor) = self.minor.split_once('.').unwrap_or((&self.minor, ""));
        format!("-X {package}.gitVersion=v{self} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.minor, self.patch)
    }
}

fn known(sources: &Path) -> Result<Vec<String>> {
    let mut minors = Vec::new();
    for entry in std::fs::read_dir(sources.join("go")).context("failed to list the pinned versions")? {
        let name = entry.context("failed to list the pinned versions")?.file_name();
        minors.extend(name.to_string_lossy().strip_prefix(MODULE_PREFIX).map(str::to_owned));
    }
    minors.sort();
    Ok(minors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_go_mod_requires() {
        let go_mod = "module m\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 v3.6.5\n\tk8s.io/kubernetes v1.35.8\n)\n";
        let version = Version::parse("1.35", go_mod).unwrap();
        assert_eq!(version.to_string(), "1.35.8");
        assert_eq!(version.module(), "kubernetes-1.35");
        assert!(version.linker_flags().ends_with("gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"));
    }

    #[test]
    fn a_folder_that_requires_another_minor_is_refused() {
        let error = Version::parse("1.36", "require k8s.io/kubernetes v1.35.8 // indirect").unwrap_err();
        assert_eq!(error.to_string(), "it requires 1.35.8, which is no 1.36");
    }

    #[test]
    fn every_pinned_version_can_be_read_and_the_default_is_one_of_them() {
        let sources = Path::new("../e2e");
        let minors = known(sources).unwrap();
        assert!(minors.iter().any(|minor| minor == DEFAULT_MINOR));
        for minor in minors {
            Version::pinned(sources, &minor).unwrap();
        }
    }

    #[test]
    fn an_unknown_version_names_the_known_ones() {
        let sources = Path::new("../e2e");
        let error = Version::pinned(sources, "1.2").unwrap_err().to_string();
        assert!(error.starts_with("Kubernetes `1.2` is not pinned here") && error.contains(DEFAULT_MINOR), "{error}");
    }
}
