//! The Debian packages that the cluster needs beside its own programs.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::files;
use super::layout::Layout;
use crate::say::Step;

/// A package, and the files of which one shows that it is there.
const PACKAGES: [(&str, &[&str]); 6] = [
    ("busybox-static", &["/bin/busybox"]),
    ("containerd", &["/usr/bin/containerd"]),
    ("containernetworking-plugins", &["/usr/lib/cni/bridge"]),
    ("iproute2", &["/sbin/ip", "/usr/sbin/ip"]),
    ("iptables", &["/usr/sbin/iptables"]),
    // Others' packages have it elsewhere, and would be removed for Debian's.
    ("runc", &["/usr/sbin/runc", "/usr/bin/runc"]),
];

/// Installs what is missing.
pub(super) fn install(layout: &Layout) -> Result<()> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, files)| !files.iter().any(|file| Path::new(file).exists()))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let step = Step::start(format!("installing {}", missing.join(" ")));
    let log = layout.cache.join("log/packages.log");
    files::folder(&layout.cache.join("log"))?;
    apt_get(&["update"], &log)?;
    let mut install = vec!["install", "--yes", "--no-install-recommends", "--no-remove"];
    install.extend(&missing);
    apt_get(&install, &log)?;
    step.done();
    Ok(())
}

fn apt_get(arguments: &[&str], log: &Path) -> Result<()> {
    let output = Command::new("apt-get")
        // A fresh machine may be updating itself.
        .args(["-o", "DPkg::Lock::Timeout=300"])
        // Without the second option, `update` succeeds although a list could not be downloaded.
        .args(["-o", "Acquire::Retries=5", "-o", "APT::Update::Error-Mode=any"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .with_context(|| {
            let names: Vec<&str> = PACKAGES.iter().map(|(package, _)| *package).collect();
            format!("failed to run `apt-get`: install these by hand: {}", names.join(", "))
        })?;
    files::write(log, [output.stdout, output.stderr].concat())?;
    if !output.status.success() {
        bail!("`apt-get {}` failed; it says, in `{}`:\n{}", arguments.join(" "), log.display(), files::tail(log, 15));
    }
    Ok(())
}
