//! What a cluster could leave on a machine, before and after.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Places outside the cluster's folder where containerd, CNI and the kubelet write.
const FOLDERS: [&str; 4] = ["/run/containerd/s", "/run/netns", "/var/lib/cni/results", "/var/log/containers"];

pub(crate) struct Machine {
    mounts: BTreeSet<String>,
    cgroups: BTreeSet<PathBuf>,
    networks: BTreeSet<PathBuf>,
    interfaces: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Machine {
    pub(crate) fn look() -> Self {
        Self {
            mounts: fs::read_to_string("/proc/self/mounts").unwrap().lines().map(str::to_owned).collect(),
            cgroups: folders_below(Path::new("/sys/fs/cgroup")).into_iter().collect(),
            networks: processes().iter().filter_map(|process| fs::read_link(process.join("ns/net")).ok()).collect(),
            interfaces: entries(Path::new("/sys/class/net")).into_iter().collect(),
            files: FOLDERS.iter().flat_map(|folder| entries(Path::new(folder))).collect(),
        }
    }

    /// Fails with everything that is there now, was not there before, and is a cluster's kind of thing.
    pub(crate) fn assert_nothing_new(&self, dir: &str) {
        assert_eq!(processes_of_a_cluster(), Vec::<String>::new(), "processes are left");
        let now = Self::look();
        assert_eq!(new(&self.mounts, &now.mounts), [""; 0], "mounts are left");
        assert_eq!(new(&self.cgroups, &now.cgroups), [""; 0], "cgroups are left");
        assert_eq!(new(&self.networks, &now.networks), [""; 0], "network namespaces are left");
        assert_eq!(new(&self.interfaces, &now.interfaces), [""; 0], "network interfaces are left");
        assert_eq!(new(&self.files, &now.files), [""; 0], "files are left");
        assert!(!Path::new(dir).exists(), "the cluster's folder is left");
    }
}

fn new<T: Ord + AsRef<std::ffi::OsStr>>(before: &BTreeSet<T>, now: &BTreeSet<T>) -> Vec<String> {
    now.difference(before).map(|thing| thing.as_ref().to_string_lossy().into_owned()).collect()
}

/// Whatever runs in the cluster's cgroup: its programs, its shims, its containers. Dead ones are gone when the
/// machine's first process has reaped them, which may take it a moment.
fn processes_of_a_cluster() -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let ours = |process: &PathBuf| {
            let groups = fs::read_to_string(process.join("cgroup")).ok()?;
            let command = fs::read_to_string(process.join("cmdline")).ok()?.replace('\0', " ");
            let of_ours = groups.contains("boathook-cluster-test") || command.contains("boathook-cluster-test");
            of_ours.then(|| format!("{}: {command}", process.display()))
        };
        let left: Vec<String> = processes().iter().filter_map(ours).collect();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::yield_now();
    }
}

fn processes() -> Vec<PathBuf> {
    let is_process =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
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
