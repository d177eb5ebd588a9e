//! The cluster's network namespace: all its programs and pods live in it, and no route leads out of it.
//!
//! The addresses are of the range that is set aside for benchmarks (198.18.0.0/15): they are nobody's.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::mount::{UnmountFlags, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::files;

/// The node's address, on the bridge that the pods hang on (`e2e/config/bridge.conflist`).
pub(super) const NODE: &str = "198.18.0.1";
pub(super) const PODS: &str = "198.18.0.0/24";
pub(super) const SERVICES: &str = "198.19.0.0/16";
/// The first address of the service range: the API server's, as pods see it.
pub(super) const API_SERVICE: &str = "198.19.0.1";

/// Makes the namespace and holds it by a mount at `path`; one that is there stays.
pub(super) fn make(path: &Path) -> Result<()> {
    if is_namespace(path) {
        if is_complete(path) {
            return Ok(());
        }
        // An `up` was cut off in the middle of what follows.
        unmount(path, UnmountFlags::DETACH).context("failed to take away a half-made network namespace")?;
    }
    files::write(path, "")?;
    let handle = format!("--net={}", path.display());
    command(Command::new("unshare").arg(handle).arg("true")).context("failed to make the network namespace")?;
    for arguments in [
        "link set lo up".to_owned(),
        "link add pods0 type bridge".to_owned(),
        "link set pods0 up".to_owned(),
        format!("address add {NODE}/24 dev pods0"),
        // The kubelet wants a default route to choose its address by; nothing is behind it.
        "route add default dev pods0".to_owned(),
    ] {
        let done = command(entered(path).arg("ip").args(arguments.split(' ')));
        done.with_context(|| format!("failed to run `ip {arguments}` in the cluster's network"))?;
    }
    // Where bridges are filtered by a module of their own, nobody has loaded it yet; where not, this fails.
    let _ = Command::new("modprobe").arg("br_netfilter").stderr(Stdio::null()).status();
    inside(path, || {
        // Pods reach Services by the node's forwarding, and a pod on the same bridge only if bridged packets pass the
        // filter too.
        let forward = std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("failed to turn on forwarding");
        let _ = std::fs::write("/proc/sys/net/bridge/bridge-nf-call-iptables", "1");
        forward
    })?
}

/// A command that will run in the namespace: `nsenter`, because `ip netns exec` would hide the cgroups.
pub(super) fn entered(path: &Path) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", path.display()));
    command
}

/// Runs `work` on a thread of its own inside the namespace: a socket belongs for ever to the namespace it was made in.
pub(super) fn inside<T: Send>(path: &Path, work: impl FnOnce() -> T + Send) -> Result<T> {
    let namespace = File::open(path).with_context(|| format!("failed to open the network `{}`", path.display()))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .with_context(|| format!("failed to enter the network `{}`", path.display()))?;
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn is_namespace(path: &Path) -> bool {
    // An empty file that an `unshare` was to mount on is no namespace: nsenter tells.
    path.exists() && entered(path).arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The last thing that is made is there.
fn is_complete(path: &Path) -> bool {
    let output = entered(path).args(["ip", "route", "show", "default"]).output();
    output.is_ok_and(|output| !output.stdout.is_empty())
}

fn command(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("failed to run {command:?}"))?;
    if !output.status.success() {
        bail!("it says: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
