//! Looking into one process: what it was started with, and what it sees.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::snapshot::{Process, numbers};

/// As much of arguments or environment as is looked at; a kernel permits about as much.
const READ: u64 = 4 << 20;

fn read(path: String) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(READ).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What it was started with. `None`: it is gone, or not ours to look into.
pub fn arguments(pid: i32) -> Option<Vec<String>> {
    let bytes = read(format!("/proc/{pid}/cmdline"))?;
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    Some(bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// Whether this `NAME=value` was in its environment when it was started.
pub fn carries(pid: i32, mark: &str) -> bool {
    let environment = read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

/// Whether it is in a cgroup of this name, or below one.
pub(crate) fn is_in_cgroup(pid: i32, name: &str) -> bool {
    let memberships = read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    is_below(&String::from_utf8_lossy(&memberships), name)
}

/// A line is: number, controllers, path.
fn is_below(memberships: &str, name: &str) -> bool {
    let paths = memberships.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.flat_map(|path| path.split('/')).any(|part| part == name)
}

/// The process that was started with this word among its arguments, best one that nobody else has. `None`: there is
/// none yet. Who has one of the numbers `except` is not looked at.
pub fn find_by_argument(word: &str, except: &BTreeSet<i32>) -> io::Result<Option<Process>> {
    let has_it = |pid: &i32| arguments(*pid).is_some_and(|arguments| arguments.iter().any(|one| one == word));
    let candidates = numbers()?.into_iter().filter(|pid| !except.contains(pid));
    Ok(candidates.rev().find(has_it).and_then(Process::of))
}

/// Which pid namespace it is in.
pub fn pid_namespace(pid: i32) -> io::Result<String> {
    Ok(fs::read_link(format!("/proc/{pid}/ns/pid"))?.display().to_string())
}

/// Whether what this process sees as `path` can be run. Links are followed as it would, and never out of its root.
pub fn has_program(pid: i32, path: &Path) -> bool {
    let root = format!("/proc/{pid}/root");
    let Ok(root) = rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let opened = rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT);
    let metadata = opened.ok().and_then(|file| File::from(file).metadata().ok());
    metadata.is_some_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    fn me() -> i32 {
        i32::try_from(std::process::id()).unwrap()
    }

    #[test]
    fn a_process_is_found_by_a_word_that_only_it_was_given() {
        let word = format!("boathook-test-{}", me());
        let before = numbers().unwrap();
        assert_eq!(find_by_argument(&word, &BTreeSet::new()).unwrap(), None);
        let mut child = Command::new("sh")
            .args(["-c", "echo ready; read line", &word])
            .env("BOATHOOK_TEST", "7")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Its arguments are there a moment after `spawn` has returned.
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let found = find_by_argument(&word, &before).unwrap().unwrap();
        assert_eq!(find_by_argument(&word, &[found.identity.pid].into()).unwrap(), None);
        assert_eq!(found.identity.pid, i32::try_from(child.id()).unwrap());
        assert_eq!(found.parent, me());
        assert!(carries(found.identity.pid, "BOATHOOK_TEST=7"));
        assert!(!carries(found.identity.pid, "BOATHOOK_TEST="));
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_program_is_one_that_can_be_run() {
        assert!(has_program(me(), Path::new("/bin/sh")));
        assert!(!has_program(me(), Path::new("/etc/passwd")));
        assert!(!has_program(me(), Path::new("/etc")));
        assert!(!has_program(me(), Path::new("/no/such/program")));
    }

    #[test]
    fn a_cgroup_is_known_by_its_whole_name() {
        let memberships = "6:freezer:/kubepods/0123/boathook-7/deeper\n0::/\n";
        assert!(is_below(memberships, "boathook-7"));
        assert!(!is_below(memberships, "boathook-77") && !is_below(memberships, "boathook-") && !is_below("", "a"));
    }

    #[test]
    fn one_that_is_gone_has_nothing() {
        assert_eq!(arguments(i32::MAX), None);
        assert!(!carries(i32::MAX, "A=b"));
        assert!(pid_namespace(i32::MAX).is_err());
        assert_eq!(pid_namespace(me()).unwrap(), pid_namespace(me()).unwrap());
    }
}
