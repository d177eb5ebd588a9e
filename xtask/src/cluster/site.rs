//! One cluster on this machine: its folder, its programs, its port; and kubectl to talk to it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::binaries::Binaries;
use super::files;
use super::layout::Layout;

pub(super) struct Site {
    pub(super) layout: Layout,
    pub(super) binaries: Binaries,
    /// The API server's port, inside the cluster's network and on the host's loopback.
    pub(super) port: u16,
    pub(super) own_program: PathBuf,
}

impl Site {
    pub(super) fn dir(&self) -> String {
        self.layout.dir.display().to_string()
    }

    /// Runs kubectl as the cluster's admin; what it says is in the error.
    pub(super) fn kubectl(&self, arguments: &[&str]) -> Result<()> {
        let output = self.run_kubectl(arguments)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`kubectl {}` failed: {}", arguments.join(" "), said.trim());
        }
        Ok(())
    }

    /// Whether kubectl succeeds; why not does not matter.
    pub(super) fn kubectl_agrees(&self, arguments: &[&str]) -> bool {
        let bounded = [&["--request-timeout=10s"], arguments].concat();
        self.run_kubectl(&bounded).is_ok_and(|output| output.status.success())
    }

    /// Whether the API server's discovery lists all these resources, each named with its group.
    pub(super) fn serves(&self, group: &str, resources: &[String]) -> bool {
        let group = format!("--api-group={group}");
        let asked = ["--request-timeout=10s", "api-resources", "--cached=false", "--output=name", &group];
        let listed = self.run_kubectl(&asked).map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        listed.is_ok_and(|listed| resources.iter().all(|resource| listed.lines().any(|line| line == resource)))
    }

    fn run_kubectl(&self, arguments: &[&str]) -> Result<std::process::Output> {
        Command::new(self.binaries.kubernetes("kubectl"))
            .arg(format!("--kubeconfig={}", self.layout.admin_kubeconfig().display()))
            .args(arguments)
            .env("HOME", &self.layout.dir)
            .stdin(Stdio::null())
            .output()
            .context("failed to run `kubectl`")
    }
}

/// What a cluster's folder says about it, for whoever comes later.
#[derive(Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) version: String,
    pub(super) port: u16,
    /// The folder of kubectl and its companions.
    pub(super) programs: PathBuf,
}

impl Description {
    fn path(layout: &Layout) -> PathBuf {
        layout.path("cluster.json")
    }

    /// The cluster in this folder; none if there is no cluster.
    pub(super) fn read(layout: &Layout) -> Result<Option<Self>> {
        let path = Self::path(layout);
        match std::fs::read(&path) {
            Ok(text) => {
                let read = serde_json::from_slice(&text);
                read.map(Some).with_context(|| {
                    format!("failed to read `{}`: `cargo xtask cluster down` clears it away", path.display())
                })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read `{}`", path.display())),
        }
    }

    /// The minor version, which names the module it was built from.
    pub(super) fn minor(&self) -> &str {
        self.version.rsplit_once('.').map_or(&self.version, |(minor, _)| minor)
    }

    pub(super) fn write(&self, layout: &Layout) -> Result<()> {
        files::write(&Self::path(layout), serde_json::to_string_pretty(self).context("a description is plain data")?)
    }
}
