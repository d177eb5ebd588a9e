//! What a cluster puts on a machine, looked at while it runs and again when it is down.
//!
//! Only what is the cluster's own counts: the machine's other business goes on meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Places outside the cluster's folder where containerd, CNI and the kubelet write, and no setting moves it.
const FOLDERS: [&str; 3] = ["/run/containerd/s", "/var/lib/cni/results", "/var/log/containers"];

/// What a kubelet sets for the whole machine.
const SETTINGS: [&str; 5] = [
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
];

/// What there was while the cluster ran, by which its leavings are known.
pub(crate) struct Traces {
    /// By its number, each held open: the kernel gives the number of a network that is gone to the next one, perhaps
    /// another cluster's.
    networks: BTreeMap<PathBuf, File>,
    sockets: BTreeSet<PathBuf>,
    containers: BTreeSet<String>,
}

impl Traces {
    /// Looks at a running cluster. There must be something to see, or nothing is tested.
    pub(crate) fn of(dir: &Path) -> Self {
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        let of_cluster = processes_of(dir);
        let network_of = |process: &PathBuf| {
            let held = File::open(process.join("ns/net")).ok()?;
            let number = fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd())).ok()?;
            Some((number, held))
        };
        let networks = of_cluster.iter().filter_map(network_of);
        let bundles = entries(&dir.join("containerd/state/io.containerd.runtime.v2.task/k8s.io"));
        let address = |bundle: &PathBuf| fs::read_to_string(bundle.join("address")).ok();
        let sockets = bundles.iter().filter_map(address).map(|text| PathBuf::from(text.trim_start_matches("unix://")));
        let traces = Self {
            networks: networks.filter(|(number, _)| *number != own).collect(),
            sockets: sockets.collect(),
            containers: bundles.iter().map(|bundle| file_name(bundle)).collect(),
        };
        assert!(traces.networks.len() > 1, "no pod has a network of its own");
        assert!(!traces.sockets.is_empty() && !traces.containers.is_empty(), "no container runs");
        traces
    }
}

/// The settings of the machine that must be again as they were.
pub(crate) fn settings() -> Vec<String> {
    SETTINGS.iter().map(|name| fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap()).collect()
}

/// Fails with whatever a cluster in `dir` has left.
pub(crate) fn assert_nothing_left(dir: &Path, traces: Option<&Traces>) {
    assert_eq!(processes_after_a_while(dir), Vec::<PathBuf>::new(), "processes are left");
    let shown = dir.display().to_string();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert_eq!(mounts.lines().find(|line| line.contains(&shown)), None, "a mount is left");
    let cgroups = folders_below(Path::new("/sys/fs/cgroup"));
    let name = cgroup(dir);
    assert_eq!(cgroups.iter().find(|group| file_name(group) == name), None, "a cgroup is left");
    assert!(!dir.exists(), "the cluster's folder is left");
    let Some(traces) = traces else { return };
    let networks = processes().into_iter().filter_map(|process| fs::read_link(process.join("ns/net")).ok());
    assert_eq!(networks.into_iter().find(|network| traces.networks.contains_key(network)), None, "a network is left");
    for file in FOLDERS.iter().flat_map(|folder| entries(Path::new(folder))) {
        let is_named = traces.containers.iter().any(|id| file_name(&file).contains(id.as_str()));
        assert!(!is_named && !traces.sockets.contains(&file), "left: {}", file.display());
    }
}

/// Whatever runs in the cluster's cgroup: its programs, its shims, its containers.
fn processes_of(dir: &Path) -> Vec<PathBuf> {
    let group = format!("/{}/", cgroup(dir));
    let groups = |process: &PathBuf| fs::read_to_string(process.join("cgroup")).unwrap_or_default();
    processes().into_iter().filter(|process| groups(process).contains(&group)).collect()
}

/// Dead processes are gone when the machine's first one has reaped them, which may take it a moment.
fn processes_after_a_while(dir: &Path) -> Vec<PathBuf> {
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        let left = processes_of(dir);
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::yield_now();
    }
}

fn cgroup(dir: &Path) -> String {
    dir.to_string_lossy().trim_matches('/').replace('/', "-")
}

fn processes() -> Vec<PathBuf> {
    let is_process = |path: &PathBuf| file_name(path).parse::<u32>().is_ok();
    entries(Path::new("/proc")).into_iter().filter(is_process).collect()
}

fn folders_below(folder: &Path) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> =
        entries(folder).into_iter().filter(|path| path.is_dir() && !path.is_symlink()).collect();
    let deeper: Vec<PathBuf> = folders.iter().flat_map(|folder| folders_below(folder)).collect();
    [folders, deeper].concat()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
