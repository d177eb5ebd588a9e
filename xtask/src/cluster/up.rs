//! `cluster up`: from whatever is there to a cluster that takes pods, claims and snapshots.
//!
//! Every step leaves alone what is there already, so `up` is also how a cluster with a dead part is made whole.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::binaries::Binaries;
use super::certificates::{self, NODE_NAME};
use super::cgroups::Cgroup;
use super::components::{self, CSI_DRIVER, CSI_TOOLS, Component};
use super::layout::Layout;
use super::processes::{self, Record};
use super::site::{Description, Site};
use super::version::{DEFAULT_MINOR, Version};
use super::{files, images, network, packages, sysctls};
use crate::say::Step;

/// A part is ready in a second or two; a machine that compiles on all cores meanwhile takes many times that.
const READY_DEADLINE: Duration = Duration::from_secs(600);
/// kubectl's own deadline for what it waits for, likewise.
const WAIT: &str = "--timeout=600s";
/// A part that dies takes others along (a CSI sidecar ends when its driver does), perhaps after they were looked at.
const PASSES: u32 = 5;

/// `minor` is what the person asked for; without it a cluster that is there is made whole as it is.
pub(super) fn up(layout: Layout, minor: Option<&str>) -> Result<()> {
    let described = Description::read(&layout)?;
    let minor = minor.or(described.as_ref().map(Description::minor)).unwrap_or(DEFAULT_MINOR);
    let version = Version::pinned(&layout.sources, minor)?;
    if let Some(other) = described.as_ref().filter(|described| described.version != version.to_string()) {
        bail!("a cluster of Kubernetes {} is up, not {version}; `cargo xtask cluster down` first", other.version);
    }
    packages::install(&layout)?;
    let binaries = Binaries::build(&layout, &version)?;
    let port = described.map_or_else(free_port, |described| Ok(described.port))?;
    let description = Description { version: version.to_string(), port, programs: binaries.folder().to_owned() };
    let own_program = std::env::current_exe().context("failed to find this program")?;
    let site = Site { layout, binaries, port, own_program };
    bring_up(&site, &description).map_err(|error| {
        anyhow!("{error:#}\nthe cluster is not up; `cargo xtask cluster down` takes away what was started")
    })?;
    eprintln!("Kubernetes {version} is up: eval \"$(cargo xtask cluster env)\"");
    Ok(())
}

fn bring_up(site: &Site, description: &Description) -> Result<()> {
    let cgroup = prepare(site)?;
    description.write(&site.layout)?;
    start(site, &cgroup)?;
    settle(site)?;
    match components::names().find(|name| Record::running(&site.layout, name).is_none()) {
        None => Ok(()),
        Some(name) => Err(dead(&site.layout, name)),
    }
}

fn dead(layout: &Layout, name: &str) -> anyhow::Error {
    let log = layout.log(name);
    anyhow!("{name} ended; the end of its log, `{}`:\n{}", log.display(), files::tail(&log, 20))
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("failed to find a free port")?;
    Ok(listener.local_addr().context("a bound socket has an address")?.port())
}

/// Folders, cgroups, the network, certificates, configuration.
fn prepare(site: &Site) -> Result<Cgroup> {
    let layout = &site.layout;
    layout.claim()?;
    let of_csi = ["kubelet/plugins/csi-hostpath", "kubelet/plugins_registry", "csi-data", CSI_TOOLS];
    for folder in ["cni", "volume-plugins"].into_iter().chain(of_csi) {
        files::folder(&layout.path(folder))?;
    }
    sysctls::remember(layout)?;
    let cgroup = Cgroup::named(&layout.cgroup())?;
    cgroup.make()?;
    network::make(&layout.network())?;
    certificates::make(layout, site.port)?;
    for (source, target) in [
        ("config/containerd.toml", "containerd.toml"),
        ("config/kubelet.yaml", "kubelet.yaml"),
        ("config/egress.yaml", "egress.yaml"),
        ("config/bridge.conflist", "cni/10-bridge.conflist"),
    ] {
        files::write(&layout.path(target), layout.filled(source)?)?;
    }
    files::write_program(&layout.path(CSI_TOOLS).join("tar"), layout.filled("config/tar")?)?;
    Ok(cgroup)
}

/// Starts what does not run, until everything runs.
fn start(site: &Site, cgroup: &Cgroup) -> Result<()> {
    let components = components::all(site);
    for _ in 0..PASSES {
        for component in &components {
            ensure(site, cgroup, component)?;
        }
        if components.iter().all(|component| Record::running(&site.layout, component.name).is_some()) {
            return Ok(());
        }
    }
    let ended = components.iter().find(|component| Record::running(&site.layout, component.name).is_none());
    let name = ended.map_or("a component", |component| component.name);
    Err(dead(&site.layout, name).context("a part ends again and again"))
}

fn ensure(site: &Site, cgroup: &Cgroup, component: &Component) -> Result<()> {
    let name = component.name;
    let mut step = match Record::running(&site.layout, name) {
        Some(_) => None,
        None => {
            let step = Step::start(format!("starting {name}"));
            for dependent in component.dependents {
                processes::end(&site.layout, dependent)?;
            }
            processes::start(&site.layout, &cgroup.entry(), name, &component.command)?;
            Some(step)
        }
    };
    processes::wait_ready(&site.layout, name, READY_DEADLINE, || {
        step.iter_mut().for_each(|step| step.progress("not ready yet"));
        component.ready.holds(site)
    })?;
    if let Some(step) = step {
        step.done();
    }
    match name {
        "containerd" => images::import(&site.layout),
        "kube-apiserver" => install_storage(site),
        _ => Ok(()),
    }
}

const SNAPSHOT_GROUP: &str = "snapshot.storage.k8s.io";

/// The snapshot kinds, then the driver and the classes, which need them.
fn install_storage(site: &Site) -> Result<()> {
    let crds = site.binaries.snapshot_crds().display().to_string();
    let apply_crds = ["apply", "--server-side", "--force-conflicts", "-f", &crds];
    // When etcd was started anew, `/readyz` may answer before the API server has connected to it, and a write fails.
    processes::wait_ready(&site.layout, "kube-apiserver", READY_DEADLINE, || site.kubectl_agrees(&apply_crds))?;
    let names = ["volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"]
        .map(|kind| format!("{kind}.{SNAPSHOT_GROUP}"));
    let objects = names.each_ref().map(|name| format!("crd/{name}"));
    let mut wait = vec!["wait", "--for=condition=Established", WAIT];
    wait.extend(objects.iter().map(String::as_str));
    site.kubectl(&wait).context("the snapshot kinds are not served")?;
    // After a restart of the API server they are still Established, but discovery, by which kubectl finds a kind, may not
    // list them yet.
    processes::wait_ready(&site.layout, "kube-apiserver", READY_DEADLINE, || site.serves(SNAPSHOT_GROUP, &names))?;
    let classes = site.layout.sources.join("manifests/storage.yaml").display().to_string();
    site.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &classes])
        .with_context(|| format!("failed to apply `{classes}`"))
}

const CRI_SOCKET: &str = "kubeadm.alpha.kubernetes.io/cri-socket";

/// Waits until a pod with a claim would run: the node is Ready, its storage driver registered, accounts are made.
fn settle(site: &Site) -> Result<()> {
    let step = Step::start("waiting for the node");
    let node = format!("node/{NODE_NAME}");
    let storage = format!("csinode/{NODE_NAME}");
    let driver = format!("--for=jsonpath={{.spec.drivers[0].name}}={CSI_DRIVER}");
    for (what, who, arguments) in [
        ("the kubelet did not register the node", "kubelet", ["wait", "--for=create", &node, WAIT]),
        ("the node is not Ready", "kubelet", ["wait", "--for=condition=Ready", &node, WAIT]),
        ("the storage driver is not registered", "csi-registrar", ["wait", &driver, &storage, WAIT]),
        (
            "service accounts are not made",
            "kube-controller-manager",
            ["wait", "--for=create", "serviceaccount/default", WAIT],
        ),
    ] {
        let log = site.layout.log(who);
        let done = site.kubectl(&arguments);
        done.with_context(|| format!("{what}; the end of `{}`:\n{}", log.display(), files::tail(&log, 10)))?;
    }
    // As kubeadm would: for who asks the container runtime itself.
    let socket = format!("{CRI_SOCKET}=unix://{}/containerd.sock", site.dir());
    site.kubectl(&["annotate", "--overwrite", &node, &socket]).context("failed to annotate the node")?;
    step.done();
    Ok(())
}
