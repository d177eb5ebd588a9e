//! The pipes that a process prints into, and who else does: what it started inherits them, however far it went away.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

/// The pipes behind a process' stdout and stderr. What else they may be is shared with strangers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outputs(BTreeSet<PathBuf>);

impl Outputs {
    pub(crate) fn of(pid: i32) -> Self {
        let links = [1, 2].map(|number| fs::read_link(format!("/proc/{pid}/fd/{number}")));
        Self(links.into_iter().flatten().filter(|link| link.to_string_lossy().starts_with("pipe:")).collect())
    }

    /// Whether that process can print into one of them. Who reads from it has the same pipe.
    pub(crate) fn are_held_by(&self, pid: i32) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let mut held =
            descriptors.flatten().filter(|one| fs::read_link(one.path()).is_ok_and(|to| self.0.contains(&to)));
        held.any(|one| can_write(pid, Path::new(&one.file_name())))
    }
}

fn can_write(pid: i32, descriptor: &Path) -> bool {
    let info = fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo")).join(descriptor)).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or_default();
    flags & OFlags::ACCMODE.bits() != OFlags::RDONLY.bits()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_prints_into_the_same_pipe_is_told_from_who_reads_it() {
        let mut command = Command::new("sh");
        // Its stderr would be this process' own, which may be a pipe too.
        command.args(["-c", "read line"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let outputs = Outputs::of(pid);
        assert!(outputs.are_held_by(pid));
        assert!(!outputs.are_held_by(i32::try_from(std::process::id()).unwrap()));
        assert!(!Outputs::default().are_held_by(pid));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!outputs.are_held_by(pid));
    }
}
