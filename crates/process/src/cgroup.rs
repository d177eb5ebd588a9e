//! A cgroup inside a container's own, for one command: membership is inherited, so it holds whatever the command starts,
//! however that tries to get away.
//!
//! Of version 1 one hierarchy is enough, whichever the container has a group of its own in; what limits the container
//! limits its sub-groups too.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{Identity, Process};

/// Of version 1: no hierarchy but these two is sure to let anyone in.
const PREFERRED: &[&str] = &["freezer", "pids"];

/// It is removed by [`Cgroup::remove`], when it is empty.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// A new one in that of the container whose first process this is. `None`: the container has none of its own, or it
    /// cannot be seen from here.
    pub fn within(container_pid: i32, container_id: &str, name: &str) -> io::Result<Option<Self>> {
        let memberships = fs::read_to_string(format!("/proc/{container_pid}/cgroup"))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let Some(parent) = directory_of(&memberships, &mounts, container_id) else { return Ok(None) };
        let path = parent.join(name);
        fs::create_dir(&path)?;
        Ok(Some(Self { path }))
    }

    /// Moves a process into it; what it starts from now on is in it too.
    pub fn add(&self, pid: i32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), pid.to_string())
    }

    /// Who is in it.
    pub fn members(&self) -> io::Result<Vec<Identity>> {
        let numbers = fs::read_to_string(self.path.join("cgroup.procs"))?;
        let numbers = numbers.lines().filter_map(|line| line.parse().ok());
        Ok(numbers.filter_map(Process::of).filter(|process| !process.ended).map(|process| process.identity).collect())
    }

    /// Removes it. Who is in it goes back to the container's.
    pub fn remove(&self) -> io::Result<()> {
        let parent = self.path.parent().expect("it was made in another");
        for member in self.members()? {
            // One that has ended meanwhile cannot be moved, and need not.
            fs::write(parent.join("cgroup.procs"), member.pid.to_string()).ok();
        }
        fs::remove_dir(&self.path)
    }
}

/// Where the container's own cgroup is seen. It is its own if its last name has the container's id in it, as every
/// runtime names them; the root and those of sandboxes or of this process are not.
fn directory_of(memberships: &str, mounts: &str, container_id: &str) -> Option<PathBuf> {
    let mut groups: Vec<(&str, &Path)> = memberships
        .lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            Some((controllers, Path::new(path)))
        })
        .filter(|(_, path)| path.file_name().is_some_and(|name| name.to_string_lossy().contains(container_id)))
        // Seen from another cgroup namespace, it is in a place that has no name here.
        .filter(|(_, path)| !path.components().any(|part| part.as_os_str() == ".."))
        .collect();
    // Version 2 has no controllers here, and comes first.
    groups.sort_by_key(|(controllers, _)| match controllers.split(',').find(|one| PREFERRED.contains(one)) {
        Some(_) => 1,
        None if controllers.is_empty() => 0,
        None => 2,
    });
    groups.into_iter().find_map(|(controllers, path)| mounted(mounts, controllers, path))
}

/// Where a path of the hierarchy with these controllers is mounted. A line of `mountinfo` is: id, parent, device, root,
/// mount point, options..., `-`, type, source, options of the hierarchy.
fn mounted(mounts: &str, controllers: &str, path: &Path) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let (kind, _, options) = (kind.next()?, kind.next()?, kind.next()?);
        let is_it = match kind {
            "cgroup2" => controllers.is_empty(),
            "cgroup" => controllers.split(',').any(|one| options.split(',').any(|option| option == one)),
            _ => false,
        };
        let below = path.strip_prefix(root).ok().filter(|_| is_it)?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123abcd";

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
37 31 0:34 /deep /sys/fs/cgroup/freezer rw,relatime shared:7 - cgroup cgroup rw,freezer
38 31 0:34 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn found(memberships: &str) -> Option<String> {
        directory_of(memberships, MOUNTS, ID).map(|path| path.display().to_string())
    }

    #[test]
    fn version_2_comes_first_then_a_hierarchy_without_demands() {
        let kubepods = "/kubepods/pod7/0123abcd";
        let both = format!("4:memory:{kubepods}\n6:freezer:/deep{kubepods}\n0::{kubepods}\n");
        assert_eq!(found(&both).unwrap(), format!("/sys/fs/cgroup/unified{kubepods}"));
        let one = format!("4:memory:{kubepods}\n6:freezer:/deep{kubepods}\n0::/\n");
        assert_eq!(found(&one).unwrap(), format!("/sys/fs/cgroup/freezer{kubepods}"));
        assert_eq!(
            found(&format!("3:cpu,cpuacct:{kubepods}")).unwrap(),
            format!("/sys/fs/cgroup/cpu,cpuacct{kubepods}")
        );
        let systemd = "0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-0123abcd.scope\n";
        assert!(found(systemd).unwrap().ends_with("cri-containerd-0123abcd.scope"));
    }

    #[test]
    fn what_is_not_the_containers_own_is_left_alone() {
        assert_eq!(found("0::/\n6:freezer:/kubepods/pod7\n"), None);
        assert_eq!(found("0::/../../kubepods/0123abcd\n"), None);
        assert_eq!(found("0::/kubepods/0123abcd/boathook-1\n"), None);
        // Not mounted here, or not as far up.
        assert_eq!(found("6:pids:/kubepods/0123abcd\n"), None);
        assert_eq!(found("6:freezer:/kubepods/0123abcd\n"), None);
    }
}
