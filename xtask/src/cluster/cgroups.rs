//! The cluster's own cgroup. Every process of the cluster is started in it or below it (containers too: it is the
//! kubelet's cgroup root), and membership is inherited, so this is the record of what must be ended: complete, and
//! never somebody else's process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::processes::END_DEADLINE;

/// The cluster's cgroup in every hierarchy of this machine.
pub(super) struct Cgroup {
    /// Where the kubelet works: one hierarchy for cgroup v2, one per controller for v1.
    used: Vec<PathBuf>,
    /// A v2 hierarchy beside v1's: it has no controllers, but runc makes groups there too.
    beside: Vec<PathBuf>,
}

impl Cgroup {
    /// The cgroup of this name, whether it is there or not.
    pub(super) fn named(name: &str) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("failed to read the mounts")?;
        let (used, beside) = parse(&mounts);
        if used.is_empty() {
            bail!("no cgroup hierarchy is mounted below /sys/fs/cgroup: the kubelet cannot work without one");
        }
        let of_ours = |hierarchies: Vec<PathBuf>| hierarchies.into_iter().map(|path| path.join(name)).collect();
        Ok(Self { used: of_ours(used), beside: of_ours(beside) })
    }

    /// Makes the cluster's cgroup in every hierarchy; what is there stays.
    pub(super) fn make(&self) -> Result<()> {
        for group in &self.used {
            fs::create_dir_all(group).with_context(|| format!("failed to make the cgroup `{}`", group.display()))?;
        }
        super::files::folder(&self.components())
    }

    /// The file that takes the ids of the cluster's own programs. They have a group beside the pods': cgroup v2 allows
    /// processes only in leaves.
    pub(super) fn entry(&self) -> PathBuf {
        self.components().join("cgroup.procs")
    }

    /// In one hierarchy only: all see the same processes. Of v1's it is the one that only counts: in `cpu` the whole
    /// control plane would weigh as much as one process outside.
    fn components(&self) -> PathBuf {
        let counting =
            self.used.iter().find(|group| group.parent().is_some_and(|hierarchy| hierarchy.ends_with("pids")));
        counting.unwrap_or(&self.used[0]).join("components")
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.used.iter().chain(&self.beside)
    }

    /// Kills every process of the cluster and waits until there is none.
    pub(super) fn end_all(&self) -> Result<()> {
        let deadline = Instant::now() + END_DEADLINE;
        loop {
            let alive: Vec<i32> = self.all().flat_map(|group| members(group)).collect();
            if alive.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("processes {alive:?} are still there {END_DEADLINE:?} after they were killed");
            }
            for id in alive {
                // An error means that it ended by itself meanwhile.
                let _ = Pid::from_raw(id).map(|pid| kill_process(pid, Signal::KILL));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Removes the cluster's cgroups. They must be empty of processes.
    pub(super) fn remove(&self) -> Result<()> {
        self.all().try_for_each(|group| remove_tree(group))
    }

    /// What there is of it.
    pub(super) fn left(&self) -> Vec<PathBuf> {
        self.all().filter(|group| group.exists()).cloned().collect()
    }
}

/// The hierarchies that have controllers, and the one beside v1's that has none.
fn parse(mounts: &str) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let (v1, v2): (Vec<_>, Vec<_>) = fields
        .filter(|mount| mount.len() > 2 && mount[1].starts_with("/sys/fs/cgroup") && mount[2].starts_with("cgroup"))
        .partition(|mount| mount[2] == "cgroup");
    let paths = |mounts: Vec<Vec<&str>>| mounts.iter().map(|mount| PathBuf::from(mount[1])).collect::<Vec<_>>();
    if v1.is_empty() { (paths(v2), Vec::new()) } else { (paths(v1), paths(v2)) }
}

/// The processes of a cgroup and of all below it.
fn members(group: &Path) -> Vec<i32> {
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut ids: Vec<i32> = own.lines().filter_map(|line| line.parse().ok()).collect();
    ids.extend(below(group).iter().flat_map(|group| members(group)));
    ids
}

fn remove_tree(group: &Path) -> Result<()> {
    for group in below(group) {
        remove_tree(&group)?;
    }
    let deadline = Instant::now() + END_DEADLINE;
    loop {
        match fs::remove_dir(group) {
            // A process that has just been reaped still counts for a moment.
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("failed to remove the cgroup `{}`", group.display()));
            }
            _ => return Ok(()),
        }
    }
}

fn below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_v2_mount_beside_v1_controllers_is_cleared_but_not_used() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let (used, beside) = parse(mounts);
        assert_eq!(used, [Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup/pids")]);
        assert_eq!(beside, [Path::new("/sys/fs/cgroup/unified")]);
    }

    #[test]
    fn v2_alone_is_one_hierarchy() {
        let (used, beside) = parse("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
        assert_eq!((used, beside), (vec![PathBuf::from("/sys/fs/cgroup")], vec![]));
    }

    #[test]
    fn no_cgroup_mount_is_found_where_there_is_none() {
        assert!(parse("proc /proc proc rw 0 0\n").0.is_empty());
    }
}
