//! The programs that are measured, built if they are not there.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::say;

pub(crate) struct Programs {
    pub(crate) boathook: PathBuf,
    pub(crate) etcd: PathBuf,
    pub(crate) kube_apiserver: PathBuf,
    pub(crate) kubectl: PathBuf,
}

impl Programs {
    pub(crate) fn find(boathook: Option<PathBuf>) -> Result<Self> {
        let boathook = match boathook {
            Some(given) if given.is_file() => {
                std::path::absolute(&given).with_context(|| format!("failed to find `{}`", given.display()))?
            }
            Some(given) => bail!("there is no program `{}`", given.display()),
            None => build()?,
        };
        let folder = PathBuf::from(cargo(&["xtask", "cluster", "programs"])?.trim());
        let of_kubernetes = |name: &str| folder.join(name);
        Ok(Self {
            boathook,
            etcd: of_kubernetes("etcd"),
            kube_apiserver: of_kubernetes("kube-apiserver"),
            kubectl: of_kubernetes("kubectl"),
        })
    }
}

/// The release build of this checkout.
fn build() -> Result<PathBuf> {
    say("building boathook for release");
    let messages = cargo(&["build", "--release", "--locked", "--package=boathook", "--message-format=json"])?;
    let executable = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
        (message["target"]["name"] == "boathook").then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    executable.context("cargo built `boathook` and did not say where")
}

/// What cargo prints; what it says meanwhile is shown.
fn cargo(arguments: &[&str]) -> Result<String> {
    let what = || format!("`cargo {}`", arguments.join(" "));
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("failed to run {}", what()))?;
    if !output.status.success() {
        bail!("{} failed", what());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} printed no text", what()))
}
